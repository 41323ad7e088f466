"""What the databases of a store do not share: how a statement is run, and what values look like."""

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from semcache.ports import Vector


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
        return json.dumps({name: _shown(getattr(self, name)) for name in RecordRow.__slots__})


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


def _shown(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else value
