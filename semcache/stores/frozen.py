"""A frozen store: it serves what is there, and nothing that happens reaches it."""
# ruff: noqa: ARG002 - what is refused takes the arguments of the port

from collections.abc import Callable, Iterator, Mapping, Sequence

from semcache.errors import StoreUnavailable
from semcache.ports import PAGE, UNBOUNDED, Bounds, Change, PlanStore, Put, Record, Room, Use
from semcache.stores.memory import MemoryStore

FROZEN = "the cache is frozen: it serves and keeps nothing; open it without `frozen` to change it"


class FrozenStore:
    """Another store for reading alone, as `ports.PlanStore` promises but for its writes.

    Records cannot be written or removed. Notes and leases are kept in memory, over those of the
    store, so that counts, vetoes and failures go on for as long as the process lives.
    """

    def __init__(self, beneath: PlanStore) -> None:
        self.beneath = beneath
        """The store that is served."""
        self._notes: dict[tuple[str, str], str | None] = {}
        self._memory = MemoryStore()

    def put(self, record: Record, *, bounds: Bounds = UNBOUNDED, over: int | None = None) -> Put:
        """Raise StoreUnavailable: nothing is written."""
        raise StoreUnavailable(FROZEN)

    def remove(self, tenant: str, ids: Sequence[str]) -> int:
        """Raise StoreUnavailable: nothing is removed."""
        raise StoreUnavailable(FROZEN)

    def clear(self, tenant: str | None = None) -> int:
        """Raise StoreUnavailable: nothing is removed."""
        raise StoreUnavailable(FROZEN)

    def use(self, tenant: str, uses: Mapping[str, int], *, now_s: float) -> None:
        """Do nothing: uses matter for eviction, and nothing is evicted."""

    def lease(self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float) -> bool:
        """Give the lease among the threads of this process; see `ports.PlanStore`."""
        return self._memory.lease(tenant, name, holder, ttl_s=ttl_s, now_s=now_s)

    def release(self, tenant: str, name: str, holder: str) -> None:
        """Give the lease back."""
        self._memory.release(tenant, name, holder)

    def get_note(self, tenant: str, name: str) -> str | None:
        """Return the note as this process has it, else as the store has it."""
        if (tenant, name) in self._notes:
            return self._notes[tenant, name]
        return self.beneath.get_note(tenant, name)

    def put_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep the note in memory."""
        self.update_note(tenant, name, lambda _: text)

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> None:
        """Replace the note in memory by `change(note)`."""

        def replaced(_: str | None) -> None:
            self._notes[tenant, name] = change(self.get_note(tenant, name))

        self._memory.update_note("", "", replaced)  # one thread at a time

    def get(self, tenant: str, id: str) -> Record | None:  # noqa: A002 - the word of the record
        """Return the record, or None; see `ports.PlanStore`."""
        return self.beneath.get(tenant, id)

    def find(self, tenant: str, key: str) -> Sequence[Record]:
        """Return the records that answer to `key`."""
        return self.beneath.find(tenant, key)

    def scan(self, tenant: str) -> Sequence[Record]:
        """Return every readable record of the tenant."""
        return self.beneath.scan(tenant)

    def pages(self, tenant: str, *, size: int = PAGE) -> Iterator[Sequence[Record]]:
        """Yield what `scan` returns, at most `size` records at a time."""
        return self.beneath.pages(tenant, size=size)

    def labelled(self, tenant: str, label: str) -> Sequence[str]:
        """Return the ids of the records that carry `label`, sorted."""
        return self.beneath.labelled(tenant, label)

    def count(self, tenant: str) -> int:
        """Return how many records the tenant has."""
        return self.beneath.count(tenant)

    def tenants(self) -> Sequence[str]:
        """Return the tenants that have records, sorted."""
        return self.beneath.tenants()

    def uses(self, tenant: str) -> Mapping[str, Use]:
        """Return the use of every record of the tenant, as the store counted it."""
        return self.beneath.uses(tenant)

    def room(self, tenant: str | None = None) -> Room:
        """Return what the records take."""
        return self.beneath.room(tenant)

    def last_change(self) -> int:
        """Return the number of the latest change."""
        return self.beneath.last_change()

    def changes(self, since: int) -> Sequence[Change] | None:
        """Return the changes after number `since`, if they are still told."""
        return self.beneath.changes(since)

    def close(self) -> None:
        """Release files and connections."""
        self._memory.close()
        self.beneath.close()
