"""Catalog: the operations that a plan may call, and the words of their domain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from types import MappingProxyType

from semcache.canonical import Json, digest, plain
from semcache.catalog.operation import Operation
from semcache.catalog.schemas import Schema, Violation, enums
from semcache.errors import InvalidJson, InvalidOperation, UnknownOperation


class Catalog:
    """Operations by name. Immutable; equal by content; safe from several threads.

    Iterating gives the operations, sorted by name.
    """

    __slots__ = ("_by_name", "_closed", "_fingerprint", "_fingerprints", "_schemas", "_synonyms")

    def __init__(
        self,
        operations: Iterable[Operation] = (),
        *,
        closed: Mapping[str, Sequence[str]] | None = None,
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        self._by_name = _named(operations)
        self._synonyms = dict(synonyms or {})
        self._closed = _domains(closed or {}, self._by_name.values())
        self._fingerprints = {
            name: operation.fingerprint for name, operation in self._by_name.items()
        }
        self._fingerprint = digest(list(self._fingerprints.values()))
        self._schemas = {
            name: Schema(operation.input_schema, name=name)
            for name, operation in self._by_name.items()
        }

    def get(self, name: str) -> Operation:
        """Return the operation of that name.

        Raises:
            UnknownOperation: there is none; the message lists names near it.
        """
        if name not in self._by_name:
            raise UnknownOperation(self.unknown(name))
        return self._by_name[name]

    def unknown(self, name: str) -> str:
        """Return what to tell someone who asked for `name`, which is not here."""
        near = get_close_matches(name, self._by_name, n=3) or list(self._by_name)[:10]
        known = ", ".join(map(repr, near)) if near else "it is empty"
        return f"no operation is named {name!r}; the catalog has: {known}"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all operations, sorted."""
        return tuple(self._by_name)

    @property
    def closed(self) -> Mapping[str, tuple[str, ...]]:
        """Field → the values that it can have: domains as declared, then enums of input schemas."""
        return MappingProxyType(self._closed)

    @property
    def synonyms(self) -> Mapping[str, str]:
        """Word of a prompt → the word or value that the catalog has for it."""
        return MappingProxyType(self._synonyms)

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex over the operations' fingerprints, by name; words are not part of it."""
        return self._fingerprint

    @property
    def fingerprints(self) -> Mapping[str, str]:
        """Name → fingerprint of each operation, computed once."""
        return MappingProxyType(self._fingerprints)

    def violations(self, name: str, value: Json) -> tuple[Violation, ...]:
        """Return every way in which `value` breaks the input schema of operation `name`.

        Raises:
            UnknownOperation: no operation is named so.
            InvalidOperation: its input schema is not a JSON Schema.
        """
        self.get(name)
        return self._schemas[name].violations(value)

    def with_(self, operation: Operation) -> "Catalog":
        """Return a catalog that also has `operation`, in place of one of the same name."""
        kept = [known for known in self if known.name != operation.name]
        return Catalog((*kept, operation), closed=self._closed, synonyms=self._synonyms)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __iter__(self) -> Iterator[Operation]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Catalog):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._fingerprint)

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self._by_name)})"

    @property
    def _identity(self) -> tuple[object, ...]:
        return self._fingerprint, self._closed, self._synonyms


def _named(operations: Iterable[Operation]) -> dict[str, Operation]:
    """Return the operations by name, sorted; each usable, none twice."""
    by_name: dict[str, Operation] = {}
    for operation in operations:
        _usable(operation)
        if operation.name in by_name:
            raise InvalidOperation(
                f"two operations are named {operation.name!r}; rename one, or replace it by `with_`"
            )
        by_name[operation.name] = operation
    return dict(sorted(by_name.items()))


def _usable(operation: object) -> None:
    if not isinstance(operation, Operation):
        raise InvalidOperation(
            f"{operation!r} is not an Operation; make one by `semcache.sources.functions.operation`"
        )
    name: object = operation.name
    if not isinstance(name, str) or not name.strip():
        raise InvalidOperation(f"an operation is named {name!r}; expected non-empty text")
    for schema in (operation.input_schema, operation.output_schema):
        try:
            plain(schema, what=f"a schema of operation {operation.name!r}")
        except InvalidJson as error:
            raise InvalidOperation(str(error)) from error


def _domains(
    declared: Mapping[str, Sequence[str]], operations: Iterable[Operation]
) -> dict[str, tuple[str, ...]]:
    """Return field → values: what is declared, and what the schemas list beside it."""
    values: dict[str, list[str]] = {field: list(domain) for field, domain in declared.items()}
    for operation in operations:
        for field, listed in enums(operation.input_schema):
            values.setdefault(field, []).extend(listed)
    return {field: tuple(dict.fromkeys(domain)) for field, domain in sorted(values.items())}
