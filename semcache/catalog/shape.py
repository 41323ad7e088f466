"""The shape of an operation: its verb, its noun, and what each of its inputs is for.

Read from the name and the input schema alone, so that rules work for any catalog. An operation is
query-shaped if it takes `filters` (a list of field, operator and value); then what it can filter,
aggregate, group and sort by stands in the enums of its schema. Any other is plain: its inputs are
its fields, where `min_price` and `max_price` are the two ends of `price`.
"""

import re
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, as_object
from semcache.catalog.operation import Operation
from semcache.catalog.schemas import alternatives, texts

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Words of a name that say how something is returned or found, not what it is.
_WRAPPERS = frozenset({
    "all", "data", "detail", "details", "info", "information", "list", "record", "records",
})  # fmt: skip
_QUALIFIERS = frozenset({"by", "for", "from", "in", "of", "on", "to", "using", "via", "with"})
# Verbs that are a name by themselves: `issues.list`, `orders/search`.
_VERBS = frozenset({
    "add", "cancel", "count", "create", "delete", "edit", "execute", "fetch", "find", "get", "list",
    "lookup", "modify", "patch", "post", "put", "query", "read", "remove", "run", "search", "send",
    "set", "show", "update", "view",
})  # fmt: skip
# Prefixes of an input that takes one end of a range. The end is included, as "at least" says,
# unless the description says otherwise.
_ENDS = {
    "min": ">=", "minimum": ">=", "at_least": ">=", "since": ">=",
    "max": "<=", "maximum": "<=", "at_most": "<=", "until": "<=",
}  # fmt: skip
# These are ends only of times: `to_city` and `end_user` are no ranges.
_TIME_ENDS = {"from": ">=", "start": ">=", "after": ">", "to": "<=", "end": "<=", "before": "<"}
_TIMES = frozenset({"date", "day", "month", "time", "year"})
_STRICT = re.compile(
    r"(?<!no )(?<!not )\b(?:exclusive|excluded|below|under|above|over|(?:less|more|greater) than)\b"
    r"(?! or equal)"
)
_LIMITS = frozenset({"limit", "max_results", "page_size", "per_page", "top_k", "count", "n"})
_FILTERS = frozenset({"filters", "filter", "where", "conditions"})
_AGGREGATES = frozenset({"aggregates", "aggregate", "aggregations", "metrics"})
_GROUPS = frozenset({"group_by", "groups", "dimensions"})
_SORTS = frozenset({"order_by", "sort_by", "sort", "order"})
_FIELD_KEYS = ("field", "column", "name")
_OPERATOR_KEYS = ("operator", "op")
_VALUE_KEYS = ("value", "operand", "values")
_FUNCTION_KEYS = ("function", "aggregate", "func")
_DIRECTION_KEYS = ("direction", "order", "dir")
_CHOICES = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True, slots=True)
class Input:
    """One property of an operation's input."""

    name: str
    """As the schema spells it."""
    field: str
    """What it is about, in lower snake case: `price` for `maxPrice`."""
    operator: str
    """How the operation compares the field with it: `=`, `>=` or `<=`."""
    types: frozenset[str]
    """JSON types that it takes, without null; empty if the schema does not say."""
    required: bool
    description: str

    @property
    def many(self) -> bool:
        """Whether it takes a list and nothing else."""
        return self.types == {"array"}


@dataclass(frozen=True, slots=True)
class Columns:
    """A list-valued input whose items name a field: filters, aggregates, groups or sorts."""

    name: str
    """The input, as the schema spells it."""
    fields: tuple[str, ...]
    """Fields that its items may name; empty if the schema leaves that open."""
    field_key: str
    """Member of an item that names the field; empty where the item is the name itself."""
    second_key: str
    """Member with the operator, function or direction; empty if there is none."""
    seconds: tuple[str, ...]
    """What that member may be, as spelled; empty if the schema leaves that open."""
    value_key: str = ""
    """Member with the value of a filter."""
    default: str = ""
    """The field that an item means when it names none; empty if the schema does not say."""


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What a query-shaped operation takes; None where it has no such input."""

    filters: Columns
    aggregates: Columns | None
    groups: Columns | None
    sorts: Columns | None
    limit: str
    """Name of the input that bounds the rows; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What an operation's name and input schema say about it."""

    operation: str
    verb: str
    """First word of the name, lower case: `query` of `query_sales`."""
    noun: str
    """The words after it, lower snake case and in the name's own number: `sales`."""
    inputs: tuple[Input, ...]
    """Its inputs; of a query-shaped operation only those beside the query."""
    query: QueryShape | None
    """What it takes as a query; None for a plain operation."""
    limit: str = ""
    """Input of a plain operation that bounds how much comes back; empty if there is none."""

    @property
    def required(self) -> tuple[Input, ...]:
        """The inputs that every call must give."""
        return tuple(one for one in self.inputs if one.required)


