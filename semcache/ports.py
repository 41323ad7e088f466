"""Every Protocol on one page: what semcache needs from the world, and the values that cross."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounded
from semcache.events import Event
from semcache.plans.document import ExecutionPlan
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema

Vector = NDArray[np.float32]
"""Shape `(dim,)`, float32, L2-normalized."""
Vectors = NDArray[np.float32]
"""Shape `(rows, dim)`, float32, rows L2-normalized."""


class Clock(Protocol):
    """Time, so that tests own it."""

    def now(self) -> float:
        """Return epoch seconds."""

    def monotonic(self) -> float:
        """Return seconds that never run backwards, for durations and deadlines."""

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""


class Observer(Protocol):
    """Takes every event, from any thread; what it raises is logged, never passed on."""

    def __call__(self, event: Event, /) -> None:
        """Take one event; return at once."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message to a model."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    model: str = ""
    """The model that answered, as it names itself."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached: bool = False
    """Whether it was remembered: nobody was asked, and no tokens were spent now."""


@runtime_checkable
class Model(Protocol):
    """A language model. Safe from several threads."""

    @property
    def fingerprint(self) -> str:
        """Provider, model and sampling settings; equal fingerprints answer alike."""

    def complete(self, messages: Sequence[Message]) -> Completion:
        """Return the model's answer.

        Raises:
            ModelUnavailable: unreachable, overloaded or too late, after the adapter's own retries.
            ModelRejected: the request or its credentials are not accepted.
        """


@runtime_checkable
class RememberingModel(Model, Protocol):
    """A model that may answer from memory, and lets a caller who needs a new answer say so."""

    def fresh(self, messages: Sequence[Message]) -> Completion:
        """Return a new answer, and remember it instead of the old one. Raises as `complete`."""

    def forget(self, messages: Sequence[Message]) -> None:
        """Forget the answer to `messages`, which turned out to be of no use."""


@runtime_checkable
class Embedder(Protocol):
    """Texts to vectors. Safe from several threads; loads nothing before the first `embed`.

    An embedder may have an attribute `strict_cosine`: its cosine in (0, 1) that is as strict as
    0.95 of all-MiniLM-L6-v2, in whose unit thresholds and scores are told. Without: 0.95 itself.
    """

    @property
    def fingerprint(self) -> str:
        """Names weights, precision and pooling; vectors of two fingerprints are never compared."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one L2-normalized float32 row a text, in order; shape `(len(texts), dim)`.

        Raises:
            EmbeddingError: the embedder cannot answer.
        """


class Neighbor(NamedTuple):  # dozens a lookup: a third of the time of a frozen dataclass
    """A stored vector near the one asked about."""

    id: str
    similarity: float
    """Cosine, in [-1, 1]; higher is nearer."""


class VectorIndex(Protocol):
    """Nearest vectors by cosine, of one tenant and embedder. Safe from several threads.

    Exact where they are few. Of many, a search may miss one in a thousand; similarities are exact
    whatever it finds.
    """

    def add(self, id: str, vector: Vector) -> None:  # noqa: A002 - the word of the record
        """Keep `vector` under `id`, replacing what was there.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """

    def remove(self, id: str) -> bool:  # noqa: A002 - the word of the record
        """Forget `id`; return whether it was there."""

    def search(self, vector: Vector, count: int) -> Sequence[Neighbor]:
        """Return at most `count` neighbors, nearest first, ties by ascending id; `[]` when empty.

        Raises:
            InvalidVector: wrong dimension or not finite.
        """

    def __len__(self) -> int:
        """Return how many vectors are kept."""

    def save(self, path: str, *, change: int) -> None:
        """Write a snapshot aside, checksum it and rename it to `path`; `change` is kept with it."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What was derived from a store once, as it was kept."""

    content: bytes
    index: VectorIndex
    change: int
    """Number of the last change that `index` holds."""


