"""What semcache needs from stores and vector indexes, and the records that cross."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""Shape `(dim,)`, float32, L2-normalized."""
Vectors = NDArray[np.float32]
"""Shape `(rows, dim)`, float32, rows L2-normalized."""


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
