"""The schema of a prompt, in the words of a catalog, and the keys made of it."""

from codecs import utf_16_be_encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

from semcache.canonical import Json, JsonObject, digest, loads, plain
from semcache.errors import InvalidJson, InvalidParameter
from semcache.prompts.parameter import Parameter

OPERATORS = (
    "=", "!=", "<", "<=", ">", ">=", "in", "not_in", "between", "contains", "not_contains",
    "starts_with", "ends_with", "is_null", "is_not_null",
)  # fmt: skip
"""Comparisons of a field with an operand, by their canonical names."""

AGGREGATES = ("sum", "avg", "count", "min", "max", "median", "stddev", "variance")
"""Functions that make one value of many, by their canonical names."""

CONTROLS = ("limit", "offset", "order", "sort_by")
"""Flat parameters of a schema that shape its answer and are fields of no entity."""

_SPELLINGS = {
    "=": "== eq equal equals equal_to is",
    "!=": "<> ne neq not_equal not_equals not_equal_to is_not",
    "<": "lt less less_than before below under",
    "<=": "lte le less_than_or_equal less_or_equal less_than_or_equal_to at_most until",
    ">": "gt greater greater_than more_than after above over",
    ">=": "gte ge greater_than_or_equal greater_or_equal greater_than_or_equal_to at_least since",
    "in": "one_of any_of",
    "not_in": "nin none_of",
    "between": "range",
    "contains": "like includes",
    "not_contains": "not_like",
    "starts_with": "prefix",
    "ends_with": "suffix",
    "is_null": "null",
    "is_not_null": "not_null",
    "sum": "total add",
    "avg": "average mean",
    "count": "number",
    "min": "minimum lowest",
    "max": "maximum highest",
    "stddev": "std standard_deviation",
    "variance": "var",
}


def _known(names: Iterable[str]) -> dict[str, str]:
    """Return spelling → canonical name for `names`."""
    known = {name: name for name in names}
    for name in tuple(known):
        known.update(dict.fromkeys(_SPELLINGS.get(name, "").split(), name))
    return known


_OPERATORS = _known(OPERATORS)
_AGGREGATES = _known(AGGREGATES)


def operator_name(spelling: str) -> str | None:
    """Return the canonical name of an operator (`greater_than` is `>`), or None if it is none."""
    return _OPERATORS.get(_folded(spelling))


def aggregate_name(spelling: str) -> str | None:
    """Return the canonical name of an aggregate (`average` is `avg`), or None if it is none."""
    return _AGGREGATES.get(_folded(spelling))


def _folded(spelling: str) -> str:
    return spelling.strip().lower().lstrip("$").replace(" ", "_").replace("-", "_")


# Keys of a schema: the readable Prompt Schema Key, and the identity that decides about reuse.
#
# The Prompt Schema Key is OneMCP's (specs/onemcp.md, A2) and collides: `_` joins names and is legal
# in them, and `amount > 100`, `amount < 100` and `sum(amount)` share one. It is a label for people.
# The identity is a digest over everything that shapes a plan; nothing else decides about reuse.


class Shaped(Protocol):
    """What a key is made of: a `PromptSchema`, or anything with the same four parts."""

    @property
    def action(self) -> str:
        """Canonical verb."""

    @property
    def entities(self) -> Sequence[str]:
        """Resources asked about."""

    @property
    def group_by(self) -> Sequence[str]:
        """Fields to group by, in order."""

    @property
    def params(self) -> Mapping[str, Json]:
        """Field → literal or structured value."""


def psk(schema: Shaped) -> str:
    """Return the Prompt Schema Key: `summarize-sale-amount_year-group_category`.

    Readable, free of values, and exactly as OneMCP writes it; different questions may share one, so
    it labels an entry and never finds one. `identity` does that.
    """
    parts = [
        schema.action,
        "_".join(sorted(schema.entities, key=_java_order)),
        "_".join(sorted(schema.params, key=_java_order)),
        "group_" + "_".join(schema.group_by) if schema.group_by else "",
    ]
    return "-".join(part for i, part in enumerate(parts) if part or i == 0)


def _java_order(text: str) -> bytes:
    # OneMCP sorts as Java does, by UTF-16 code unit; code points above U+FFFF come out elsewhere.
    return utf_16_be_encode(text, "surrogatepass")[0]


def identity(schema: Shaped) -> str:
    """Return the SHA-256 hex of what shapes a plan for `schema`; equal ones may share a plan.

    In it: action, entities as a set, group_by in order, and for each parameter its name, operators,
    aggregates, and whether its value is one or many; `sort_by` and `order` with their values. Not
    in it: values to bind, how many a list holds, spelling of an operator, order of parameters.
    """
    entities: list[Json] = [*sorted(set(schema.entities))]
    params: JsonObject = {name: _param_shape(name, value) for name, value in schema.params.items()}
    return digest([schema.action, entities, [*schema.group_by], params])


def _param_shape(name: str, value: Json) -> Json:
    if name in {"sort_by", "order"}:
        return ["is", value]
    return _shape(value)