class Snapshots(Protocol):
    """Keeps what was derived from a store, so that the next process need not derive it again."""

    def save(self, name: str, content: bytes, index: VectorIndex, *, change: int) -> str:
        """Keep both under `name`, in place of what was there; return the checksum of `content`.

        Raises:
            StoreUnavailable: it cannot be written.
        """

    def load(self, name: str, checksum: str) -> Snapshot | None:
        """Return what was kept under `name` with that checksum; None if it is not so there."""

    def discard(self, name: str | None) -> None:
        """Forget what is kept under `name`, or all (None); nothing there is fine."""


class Journal(Protocol):
    """Keeps small texts beside a store while that cannot be written. Safe from several threads."""

    def reserve(self) -> None:
        """See to it that there is room for texts even on a full disk, as far as that can be."""

    def keep(self, name: str, text: str) -> None:
        """Keep `text` under `name`; it outlives the process when this returns.

        Raises:
            StoreUnavailable: it cannot be kept here either.
        """

    def texts(self) -> Mapping[str, str]:
        """Return the texts that are kept, by name."""

    def drop(self, name: str) -> None:
        """Forget the text under `name`."""


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as a store keeps it: opaque JSON text under exact keys, and its vector."""

    tenant: str
    id: str
    """Unique in its tenant; the same id again replaces the record."""
    keys: tuple[str, ...]
    """Exact keys that it answers to: `template:<digest>`, `schema:<digest>`."""
    labels: tuple[str, ...]
    """What it can be invalidated by: `tag:<tag>`, `operation:<name>`, `key:<psk>`."""
    body: str
    """JSON text; the store never looks inside."""
    vector: Vector | None
    """None where nothing was embedded."""
    embedder: str
    """Fingerprint of the embedder of `vector`; empty without one."""
    created_s: float
    """Epoch seconds."""
    expires_s: float | None
    """Epoch seconds after which it is never served; None: never expires."""
    change: int = 0
    """Number of the change that wrote it; given by the store."""
    cost_s: float = 1.0
    """Seconds that it took to make what it holds; 1 where nobody said."""

    @property
    def size(self) -> int:
        """Bytes of body and vector, which is what bounds in bytes count."""
        return len(self.body.encode()) + (0 if self.vector is None else self.vector.nbytes)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What records may take; None: no bound."""

    tenant_entries: int | None = None
    """Records that each tenant may have."""
    tenant_bytes: int | None = None
    """Bytes (`Record.size`) that the records of each tenant may have."""
    entries: int | None = None
    """Records that all tenants together may have."""
    bytes: int | None = None
    """Bytes that the records of all tenants together may have."""


UNBOUNDED = Bounds()
PAGE = 1_000
"""Records that are read at once where all are read in turn."""


@dataclass(frozen=True, slots=True)
class Use:
    """How much a record was used, and what it is worth for that."""

    count: int
    """Uses since it was first written; replacing it does not begin anew."""
    last_s: float
    """Epoch seconds of the last use, or of its creation."""
    worth: float
    """The order of eviction, least first; see `stores.eviction`."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change to a store."""

    number: int
    """Grows by one with each change of the whole store."""
    tenant: str
    id: str
    kind: Literal["put", "remove"]


@dataclass(frozen=True, slots=True)
class Put:
    """What writing a record did."""

    change: int
    """Number of the last change that it made."""
    replaced: bool
    evicted: tuple[str, ...]
    """Ids of the same tenant that made room for it, least worth first."""
    elsewhere: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Other tenants → their ids that made room for it, under a bound of all tenants."""
    written: bool = True
    """False if the record was not `over` the change that it was said to be: nothing was done."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a store holds, or may hold."""

    entries: int
    bytes: int
    """Bytes of the responses in UTF-8, or of records (`Record.size`); what a store adds to them
    does not count."""


