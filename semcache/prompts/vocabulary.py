"""Vocabulary: the words that a schema may use, and the words of prompts that stand for them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from semcache.canonical import Json, JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.labels import Value
from semcache.catalog.shape import Shape, shape, snake
from semcache.prompts.schema import (
    AGGREGATES,
    CONTROLS,
    OPERATORS,
    PromptSchema,
    aggregate_name,
    operator_name,
)
from semcache.prompts.words import singular

LOCAL = "local"
"""The action of a prompt that needs no operation; allowed by every vocabulary."""

READS = frozenset({
    "browse", "display", "fetch", "find", "get", "list", "lookup", "query", "read", "retrieve",
    "search", "show", "view",
})  # fmt: skip
"""Verbs of operations that only look; what they look for tells them apart, not the verb."""

GETS = frozenset({"fetch", "get", "lookup", "read", "retrieve"})
"""Those of `READS` that return one thing by what identifies it."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The canonical words of a domain. Immutable; membership is exact."""

    actions: tuple[str, ...] = ()
    """Verbs, sorted: `search` is filtered retrieval, `list` takes everything, `summarize` counts,
    adds or groups, `get` returns one thing; any other is the verb of an operation."""
    entities: tuple[str, ...] = ()
    """Resources, singular, in lower snake case, sorted."""
    fields: tuple[str, ...] = ()
    """Names of parameters and of what can be grouped by, in lower snake case, sorted."""
    synonyms: Mapping[str, str] = field(default_factory=dict)
    """Word or phrase of a prompt → the action, entity, field or value that it stands for."""
    closed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Field → the only values that it can have."""
    labels: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Field → words → the value that they stand for; values and synonyms go before these."""

    @classmethod
    def from_catalog(cls, catalog: Catalog) -> Self:
        """Return the vocabulary that the names, schemas and words of a catalog declare."""
        shapes = [shape(operation) for operation in catalog]
        return cls(
            actions=_sorted(action for one in shapes for action in actions(one)),
            entities=_sorted(entity(one) for one in shapes),
            fields=_sorted(name for one in shapes for name in _fields(one)),
            synonyms=dict(catalog.synonyms),
            closed={name: tuple(values) for name, values in catalog.closed.items()},
            labels={name: dict(table) for name, table in catalog.labels.items()},
        )

    def with_fields(self, fields: Iterable[str]) -> "Vocabulary":
        """Return a vocabulary with these fields too."""
        return replace(self, fields=_sorted((*self.fields, *fields)))

    def validate(self, schema: PromptSchema) -> tuple[str, ...]:
        """Return everything in `schema` that is not in the vocabulary; empty if it is valid.

        Unlike OneMCP's, operators, aggregates and sort fields inside the parameters are checked
        too (specs/onemcp.md, A1).
        """
        return tuple(self._findings(schema))

    def to_json(self) -> JsonObject:
        """Return the dictionary that a model is bound to: five lists of words."""
        return {
            "actions": list(self.actions),
            "entities": list(self.entities),
            "fields": list(self.fields),
            "operators": list(OPERATORS),
            "aggregates": list(AGGREGATES),
        }

    def _findings(self, schema: PromptSchema) -> Iterator[str]:
        if not schema.action:
            yield "Action is required for cache key"
        elif schema.action != LOCAL and schema.action not in self.actions:
            yield f"Action '{schema.action}' is not in dictionary"
        for name in schema.entities:
            if name not in self.entities:
                yield f"Entity '{name}' is not in dictionary"
        for name, value in schema.params.items():
            yield from self._param_findings(name, value)
        for name in schema.group_by:
            if name not in self.fields:
                yield f"Group by field '{name}' is not in dictionary"

    def _param_findings(self, name: str, value: Json) -> Iterator[str]:
        # A domain may have a field named `order`; only a direction makes it a control.
        if name in CONTROLS and name not in self.fields:
            yield from self._control_findings(name, value)
        elif name not in self.fields:
            yield f"Param key '{name}' is not in dictionary"
        if isinstance(value, dict):
            yield from _member_findings(name, value)

    def _control_findings(self, name: str, value: Json) -> Iterator[str]:
        if name == "sort_by" and value not in self.fields:
            yield f"Sort field {value!r} is not in dictionary"
        if name == "order" and value not in {"asc", "desc"}:
            yield f"Order {value!r} is neither 'asc' nor 'desc'"


def actions(one: Shape) -> frozenset[str]:
    """Return the actions that an operation of this shape can answer."""
    if one.query is not None:
        summing = one.query.aggregates is not None or one.query.groups is not None
        return frozenset({"search", "list", "summarize"} if summing else {"search", "list"})
    if one.verb in GETS:
        return frozenset({"get"})
    return frozenset({"search", "list"} if one.verb in READS else {one.verb})


def entity(one: Shape) -> str:
    """Return the entity that an operation is about: `pull_request` of `list_pull_requests`."""
    *qualifiers, noun = one.noun.split("_")
    return "_".join((*qualifiers, singular(noun)))


def query_fields(one: Shape) -> tuple[str, ...]:
    """Return every field that the query of this shape can name, each once, in schema order."""
    if one.query is None:
        return ()
    columns = (one.query.filters, one.query.aggregates, one.query.groups, one.query.sorts)
    named = [snake(name) for listed in columns if listed is not None for name in listed.fields]
    return tuple(dict.fromkeys(named))


def _fields(one: Shape) -> Iterator[str]:
    yield from query_fields(one)
    for given in one.inputs:
        yield given.field
        yield snake(given.name)


def _sorted(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({word for word in words if word}))


def _member_findings(name: str, value: JsonObject) -> Iterator[str]:
    operator, aggregate = value.get("operator"), value.get("aggregate")
    if operator is not None and not (isinstance(operator, str) and operator_name(operator)):
        yield f"Operator {operator!r} of '{name}' is not in dictionary"
    if aggregate is not None and not (isinstance(aggregate, str) and aggregate_name(aggregate)):
        yield f"Aggregate {aggregate!r} of '{name}' is not in dictionary"
