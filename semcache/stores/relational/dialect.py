"""What the databases of a store do not share; and notes and leases, which need nothing else."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from semcache.ports import Vector
from semcache.stores.records import check_text, seal, unseal

_SWEPT = 16
"""Leases of dead holders that are cleared away at most whenever a lease is taken."""
_DEAD_S = 3600.0
"""Seconds after its end from which nobody renews a lease: clocks of machines differ by less."""


class Rows(Protocol):
    """Rows that a statement selected."""

    def fetchone(self) -> Any:  # noqa: ANN401 - of any types
        """Return the next row, a tuple; None after the last."""

    def fetchall(self) -> list[Any]:
        """Return the rows that are left."""


class SqlRunner(Protocol):
    """A function that runs a statement."""

    def __call__(self, statement: str, values: Sequence[object] = (), /) -> Rows:
        """Run a statement with its values."""


@dataclass(frozen=True, slots=True)
class RecordRow:
    """A record as its table has it; maybe not as it was written."""

    place: int
    """Number of the row, where the dialect needs it; else 0."""
    tenant: str
    id: str
    change: int
    keys: Any
    """A list as the dialect sends it; so are `labels`."""
    labels: Any
    body: str
    embedder: str
    created_s: float
    expires_s: float | None
    cost_s: float
    checksum: bytes
    embedding: bytes | None

    def text(self) -> str:
        """Return the row as text, to be looked at by a person."""
        columns = {name: getattr(self, name) for name in RecordRow.__slots__}
        return json.dumps(columns, default=bytes.hex)


class Dialect(ABC):
    """A database as the statements on the tables want it, on the connection of a caller.

    A statement has a `?` for each value.
    """

    row_place: ClassVar[str]
    """Number of a row of `records r`, as SQL."""
    for_update: ClassVar[str]
    """End of a SELECT that makes other writers wait; empty where beginning a transaction does."""
    unlocked: ClassVar[str]
    """End of a SELECT that passes over rows that another transaction has locked."""
    collation: ClassVar[str]
    """Collation by which texts sort as their bytes do."""
    gapless: ClassVar[bool]
    """Whether a reader sees the changes of all tenants, so that a gap in the numbers is damage."""

    def __init__(self, run: SqlRunner) -> None:
        self.run = run
        """Runs a statement."""
        self.told: int | None = None
        """Number of the last change that was written or read here; None if none was."""

    @staticmethod
    @abstractmethod
    def list_value(texts: Sequence[str]) -> object:
        """Return texts as the value of a column."""

    @staticmethod
    @abstractmethod
    def list_of(sent: Any) -> list[str]:  # noqa: ANN401 - of the dialect's type
        """Return the texts that a column has; raises ValueError or TypeError if it has none."""

    @staticmethod
    @abstractmethod
    def vector_value(vector: Vector) -> object:
        """Return a vector as the value of a column."""

    @staticmethod
    @abstractmethod
    def vector_of(sent: bytes) -> Vector:
        """Return the vector that a column has; raises ValueError or TypeError if it has none."""

    @abstractmethod
    def lock_note(self, tenant: str, name: str) -> None:
        """Wait until no other transaction updates the note."""


class NoteTables(Dialect):
    """The tables of notes, of leases, and of what was found damaged."""

    def note(self, tenant: str, name: str) -> str | None:
        """Return a note as it is sealed, or None."""
        query = "SELECT sealed FROM notes WHERE tenant = ? AND name = ?"
        row = self.run(query, (tenant, name)).fetchone()
        return None if row is None else str(row[0])

    def update_note(
        self, tenant: str, name: str, change: Callable[[str | None], str | None]
    ) -> bool:
        """Replace a note by `change(note)`; return whether it was as it had been written.

        If not, it is kept aside, and `change` gets None.
        """
        self.lock_note(tenant, name)
        sealed = self.note(tenant, name)
        old, whole = None, True
        try:
            old = None if sealed is None else unseal(sealed.encode())
        except ValueError:
            whole = False
            self.keep_damaged(tenant, f"note/{name}", sealed or "")
        self.write_note(tenant, name, change(old))
        return whole

    def write_note(self, tenant: str, name: str, text: str | None) -> None:
        """Keep `text` under `name`, or forget it (None)."""
        if text is None:
            self.run("DELETE FROM notes WHERE tenant = ? AND name = ?", (tenant, name))
            return
        check_text(tenant, name, text)
        self.run(
            "INSERT INTO notes (tenant, name, sealed) VALUES (?, ?, ?)"
            " ON CONFLICT (tenant, name) DO UPDATE SET sealed = excluded.sealed",
            (tenant, name, seal(text)),
        )

    def set_note_aside(self, tenant: str, name: str, sealed: str) -> None:
        """Move a note that is not as it was written to the damaged, if it is still `sealed`."""
        if self.note(tenant, name) == sealed:
            self.keep_damaged(tenant, f"note/{name}", sealed)
            self.write_note(tenant, name, None)

    def keep_damaged(self, tenant: str, place: str, content: str) -> None:
        """Keep `content`, found at `place`, for a person to look at."""
        self.run(
            "INSERT INTO damaged (tenant, place, change, content)"
            " SELECT ?, ?, last_change, ? FROM state WHERE true ON CONFLICT DO NOTHING",
            (tenant, place, content),
        )

    def damaged_count(self, tenant: str) -> int:
        """Return how many records and notes of the tenant are kept aside."""
        query = "SELECT count(*) FROM damaged WHERE tenant = ?"
        return int(self.run(query, (tenant,)).fetchone()[0])

    # Leases --------------------------------------------------------------------------------

    def take_lease(
        self, tenant: str, name: str, holder: str, *, ttl_s: float, now_s: float
    ) -> bool:
        """Give `holder` the lease until `now_s + ttl_s`, unless another has it; return if given."""
        self.run(
            "DELETE FROM leases WHERE (tenant, name) IN"  # noqa: S608 - a text of ours
            f" (SELECT tenant, name FROM leases WHERE until_s < ? LIMIT ?{self.unlocked})",
            (now_s - _DEAD_S, _SWEPT),
        )
        # One that would last longer than two of its kind is of a clock that was set back since.
        self.run(
            "INSERT INTO leases AS l (tenant, name, holder, until_s) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (tenant, name) DO UPDATE"
            " SET holder = excluded.holder, until_s = excluded.until_s"
            " WHERE l.holder = excluded.holder OR l.until_s <= ? OR l.until_s > ?",
            (tenant, name, holder, now_s + ttl_s, now_s, now_s + 2 * ttl_s),
        )
        query = "SELECT holder FROM leases WHERE tenant = ? AND name = ?"
        return bool(self.run(query, (tenant, name)).fetchone() == (holder,))

    def end_lease(self, tenant: str, name: str, holder: str) -> None:
        """End the lease, if `holder` has it."""
        statement = "DELETE FROM leases WHERE tenant = ? AND name = ? AND holder = ?"
        self.run(statement, (tenant, name, holder))