class PlanStore(Protocol):
    """Records, durable or not. Safe from several threads (and processes, where it is shared).

    Each method is one transaction: it happened whole, or it raised and nothing happened.
    Tenants are hard partitions: no call sees another tenant's records.
    Every method may raise `StoreUnavailable` (locked, full, read-only, gone).
    """

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Write `record`, replacing its id; then evict the least worth, until all is in `bounds`.

        First records of its own tenant, over the bounds of a tenant; then, over the bounds of all,
        records of the tenant that has most at that moment (most bytes over a bound in bytes; ties:
        the first by name). So a tenant that has no more than its fair share never makes room for
        another. The record just written is never evicted.
        `over`: number of the change whose record this one is to replace, 0 for none; if another
        is there, nothing is done. None: whatever is there.
        """

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Add to each record that is still there how often it was used; no numbered change."""

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant. Cost: all of them."""

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records of the tenant take, or those of all tenants (None)."""

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give `holder` the lease called `name` until `now_s + ttl_s`; return whether it has it.

        One holder has it at a time. Whoever has it already gets it anew; one that has run out goes
        to whoever asks next, since its holder may be dead.
        """

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back; nothing happens if `holder` does not have it (any more)."""

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None.

        Raises:
            StoreCorrupt: the bytes are not what was written; the record is set aside.
        """

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`, newest change first; `[]` if none."""

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Remove records; return how many were there."""

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant, oldest change first. Cost: all of them."""

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time, so that few are held.

        What is written or removed meanwhile may be among them as it was, as it is, twice or not at
        all; `changes` since the first page tell of it.
        """

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""

    def last_change(self) -> int:
        """Return the number of the latest change; 0 for a store that never changed. Cheap."""

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, in order; None if some of them are forgotten."""

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return a small JSON text kept beside the records (counts, evidence), or None."""

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace a note by `change(note)` in one transaction, so that no other update is lost."""

    def clear(self, tenant: str | None = None) -> int:
        """Remove records and notes of the tenant, or of all (None); return how many records."""

    def close(self) -> None:
        """Release files and connections; calling it twice is fine."""


class ResponseStore(Protocol):
    """Texts under exact keys, in the order of their use. Safe from several threads.

    A text is alive while less than its `ttl_s` has passed since it was written or last got; one
    that is not is never returned. Every method may raise `StoreUnavailable`.
    """

    def get(self, key: str, *, now_s: float) -> str | None:
        """Return the living text and make it the one used last, its age beginning anew; or None.

        A text that is not what was written is dropped: None.
        """

    def has(self, key: str, *, now_s: float) -> bool:
        """Return whether there is a living text under `key`; that is no use of it."""

    def set(
        self, key: str, text: str, *, group: str, ttl_s: float | None, now_s: float, limit: Room
    ) -> int:
        """Keep `text`, replacing what was there; return how many others made room for it.

        The ones used longest ago go first, until all that is kept is within `limit`. A text that
        is over the limit by itself is not kept, and nothing else goes for it. `ttl_s` None: lives
        until it must make room.
        """

    def remove(self, keys: Sequence[str]) -> int:
        """Forget texts; return how many were there."""

    def keys(self, *, group: str | None = None) -> Sequence[str]:
        """Return the keys of `group`, or all (None), sorted; those no longer alive too."""

    def room(self) -> Room:
        """Return how much is kept; what is no longer alive counts until it is found or goes."""

    def clear(self) -> int:
        """Forget everything; return how many texts there were."""

    def close(self) -> None:
        """Release files and connections; calling it twice is fine."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What a planner is asked."""

    prompt: str
    schema: PromptSchema | None
    """None if no normalizer could tell."""
    catalog: Catalog
    params: tuple[Parameter, ...] = ()
    """What is known of the prompt's values: from the caller, else from the schema."""
    params_read: bool = False
    """Whether `params` are from the schema: read out of the prompt, and not given by the caller."""
    failure: str = ""
    """What went wrong with the last plan for this prompt; empty the first time."""
    grounding: Grounded | None = None
    """The use case that the prompt was found to be, with the rules of its domain; None: none."""
    tenant: str = "default"
    """Whose prompt it is; a planner that learns keeps tenants apart."""
    example: "PlanOption | None" = None
    """A plan made for a prompt near to this one, to look at and not to take over; None: none."""


