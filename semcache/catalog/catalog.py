"""Catalog: the operations that a plan may call, and the words of their domain."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from types import MappingProxyType

from semcache.canonical import Json, JsonObject, digest, plain
from semcache.catalog.labels import Value, labels
from semcache.catalog.operation import Call, Operation
from semcache.catalog.schemas import Schema, Violation, enums
from semcache.errors import InvalidJson, InvalidOperation, UnknownOperation


class Catalog:
    """Operations by name. Immutable; equal by content; safe from several threads.

    Iterating gives the operations, sorted by name; the built-in ones are found by name alone.
    """

    __slots__ = (
        "_builtins",
        "_by_name",
        "_closed",
        "_fingerprint",
        "_fingerprints",
        "_labels",
        "_schemas",
        "_synonyms",
    )

    def __init__(
        self,
        operations: Iterable[Operation] = (),
        *,
        closed: Mapping[str, Sequence[str]] | None = None,
        synonyms: Mapping[str, str] | None = None,
        builtins: Iterable[Operation] = (),
    ) -> None:
        """Keep the operations.

        Args:
            operations: What plans may call, and what prompts are about.
            closed: Field → the only values that it can have.
            synonyms: Word of a prompt → the word or value that the catalog has for it.
            builtins: What plans may call whatever the domain: found by name, but not listed, so
                that no prompt is about them. An operation of the same name goes before.

        Raises:
            InvalidOperation: one cannot be used, or two have one name.
        """
        self._by_name = _named(operations)
        self._builtins = {k: v for k, v in _named(builtins).items() if k not in self._by_name}
        self._synonyms = dict(synonyms or {})
        self._closed = _domains(closed or {}, self._by_name.values())
        self._labels = labels(self.input_schemas.values())
        self._fingerprints = {
            name: operation.fingerprint for name, operation in self._by_name.items()
        }
        self._fingerprint = digest(list(self._fingerprints.values()))
        self._fingerprints |= {name: one.fingerprint for name, one in self._builtins.items()}
        self._schemas = {
            name: Schema(operation.input_schema, name=name)
            for name, operation in (*self._by_name.items(), *self._builtins.items())
        }

    def get(self, name: str) -> Operation:
        """Return the operation of that name.

        Raises:
            UnknownOperation: there is none; the message lists names near it.
        """
        if name in self._by_name:
            return self._by_name[name]
        if name not in self._builtins:
            raise UnknownOperation(self.unknown(name))
        return self._builtins[name]

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
    def input_schemas(self) -> dict[str, JsonObject]:
        """Name → JSON Schema of its input, of each operation."""
        return {name: operation.input_schema for name, operation in self._by_name.items()}

    @property
    def closed(self) -> Mapping[str, tuple[str, ...]]:
        """Field → the values that it can have: domains as declared, then enums of input schemas."""
        return MappingProxyType(self._closed)

    @property
    def labels(self) -> Mapping[str, Mapping[str, Value]]:
        """Field → words → the value that they stand for, as input schemas label their values."""
        return MappingProxyType(self._labels)

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
        return Catalog(
            (*kept, operation),
            closed=self._closed,
            synonyms=self._synonyms,
            builtins=self._builtins.values(),
        )

    def with_builtins(self, operations: Iterable[Operation]) -> "Catalog":
        """Return a catalog whose plans may call `operations` too, though no prompt is about them.

        An operation that is listed goes before one of its name; a built-in one is replaced.
        """
        added = {operation.name: operation for operation in operations}
        return Catalog(
            self._by_name.values(),
            closed=self._closed,
            synonyms=self._synonyms,
            builtins=(self._builtins | added).values(),
        )

    def with_calls(self, calls: Mapping[str, Call]) -> "Catalog":
        """Return this catalog with other code behind the operations that `calls` names.

        Cheap at any size: nothing but the code differs, so what is known of the rest is shared.

        Raises:
            UnknownOperation: it names an operation that there is not.
        """
        changed = {name: replace(self.get(name), call=code) for name, code in calls.items()}
        other = object.__new__(Catalog)
        for slot in Catalog.__slots__:
            setattr(other, slot, getattr(self, slot))
        for slot in ("_by_name", "_builtins"):
            known = getattr(self, slot)
            setattr(other, slot, known | {k: v for k, v in changed.items() if k in known})
        return other

    @property
    def builtins(self) -> tuple[str, ...]:
        """The names of what plans may call whatever the domain, sorted."""
        return tuple(self._builtins)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name or name in self._builtins

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
        return self._fingerprints, self._closed, self._synonyms


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
