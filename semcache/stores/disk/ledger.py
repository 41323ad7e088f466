"""The ledger of a disk store: what records take, what they are worth, and who leases what.

    n/<tenant>                         how many records the tenant has, and their bytes, sealed
    t/total                            the sums of these over all tenants, sealed
    o/<tenant>/<worth>/<change>/<id>   the id: the order of eviction
    u/<tenant>/<id>                    uses of a record and where it is in the order, sealed
    f/<tenant>/<lease>                 [holder, until], sealed

Each function works within the transaction of its caller. What is damaged is counted anew from the
records, at the cost of reading the tenant: a sum that is off by a bit would evict what need not go.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from semcache.ports import Record, Room, Use
from semcache.stores.disk.places import escape, last_part, prefix, row, sortable, unescape
from semcache.stores.disk.reads import Reads
from semcache.stores.eviction import unused, used
from semcache.stores.records import decode, seal, unseal

if TYPE_CHECKING:
    from semcache.stores.disk.database import Database

TOTAL = "t/total"
_RANKS_READ = 16  # records looked at in one go for the one that is worth least
_LEASES_SWEPT = 16  # leases of dead holders that one who takes a lease clears away


def enter(db: "Database", record: Record, use: Use) -> None:
    """Note a record that is written now; its tenant must not have its id."""
    _add(db, record.tenant, 1, record.size)
    _rank(db, record, use)


def leave(db: "Database", record: Record) -> Use:
    """Forget a record that goes now; return its use."""
    _add(db, record.tenant, -1, -record.size)
    return _unrank(db, record)


def lose(db: "Database", tenant: str, known: str) -> None:
    """Forget a record that went and cannot be read, so that only its id is known."""
    db.drop_pointers(prefix("o", tenant), known)
    db.drop(row("u", tenant, known))
    _recount(db, tenant)


class _Standing(NamedTuple):
    """How a record that was used stands in the order of eviction."""

    use: Use
    ranked: float
    """The worth by which it is in the order: what it was when somebody last looked there. Worth
    only grows, so that a use need not move it, and the least is found by looking again."""
    cost_s: float
    created_s: float
    size: int

    @classmethod
    def of(cls, record: Record, use: Use) -> "_Standing":
        return cls(use, use.worth, record.cost_s, record.created_s, record.size)


def add_uses(
    db: "Database",
    tenant: str,
    uses: Mapping[str, int],
    now_s: float,
    *,
    read: Callable[[str], Record | None],
) -> None:
    """Add to the records that are there how often each was used, by id.

    `read`: how to read a record, which is done only for one that was never used.
    """
    places = {row("u", tenant, known): known for known in uses}
    kept = db.contents([*places])
    rows = []
    for place, known in places.items():
        standing = _standing(kept.get(place))
        if standing is None:
            record = read(known)
            if record is None:
                continue
            standing = _Standing.of(record, unused(record))
        more = used(standing.use, standing, uses[known], now_s)
        rows.append((place, _sealed(standing._replace(use=more))))
    db.point(rows)


def _rank(db: "Database", record: Record, use: Use) -> None:
    db.point([(_order(record, use.worth), record.id)])
    if use != unused(record):
        db.point([(row("u", record.tenant, record.id), _sealed(_Standing.of(record, use)))])


def _unrank(db: "Database", record: Record) -> Use:
    place = row("u", record.tenant, record.id)
    standing = _standing(db.content(place)) or _Standing.of(record, unused(record))
    if not db.drop(_order(record, standing.ranked)):  # damaged, or of an earlier semcache
        db.drop_pointers(prefix("o", record.tenant), record.id)
    db.drop(place)
    return standing.use


def _order(record: Record, worth: float) -> str:
    place = f"{sortable(worth)}/{record.change:016d}"
    return f"o/{escape(record.tenant)}/{place}/{escape(record.id)}"


def least(db: "Database", tenant: str, *, beside: str | None) -> str | None:
    """Return the id of the record worth least that is not `beside`; None if there is none."""
    while True:
        moved = False
        for name, value in list(db.under(prefix("o", tenant), limit=_RANKS_READ)):
            known = value.decode(errors="replace")
            if known == beside:
                continue
            if not _moved(db, tenant, name, known):
                if not moved:
                    return known
                break  # one that was moved may stand before it now
            moved = True
        if not moved:
            return None


def _moved(db: "Database", tenant: str, name: str, known: str) -> bool:
    """Put a record where its worth belongs; return whether it stood elsewhere."""
    place = row("u", tenant, known)
    standing = _standing(db.content(place))
    if standing is None or standing.use.worth == standing.ranked:
        return False
    kind, owner, _, change, last = name.split("/")
    db.drop(name)
    here = f"{kind}/{owner}/{sortable(standing.use.worth)}/{change}/{last}"
    db.point([(here, known), (place, _sealed(standing._replace(ranked=standing.use.worth)))])
    return True


def uses(db: Reads, tenant: str) -> dict[str, Use]:
    """Return the use of the tenant's records that were used, by id."""
    found = ((last_part(n), _standing(sealed)) for n, sealed in db.under(prefix("u", tenant)))
    return {known: standing.use for known, standing in found if standing is not None}


