"""A correction: a veto or a removal, as it is kept until the store has it, and its results."""

from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal, Self

from semcache.cache.entries.entry import Entry
from semcache.cache.reports import Why
from semcache.canonical import dumps
from semcache.errors import InvalidJson, StoreCorrupt

if TYPE_CHECKING:
    from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Correction:
    """One thing that must hold from now on."""

    kind: Literal["remove", "clear", "veto"]
    tenant: str | None
    """None: of every tenant."""
    entries: tuple[str, ...] = ()
    """Ids to remove, or the one that is vetoed."""
    labels: tuple[str, ...] = ()
    """Labels (`Record.labels`) of entries to remove."""
    template: str = ""
    """Digest of the template text that is never to be served the entry."""
    why: Why = "invalidated"

    def covers(self, tenant: str, entry_id: str, entry: Entry) -> bool:
        """Return whether the entry is not to be served any more."""
        if self.kind == "veto" or self.tenant not in (None, tenant):
            return False
        if self.kind == "clear" or entry_id in self.entries:
            return True
        return bool(self.labels) and not set(self.labels).isdisjoint(entry.labels)

    def to_text(self) -> str:
        """Return the correction as JSON."""
        return dumps({k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()})

    @classmethod
    def of(cls, text: str) -> "Correction":
        """Return the correction that `to_text` wrote.

        Raises:
            StoreCorrupt: this is none.
        """
        # Beside its user: pydantic takes longer to load than all of semcache.
        from semcache.schemas import read  # noqa: PLC0415

        try:
            found = read(_schema(), text, what="the correction")
        except InvalidJson as error:
            raise StoreCorrupt(f"a correction cannot be read: {error}") from error
        if found.kind == "veto" and not (found.tenant and len(found.entries) == 1):
            raise StoreCorrupt("a correction cannot be read: a veto is of one entry of a tenant")
        return found


@cache
def _schema() -> "TypeAdapter[Correction]":
    from pydantic import TypeAdapter  # noqa: PLC0415 - as above

    return TypeAdapter(Correction)


class Removed(int):
    """How many entries a removal removed: a number that also says whether all of it is done."""

    pending: str
    """Why it is not done yet, and what holds until it is; empty if it is done."""

    def __new__(cls, count: int, pending: str = "") -> Self:
        """Return the number `count` with what is pending."""
        made = super().__new__(cls, count)
        made.pending = pending
        return made


@dataclass(frozen=True, slots=True)
class Judgment:
    """What became of a caller's word on a hit."""

    outcome: Literal["counted", "vetoed", "removed"]
    """`counted`: it counts as evidence; `vetoed`: the hit is not served to that prompt again;
    `removed`: its entry goes."""
    pending: str = ""
    """Why it is not done yet, and what holds until it is; empty if it is done."""
