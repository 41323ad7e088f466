"""Every Protocol: what semcache needs from the world, and the values that cross.

Those of stores and vector indexes are in `ports.stores`, and to be had from here as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounded
from semcache.events import Event
from semcache.plans.document import ExecutionPlan
from semcache.ports.stores import PAGE as PAGE
from semcache.ports.stores import UNBOUNDED as UNBOUNDED
from semcache.ports.stores import Bounds as Bounds
from semcache.ports.stores import Change as Change
from semcache.ports.stores import Journal as Journal
from semcache.ports.stores import Neighbor as Neighbor
from semcache.ports.stores import PlanStore as PlanStore
from semcache.ports.stores import Put as Put
from semcache.ports.stores import Record as Record
from semcache.ports.stores import ResponseStore as ResponseStore
from semcache.ports.stores import Room as Room
from semcache.ports.stores import Snapshot as Snapshot
from semcache.ports.stores import Snapshots as Snapshots
from semcache.ports.stores import Use as Use
from semcache.ports.stores import Vector as Vector
from semcache.ports.stores import VectorIndex as VectorIndex
from semcache.ports.stores import Vectors as Vectors
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema import PromptSchema


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
        """Return a plan that passes `plans.codec` against the catalog.

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