@dataclass(frozen=True, slots=True)
class Planned:
    """What a planner answers."""

    plan: ExecutionPlan
    """May hold literal values of the prompt, or `{{params.x}}` placeholders, or both."""
    params: tuple[Parameter, ...]
    """The parameters that the plan depends on."""
    planner: str
    """Which planner made it, and by which version of its prompt."""
    intents: JsonObject | None = None
    """How the planner took the goal apart, as `planners.intent_graph.IntentGraph` tells it; None if
    it did not."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What a verifier is asked."""

    prompt: str
    """The new prompt."""
    planned: str
    """The prompt that the plan was made for."""
    plan: JsonObject
    """The plan with the values of the new prompt."""
    values: Mapping[str, Json]
    """Parameter name → value of the new prompt."""


@runtime_checkable
class Verifier(Protocol):
    """Says whether a plan that was made for one prompt answers another. Safe from several threads.

    It is asked only where likeness alone keeps a plan from being served.
    """

    def verify(self, question: Verification) -> bool | None:
        """Return whether the plan answers the prompt; None to abstain.

        Raises:
            ModelError: what is behind it cannot answer; that counts as a miss.
        """


@dataclass(frozen=True, slots=True)
class PlanOption:
    """A cached plan that a prompt may mean."""

    prompt: str
    """The prompt that it was made for."""
    plan: JsonObject
    """The plan with the values of the new prompt; with those of its own if any is `missing`."""
    missing: Mapping[str, Json] = field(default_factory=dict)
    """Values that the prompt's words do not tell by rule: name → the value that the plan was made
    with. Who chooses the plan tells them."""


class Choice(NamedTuple):
    """A plan that was chosen."""

    position: int
    """Which of the options; from 0."""
    values: Mapping[str, Json]
    """What the prompt says for each of its `missing` names."""


class Selector(Protocol):
    """Says which of a few cached plans a prompt means. Safe from several threads."""

    def select(self, prompt: str, options: Sequence[PlanOption]) -> Choice | int | None:
        """Return the plan that does what `prompt` asks; None if none does.

        A number is the position of a plan that misses no value.

        Raises:
            ModelError: what is behind it cannot answer; then the prompt is planned.
        """


class Normalizer(Protocol):
    """From a prompt to a schema, in the catalog's words. Safe from several threads."""

    def normalize(
        self, prompt: str, *, catalog: Catalog, params: Sequence[Parameter] = ()
    ) -> PromptSchema:
        """Return the schema of `prompt`; partial if some of its words stay unexplained.

        `params` are values that the caller holds already.

        Raises:
            NormalizationError: no valid schema after all attempts.
            ModelError: the model behind it cannot answer.
        """


class Planner(Protocol):
    """From a prompt and its schema to a plan. Safe from several threads."""

    def plan(self, request: PlanRequest) -> Planned:
        """Return a plan that passes `plans.checks` against the catalog.

        Raises:
            NotActionable: the catalog cannot do what was asked; asking again will not help.
            PlanningError: no valid plan after all attempts.
            ModelError: the model behind it cannot answer.
        """


@dataclass(frozen=True, slots=True)
class Limits:
    """What one execution may use."""

    max_steps: int = 100
    """Nodes visited, each visit counted."""
    timeout_s: float = 60.0
    """Seconds from start to answer."""
    call_timeout_s: float = 30.0
    """Seconds that one operation may take."""
    max_output_bytes: int = 10 * 2**20
    """Bytes of canonical JSON that one result may have; all results of a run together: eight times
    as many."""
    allow_writes: bool = True
    """Whether operations with effect `write` may be called."""


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What one node of a plan did."""

    node: str
    operation: str
    """Empty for a node that calls nothing."""
    seconds: float
    input: Json = None
    output: Json = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What executing a plan gave."""

    value: Json
    """The result of the plan."""
    text: str
    """The result as text for a person."""
    nodes: tuple[NodeResult, ...] = field(default=())
    """The nodes in the order of their execution."""


class Engine(Protocol):
    """Runs plans of one format. Holds no state between runs; safe from several threads."""

    def execute(
        self,
        plan: ExecutionPlan,
        *,
        catalog: Catalog,
        limits: Limits,
        clock: Clock,
        observer: Observer,
        run: str = "",
    ) -> Outcome:
        """Run a plan with its values already bound, and return what came out.

        Raises:
            InvalidPlan: the plan is malformed.
            ExecutionError: an operation failed or was refused, or a limit was reached.
        """
