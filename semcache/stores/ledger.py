"""The ledger of a disk store: what records take, what they are worth, and who leases what.

    n/<tenant>                         how many records the tenant has, and their bytes, sealed
    t/total                            the sums of these over all tenants, sealed
    o/<tenant>/<worth>/<change>/<id>   the id: the order of eviction
    u/<tenant>/<id>                    uses of a record: [count, last, worth], sealed; none: unused
    f/<tenant>/<lease>                 [holder, until], sealed

Each function works within the transaction of its caller. What is damaged is counted anew from the
records, at the cost of reading the tenant: a sum that is off by a bit would evict what need not go.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from semcache.ports import Record, Room, Use
from semcache.stores.codec import decode, seal, unseal
from semcache.stores.places import escape, last_part, prefix, row, sortable, unescape
from semcache.stores.worth import unused

if TYPE_CHECKING:
    from semcache.stores.database import Database

TOTAL = "t/total"
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


def move(db: "Database", record: Record, use: Use) -> None:
    """Give a record another use."""
    _unrank(db, record)
    _rank(db, record, use)


def _rank(db: "Database", record: Record, use: Use) -> None:
    rows = [(_order(record, use), record.id)]
    if use != unused(record):
        text = json.dumps([use.count, use.last_s, use.worth])
        rows.append((row("u", record.tenant, record.id), seal(text)))
    db.point(rows)


def _unrank(db: "Database", record: Record) -> Use:
    use = use_of(db, record)
    if not db.drop(_order(record, use)):  # a damaged use, or written by an earlier semcache
        db.drop_pointers(prefix("o", record.tenant), record.id)
    db.drop(row("u", record.tenant, record.id))
    return use


def _order(record: Record, use: Use) -> str:
    place = f"{sortable(use.worth)}/{record.change:016d}"
    return f"o/{escape(record.tenant)}/{place}/{escape(record.id)}"


def least(db: "Database", tenant: str, *, beside: str | None) -> str | None:
    """Return the id of the record worth least that is not `beside`; None if there is none."""
    for _, value in db.under(prefix("o", tenant), limit=2):
        known = value.decode(errors="replace")
        if known != beside:
            return known
    return None


def use_of(db: "Database", record: Record) -> Use:
    """Return the use of a record that is there."""
    sealed = db.content(row("u", record.tenant, record.id))
    return (None if sealed is None else _use(sealed)) or unused(record)


def used(db: "Database", tenant: str) -> dict[str, Use]:
    """Return the use of the tenant's records that were used, by id."""
    found = ((last_part(name), _use(sealed)) for name, sealed in db.under(prefix("u", tenant)))
    return {known: use for known, use in found if use is not None}


def _use(sealed: bytes) -> Use | None:
    try:
        count, last_s, worth = json.loads(unseal(sealed))
    except ValueError:
        return None
    return Use(count, last_s, worth)


def room(db: "Database", tenant: str) -> Room:
    """Return what the records of the tenant take."""
    sealed = db.content(row("n", tenant))
    if sealed is None:
        return Room(0, 0)
    return _room(sealed) or _counted(db, tenant)


def total(db: "Database") -> Room:
    """Return what the records of all tenants take."""
    sealed = db.content(TOTAL)
    found = None if sealed is None else _room(sealed)
    if found is not None:
        return found
    rooms = [one for _, one in rooms_of_all(db)]
    return Room(sum(one.entries for one in rooms), sum(one.bytes for one in rooms))


def rooms_of_all(db: "Database") -> Iterator[tuple[str, Room]]:
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


def _counted(db: "Database", tenant: str) -> Room:
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