def _shape(value: Json) -> Json:
    """Return `value` without what a binding would replace."""
    match value:
        case dict():
            return {key: _member_shape(key, item) for key, item in value.items()}
        case list():
            return ["many"]
        case None:
            return ["null"]
        case _:
            return ["one"]


def _member_shape(key: str, value: Json) -> Json:
    if key == "operand":
        return _shape(value)
    if key == "operator" and isinstance(value, str):
        return ["is", operator_name(value) or value]
    if key == "aggregate" and isinstance(value, str):
        return ["is", aggregate_name(value) or value]
    # A member that nobody described may mean anything; only equal values share a plan.
    return ["is", value]


# The schema of a prompt: what it asks for, in the catalog's words.

STRUCTURE = frozenset({"operator", "aggregate"})
"""Members of a parameter that shape a plan instead of being bound in it."""


@dataclass(frozen=True, slots=True)
class PromptSchema:
    """What a prompt asks for, in canonical words."""

    action: str
    """Canonical verb: `summarize`, `search`, `get`, `list`."""
    entities: tuple[str, ...] = ()
    """Resources asked about, singular; their order means nothing."""
    group_by: tuple[str, ...] = ()
    """Fields to group by; their order means something."""
    params: Mapping[str, Json] = field(default_factory=dict)
    """Field → literal, `{"operator", "operand"}`, `{"aggregate"}`; `sort_by`, `order`, `limit`."""
    mentions: Mapping[str, str] = field(default_factory=dict)
    """Parameter name (`year`, `amount.operand`) → the words of the prompt that carry its value."""
    unexplained: tuple[str, ...] = ()
    """Content words of the prompt that nothing above accounts for; a schema with any is partial."""

    def __post_init__(self) -> None:
        try:
            params = {name: plain(value, what=name) for name, value in self.params.items()}
        except InvalidJson as error:
            raise InvalidParameter(f"a parameter of the schema is not JSON: {error}") from error
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "entities", tuple(self.entities))
        object.__setattr__(self, "group_by", tuple(self.group_by))

    @classmethod
    def from_json(cls, document: "str | Mapping[str, object]") -> Self:
        """Return the schema that a JSON text or object holds, in its wire form.

        Unknown members are ignored, missing or null ones are empty; `cache_key` is never believed.

        Raises:
            InvalidJson: not JSON, not an object, or a member of the wrong type.
        """
        value: object = loads(document, what="schema") if isinstance(document, str) else document
        if not isinstance(value, Mapping):
            raise InvalidJson(f"a schema is a JSON object; found {type(value).__name__}")
        return cls(
            action=_text(value.get("action")),
            entities=_texts("entities", value.get("entities")),
            group_by=_texts("group_by", value.get("group_by")),
            params=_object("params", value.get("params")),
        )

    def to_json(self) -> JsonObject:
        """Return the wire form: action, entities, group_by, params, cache_key."""
        return {
            "action": self.action,
            "entities": list(self.entities),
            "group_by": list(self.group_by),
            "params": self.env(),
            "cache_key": psk(self),
        }

    @property
    def key(self) -> str:
        """The Prompt Schema Key, for people."""
        return psk(self)

    @property
    def identity(self) -> str:
        """The digest of all that shapes a plan; schemas with the same one may share a plan."""
        return identity(self)

    @property
    def partial(self) -> bool:
        """Whether some words of the prompt stay unexplained; a partial schema never hits."""
        return bool(self.unexplained)

    def parameters(self) -> tuple[Parameter, ...]:
        """Return the values that a plan binds, with the words that carry them, in order of params.

        `{"year": 2024, "amount": {"operator": ">", "operand": 9}}` has `year`, `amount.operand`;
        the ends of a `between` are `year.operand.0` and `.1`; the list of an `in` is one.
        """
        named = [leaf for name, value in self.params.items() for leaf in _leaves(name, value)]
        return tuple(Parameter(name, value, self.mentions.get(name)) for name, value in named)

    def env(self) -> JsonObject:
        """Return a copy of the params as `{{params.amount.operand}}` walks them."""
        return {name: plain(value) for name, value in self.params.items()}


def _leaves(name: str, value: Json) -> Iterator[tuple[str, Json]]:
    if name in {"sort_by", "order"}:
        return
    if not isinstance(value, dict):
        yield name, value
        return
    operand = value.get("operand")
    for key, item in value.items():
        if key == "operand" and isinstance(operand, list) and _ordered_pair(value):
            yield from ((f"{name}.operand.{i}", end) for i, end in enumerate(operand))
        elif key not in STRUCTURE:
            yield f"{name}.{key}", item


def _ordered_pair(value: JsonObject) -> bool:
    operator = value.get("operator")
    return isinstance(operator, str) and operator_name(operator) == "between"


def _text(value: object) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidJson(f"action is of type {type(value).__name__}; expected text")
    return value


def _texts(member: str, value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise InvalidJson(f"{member} is {value!r:.80}; expected a list of texts")
    return tuple(value)


def _object(member: str, value: object) -> JsonObject:
    copy = plain({} if value is None else value, what=member)
    if not isinstance(copy, dict):
        raise InvalidJson(f"{member} is {value!r:.80}; expected an object")
    return copy
