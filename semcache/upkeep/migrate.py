"""Migrate: everything of one store in another, of the same kind or not, encrypted or not."""

from collections.abc import Sequence
from dataclasses import dataclass

from semcache.cache.evidence.evidence_notes import NOTE
from semcache.cache.feedback.corrections import VETOES_NOTE
from semcache.cache.reports import STATISTICS_NOTE
from semcache.errors import InvalidInput, StoreCorrupt
from semcache.ports import PlanStore, Record

NOTES = (NOTE, VETOES_NOTE, STATISTICS_NOTE)
"""What is kept beside the records and moves with them; failures and leases are of the moment."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was copied."""

    tenants: int
    records: int
    notes: int
    passed_over: tuple[str, ...] = ()
    """What could not be read, as `tenant: what`."""


def migrate(source: PlanStore, target: PlanStore) -> Migrated:
    """Copy records, their vectors and uses, evidence, vetoes and counts of every tenant.

    Nothing is embedded or planned anew, and `source` stays as it is: others may go on using it, and
    what they had stored before this began is copied. Records keep the order of their changes, with
    other numbers. Running it again after a crash replaces what is there.

    Raises:
        InvalidInput: `target` has records that `source` has not: two caches are never mixed.
        StoreUnavailable: one of them cannot be used; what was copied up to then is whole.
    """
    tenants = source.tenants()
    strange = [name for name in target.tenants() if name not in tenants]
    if strange:
        raise InvalidInput(
            f"the target has plans of tenant {strange[0]!r}, and the source has none; name an "
            "empty target"
        )
    records = notes = 0
    passed_over: list[str] = []
    for tenant in tenants:
        count = source.count(tenant)  # before: others may write meanwhile
        found = source.scan(tenant)
        lost = count - len(found)
        if lost > 0:
            passed_over.append(f"{tenant}: {lost} records are not what was written")
        _refuse_strange(tenant, found, target)
        for record in found:
            target.put(record)
        records += len(found)
        _move_uses(tenant, source, target)
        notes += sum(_move_note(tenant, name, source, target, passed_over) for name in NOTES)
    return Migrated(len(tenants), records, notes, tuple(passed_over))


def _refuse_strange(tenant: str, found: Sequence[Record], target: PlanStore) -> None:
    ids = {record.id for record in found}
    strange = [record.id for record in target.scan(tenant) if record.id not in ids]
    if strange:
        raise InvalidInput(
            f"the target has entry {strange[0]!r} of tenant {tenant!r}, and the source has not; "
            "name an empty target"
        )


def _move_uses(tenant: str, source: PlanStore, target: PlanStore) -> None:
    there = target.uses(tenant)
    for known, use in source.uses(tenant).items():
        more = use.count - there[known].count if known in there else 0
        if more > 0:
            target.use(tenant, {known: more}, now_s=use.last_s)


def _move_note(
    tenant: str, name: str, source: PlanStore, target: PlanStore, passed_over: list[str]
) -> bool:
    try:
        note = source.get_note(tenant, name)
    except StoreCorrupt as error:
        passed_over.append(f"{tenant}: {error}")
        return False
    if note is None:
        return False
    target.put_note(tenant, name, note)
    return True
