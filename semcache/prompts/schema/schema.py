"""The schema of a prompt: what it asks for, in the catalog's words."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from semcache.canonical import Json, JsonObject, loads, plain
from semcache.errors import InvalidJson, InvalidParameter
from semcache.prompts.parameter import Parameter
from semcache.prompts.schema.key import identity, psk
from semcache.prompts.schema.operators import operator_name

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
        raise InvalidJson(f"action is a {type(value).__name__}; expected text")
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
