"""What a record is worth keeping for: which one goes when there must be room.

A record earns its place by what its next uses will save, for the bytes that it takes:

    worth = uses, older ones counting less * seconds to make it / bytes

which is the priority of GreedyDual-Size-Frequency (L. Cherkasova, "Improving WWW Proxies
Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Labs 1998). That one ages records
by a counter that the whole store shares and every eviction moves. Here a use of a day ago counts
half instead, and as in "Forward Decay" (Cormode, Shkapenyuk, Srivastava, Xu, ICDE 2009) the worth
is kept on a scale that time does not move: its binary logarithm in half-lives, plus the time, in
epoch seconds. So nothing is computed anew as time goes by, records of all tenants compare, and
those that were never used, cost the same and are of one size go in the order of their creation.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from semcache.ports import Bounds, Record, Room, Use

HALF_LIFE_S = 24 * 3600.0
"""Seconds after which a use counts half: a plan that is asked for daily stays over a night."""
USUAL_BYTES = 4096
"""Bytes whose weight is 1 where making took 1 s; it moves all records alike."""
_LEAST = 64
"""Places of a ranking that are not worth looking for stale ones."""
LEAST_S = 0.001
"""Seconds that making a record takes at least, so that the weight has a logarithm."""


class Weighable(Protocol):
    """What of a record its worth depends on."""

    @property
    def cost_s(self) -> float:
        """Seconds that it took to make what it holds."""

    @property
    def created_s(self) -> float:
        """Epoch seconds."""

    @property
    def size(self) -> int:
        """Bytes that it takes."""


def unused(record: Weighable) -> Use:
    """Return the use of a record that was just made."""
    return Use(0, record.created_s, _at(record, 1, record.created_s))


def used(use: Use, record: Weighable, count: int, now_s: float) -> Use:
    """Return `use` with `count` more uses of `record` at `now_s`."""
    worth = _both(use.worth, _at(record, count, now_s))
    return Use(use.count + count, max(use.last_s, now_s), worth)


def replaced(use: Use, record: Weighable) -> Use:
    """Return the use of `record` in the place of one that had `use`: what earned it stays."""
    fresh = unused(record)
    return Use(use.count, max(use.last_s, fresh.last_s), _both(use.worth, fresh.worth))


class Occupancy(Protocol):
    """What a store keeps, while room is made in it."""

    def room(self, tenant: str) -> Room:
        """Return what the records of the tenant take."""

    def total(self) -> Room:
        """Return what the records of all tenants take."""

    def largest(self, *, in_bytes: bool) -> Sequence[str]:
        """Return the two tenants that have most, most first (bytes, else records; ties by name).

        One tenant where there is no other; cost that does not grow with the tenants.
        """

    def evict(self, tenant: str, beside: Record) -> str | None:
        """Remove the tenant's record that is worth least and not `beside`; return its id.

        None if there is none.
        """


def make_room(kept: Occupancy, record: Record, bounds: Bounds) -> list[tuple[str, str]]:
    """Remove what is worth least until all is in `bounds`; return tenant and id of what went.

    First of the tenant of `record`, which was just written and stays, over the bounds of a tenant;
    then, over the bounds of all, of the tenant that has most at that moment.
    """
    gone: list[tuple[str, str]] = []
    tenant, own = record.tenant, (bounds.tenant_entries, bounds.tenant_bytes)
    while own != (None, None) and surplus(kept.room(tenant), *own):
        if not _evict([tenant], kept, record, gone):
            break
    every = (bounds.entries, bounds.bytes)
    while every != (None, None) and surplus(total := kept.total(), *every):
        in_bytes = bounds.bytes is not None and total.bytes > bounds.bytes
        # The second of them is for where the largest has nothing but `record`.
        if not _evict(kept.largest(in_bytes=in_bytes), kept, record, gone):
            break
    return gone


def _evict(
    tenants: Sequence[str], kept: Occupancy, record: Record, gone: list[tuple[str, str]]
) -> bool:
    for tenant in tenants:
        known = kept.evict(tenant, record)
        if known is not None:
            gone.append((tenant, known))
            return True
    return False


class TenantRanking:
    """Which tenants have most, at a cost that does not grow with the tenants."""

    def __init__(self, measure: Callable[[str], int]) -> None:
        """Begin with none; `measure`: how much a tenant has."""
        self._measure = measure
        self._heap: list[tuple[int, str]] = []
        self._changed: set[str] = set()
        """Tenants that have more or less than the last search found."""
        self._due = _LEAST
        """Places of the heap at which what is stale is taken out."""

    def changed(self, tenant: str) -> None:
        """Take in that the tenant has more or less. Of who has nothing left, nothing is kept."""
        if self._measure(tenant):
            self._changed.add(tenant)
        else:
            self._changed.discard(tenant)
        if len(self._heap) > self._due:
            self._heap = [one for one in set(self._heap) if self._holds(one)]
            heapq.heapify(self._heap)
            self._due = 2 * len(self._heap) + _LEAST

    def _holds(self, one: tuple[int, str]) -> bool:
        return -one[0] == self._measure(one[1]) > 0

    def largest(self) -> list[str]:
        """Return the two tenants that have most, most first, ties by name."""
        for tenant in self._changed:
            heapq.heappush(self._heap, (-self._measure(tenant), tenant))
        self._changed = set()
        found: list[tuple[int, str]] = []
        while self._heap and len(found) < 2:
            one = heapq.heappop(self._heap)
            if self._holds(one) and one not in found:  # else it is stale
                found.append(one)
        for one in found:
            heapq.heappush(self._heap, one)
        return [tenant for _, tenant in found]


def by_tenant(gone: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the ids of what went, by tenant."""
    found: dict[str, tuple[str, ...]] = {}
    for tenant, known in gone:
        found[tenant] = (*found.get(tenant, ()), known)
    return found


def surplus(kept: Room, entries: int | None, size: int | None) -> bool:
    """Return whether `kept` is over a bound."""
    return (entries is not None and kept.entries > entries) or (
        size is not None and kept.bytes > size
    )


def _at(record: Weighable, count: int, now_s: float) -> float:
    weight = count * max(record.cost_s, LEAST_S) * USUAL_BYTES / max(record.size, 1)
    return now_s + HALF_LIFE_S * math.log2(weight)


def _both(left: float, right: float) -> float:
    """Return the worth of two worths together: log2(2^left + 2^right), in half-lives."""
    more, less = max(left, right), min(left, right)
    return more + HALF_LIFE_S * math.log2(1 + 2 ** ((less - more) / HALF_LIFE_S))