def shape(operation: Operation) -> Shape:
    """Return the shape of `operation`. Never raises: what cannot be read is left out."""
    root = operation.input_schema
    verb, noun = verb_and_noun(operation.name)
    properties = as_object(root.get("properties"))
    query = _query(properties, root)
    used = _used(query)
    listed = root.get("required")
    required = set(map(str, listed)) if isinstance(listed, list) else set[str]()
    limit = "" if query else next((name for name in properties if snake(name) in _LIMITS), "")
    inputs = tuple(
        _input(name, described, root, required=name in required)
        for name, described in properties.items()
        if name not in used and name != limit
    )
    return Shape(operation.name, verb, noun, inputs, query, limit)


def snake(name: str) -> str:
    """Return `name` in lower snake case: `maxPrice` is `max_price`."""
    return "_".join(word.lower() for word in _WORD.findall(name)) or name.lower()


def verb_and_noun(name: str) -> tuple[str, str]:
    """Return the verb and noun of an operation's name, in lower snake case.

    Of a name in parts the last one counts (`github.list_issues`), unless it is a verb alone: then
    the part before it is the noun (`issues.list`).
    """
    parts = [snake(part) for part in re.split(r"[./:]", name.strip("./:")) if part]
    if len(parts) > 1 and parts[-1] in _VERBS:
        return parts[-1], _noun(parts[-2].split("_"))
    words = (parts or [name])[-1].split("_")
    verb, rest = (words[0], words[1:]) if len(words) > 1 else ("get", words)
    return verb, _noun(rest)


def _noun(words: list[str]) -> str:
    end = next((i for i, word in enumerate(words) if i and word in _QUALIFIERS), len(words))
    noun = [word for word in words[:end] if word not in _WRAPPERS]
    return "_".join(noun or words[:end])


def _query(properties: JsonObject, root: JsonObject) -> QueryShape | None:
    filters = _columns(properties, root, _FILTERS, _OPERATOR_KEYS)
    if filters is None or not filters.field_key or not filters.value_key:
        return None
    return QueryShape(
        filters=filters,
        aggregates=_columns(properties, root, _AGGREGATES, _FUNCTION_KEYS),
        groups=_columns(properties, root, _GROUPS, ()),
        sorts=_columns(properties, root, _SORTS, _DIRECTION_KEYS),
        limit=next((name for name in properties if snake(name) == "limit"), ""),
    )


def _used(query: QueryShape | None) -> set[str]:
    if query is None:
        return set()
    columns = (query.filters, query.aggregates, query.groups, query.sorts)
    return {one.name for one in columns if one is not None} | {query.limit}


def _columns(
    properties: JsonObject, root: JsonObject, names: frozenset[str], seconds: tuple[str, ...]
) -> Columns | None:
    name = next((name for name in properties if snake(name) in names), None)
    if name is None:
        return None
    items = _items(properties[name], root)
    members = as_object(items.get("properties"))
    field_key = _first(_FIELD_KEYS, members)
    if members and not field_key:
        return None
    second_key = _first(seconds, members)
    field: JsonObject = as_object(members.get(field_key)) if field_key else items
    second = as_object(members.get(second_key))
    return Columns(
        name=name,
        fields=texts(field, root, _CHOICES),
        field_key=field_key,
        second_key=second_key,
        seconds=texts(second, root, _CHOICES),
        value_key=_first(_VALUE_KEYS, members),
        default=str(field.get("default") or ""),
    )


def _first(names: tuple[str, ...], members: JsonObject) -> str:
    return next((name for name in names if name in members), "")


def _items(described: Json, root: JsonObject) -> JsonObject:
    """Return the schema of the items of a list-valued property, empty if it is no list."""
    for part in alternatives(described, root, _CHOICES):
        if items := as_object(part.get("items")):
            return next(alternatives(items, root, _CHOICES))
    return {}


def _input(name: str, described: Json, root: JsonObject, *, required: bool) -> Input:
    field, operator = _field_and_operator(snake(name))
    text = as_object(described).get("description")
    description = text if isinstance(text, str) else ""
    if operator != "=" and _STRICT.search(description.lower()):
        operator = operator[0]
    return Input(
        name=name,
        field=field,
        operator=operator,
        types=_types(described, root),
        required=required,
        description=description,
    )


def _field_and_operator(name: str) -> tuple[str, str]:
    """Return what an input is about and how it compares: `max_price` is `price`, `<=`."""
    for prefix, operator in _ENDS.items():
        if name.startswith(f"{prefix}_"):
            return name.removeprefix(f"{prefix}_"), operator
    prefix, _, rest = name.partition("_")
    if prefix in _TIME_ENDS and rest in _TIMES:
        return rest, _TIME_ENDS[prefix]
    return name, _ENDS.get(name, "=")


def _types(described: Json, root: JsonObject) -> frozenset[str]:
    found: set[str] = set()
    for part in alternatives(described, root, _CHOICES):
        kinds = part.get("type")
        found.update(map(str, kinds) if isinstance(kinds, list) else [str(kinds)] if kinds else ())
    return frozenset(found - {"null"})