def _sealed(standing: _Standing) -> str:
    use = standing.use
    return seal(json.dumps([use.count, use.last_s, use.worth, *standing[1:]]))


def _standing(sealed: bytes | None) -> _Standing | None:
    """Return how a record stands; None for one that was never used, or whose row is damaged."""
    if sealed is None:
        return None
    try:
        count, last_s, worth, ranked, cost_s, created_s, size = json.loads(unseal(sealed))
    except ValueError:
        return None
    return _Standing(Use(count, last_s, worth), ranked, cost_s, created_s, size)


def room(db: Reads, tenant: str) -> Room:
    """Return what the records of the tenant take."""
    sealed = db.content(row("n", tenant))
    if sealed is None:
        return Room(0, 0)
    return _room(sealed) or _counted(db, tenant)


def total(db: Reads) -> Room:
    """Return what the records of all tenants take."""
    sealed = db.content(TOTAL)
    found = None if sealed is None else _room(sealed)
    if found is not None:
        return found
    rooms = [one for _, one in rooms_of_all(db)]
    return Room(sum(one.entries for one in rooms), sum(one.bytes for one in rooms))


def rooms_of_all(db: Reads) -> Iterator[tuple[str, Room]]:
    """Yield each tenant that has records, and what they take."""
    for name, sealed in list(db.under("n/")):
        tenant = unescape(name.partition("/")[2])
        yield tenant, _room(sealed) or _counted(db, tenant)


def _room(sealed: bytes) -> Room | None:
    """Return a room as it was written; None if it was not, or without bytes, as it used to be."""
    try:
        entries, size = unseal(sealed).split(" ")
        return Room(int(entries), int(size))
    except ValueError:
        return None


def _add(db: "Database", tenant: str, entries: int, size: int) -> None:
    # Called before the rows change, since damaged sums are taken from them.
    everything, own = total(db), room(db, tenant)
    own = Room(own.entries + entries, own.bytes + size)
    everything = Room(everything.entries + entries, everything.bytes + size)
    _write(db, row("n", tenant), own)
    _write(db, TOTAL, everything)


def _write(db: "Database", name: str, taken: Room) -> None:
    if taken.entries > 0:
        db.point([(name, seal(f"{taken.entries} {taken.bytes}"))])
    else:
        db.drop(name)


def _recount(db: "Database", tenant: str) -> None:
    """Count the tenant's records and those of all anew, from what is there."""
    _write(db, row("n", tenant), _counted(db, tenant))
    db.drop(TOTAL)


def _counted(db: Reads, tenant: str) -> Room:
    entries = size = 0
    for _, sealed in db.under(prefix("r", tenant)):
        entries += 1
        try:
            size += decode(sealed).size
        except ValueError:
            size += len(sealed)  # until it is set aside
    return Room(entries, size)


def clear(db: "Database", tenant: str) -> None:
    """Forget the records of the tenant, all of which go now; leases stay with their holders."""
    own, everything = room(db, tenant), total(db)
    db.drop_under(prefix("o", tenant))
    db.drop_under(prefix("u", tenant))
    db.drop(row("n", tenant))
    rest = Room(everything.entries - own.entries, everything.bytes - own.bytes)
    _write(db, TOTAL, rest)


def lease(
    db: "Database", tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float
) -> bool:
    """Give `holder` the lease until `now_s + ttl_s`, if nobody else has it now."""
    place = row("f", tenant, name)
    has, until_s = _lease(db.content(place)) or (holder, now_s)
    if has != holder and until_s > now_s:
        return False
    for other, sealed in list(db.under(prefix("f", tenant), limit=_LEASES_SWEPT)):
        known = _lease(sealed)
        if known is None or known[1] <= now_s:
            db.drop(other)
    db.point([(place, seal(json.dumps([holder, now_s + ttl_s])))])
    return True


def release(db: "Database", tenant: str, name: str, holder: str) -> None:
    """Give the lease back, if `holder` has it."""
    place = row("f", tenant, name)
    known = _lease(db.content(place))
    if known is not None and known[0] == holder:
        db.drop(place)


def _lease(sealed: bytes | None) -> tuple[str, float] | None:
    """Return holder and end of a lease; None for one that is not there, or damaged: it is free."""
    if sealed is None:
        return None
    try:
        holder, until_s = json.loads(unseal(sealed))
    except ValueError:
        return None
    return str(holder), float(until_s)
