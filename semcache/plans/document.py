"""A plan: what each can tell, how it is read from JSON, and the plan of a format with no reader."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, Self, cast, runtime_checkable

from semcache.canonical import Json, JsonObject, Pointer, digest, loads, plain, same
from semcache.errors import InvalidJson, InvalidPlan


@dataclass(frozen=True, slots=True)
class Reference:
    """A place in a plan that reads the result of another part of it."""

    at: Pointer
    """Where the reference stands in the plan."""
    target: str
    """The node, task or variable that it reads."""
    path: str
    """The reference as written."""


@runtime_checkable
class ExecutionPlan(Protocol):
    """A plan of any format; immutable, equal by content."""

    @property
    def format(self) -> str:
        """Name of the format: `routes`, `tasks`, `program`; `document` for other JSON objects."""

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex of the canonical JSON of the plan."""

    def to_dict(self) -> JsonObject:
        """Return the plan as a fresh JSON object that the caller may change."""

    def operations(self) -> tuple[str, ...]:
        """Return the names of the operations that the plan may call, sorted, each once."""

    def references(self) -> tuple[Reference, ...]:
        """Return every reference between parts of the plan, in document order."""


@runtime_checkable
class SdkModel(Protocol):
    """A pydantic model, as SDKs give tool calls and messages."""

    def model_dump(self, *, mode: str) -> object:
        """Return it as plain values."""


def dumped(source: object, above: frozenset[int] = frozenset()) -> object:
    """Return `source` with the models in it as plain values."""
    if isinstance(source, SdkModel):
        return source.model_dump(mode="json")
    if id(source) in above:
        return source  # `plain` refuses what contains itself
    inner = above | {id(source)}
    if isinstance(source, Mapping):
        return {key: dumped(value, inner) for key, value in source.items()}
    if isinstance(source, list | tuple):
        return [dumped(value, inner) for value in source]
    return source


def read_value(source: object) -> Json:
    """Return a plan, given as a value or as its JSON text, as fresh plain JSON.

    Line breaks inside a text may stand as they are: models write them so, as does StackVM's
    document, and they can mean nothing else.

    Raises:
        InvalidPlan: it is not JSON.
    """
    try:
        value = loads(source, what="the plan", strict=False) if isinstance(source, str) else source
        return plain(value, what="the plan")
    except InvalidJson as error:
        raise InvalidPlan(str(error)) from error


def read_object(source: object) -> JsonObject:
    """Return a plan, given as an object or as its JSON text, as a fresh plain JSON object.

    Raises:
        InvalidPlan: it is not JSON, or not an object.
    """
    value = read_value(source)
    if not isinstance(value, dict):
        raise InvalidPlan(f"the plan is of type {type(source).__name__}; expected a JSON object")
    return value


LISTED = "[]"
"""Key under which a plan that is a bare list is kept, since all other plans are objects."""


def enclosed(value: Json) -> Json:
    """Return `value`; a list of objects, such as calls or messages, as an object that holds it."""
    if not isinstance(value, list) or not value:
        return value
    return {LISTED: value} if all(isinstance(one, dict) and one for one in value) else value


def copied(value: Json) -> Json:
    """Return a deep copy of plain JSON; ten times as fast as `copy.deepcopy`."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [copied(item) for item in value]
    return value


def copied_object(value: JsonObject) -> JsonObject:
    """Return a deep copy of a plain JSON object."""
    return {key: copied(item) for key, item in value.items()}


def texts(value: Json, at: Pointer, data: frozenset[Pointer]) -> Iterator[tuple[Pointer, str]]:
    """Yield the texts in `value`, which stands at `at`; none at or below bound data."""
    if at in data:
        return
    if isinstance(value, str):
        yield at, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from texts(item, (*at, key), data)


def filled(
    value: Json, at: Pointer, data: frozenset[Pointer], read: Callable[[str, Pointer], Json]
) -> Json:
    """Return a copy of `value`, which stands at `at`, with what `read` makes of each of its texts.

    What stands at or below bound data stays as it is.
    """
    if at in data:
        return value
    match value:
        case str():
            return read(value, at)
        case dict():
            return {key: filled(item, (*at, key), data, read) for key, item in value.items()}
        case list():
            return [filled(item, (*at, i), data, read) for i, item in enumerate(value)]
        case _:
            return value


@dataclass(frozen=True, slots=True, eq=False)
class WrittenPlan:
    """What the plans of all formats have in common: JSON, some of it known to be data."""

    body: JsonObject
    """The plan; not to be changed, nor shared with someone who may."""
    data: frozenset[Pointer] = field(default=frozenset())
    """Where values were bound: each is data with all below it, never an expression or reference."""

    @classmethod
    def from_dict(
        cls,
        plan: Mapping[str, object] | Sequence[object],
        data: frozenset[Pointer] = frozenset(),
    ) -> Self:
        """Return the plan that `plan` describes.

        Raises:
            InvalidPlan: it is not JSON, or not of the kind that the format is written in.
        """
        return cls(cls.read(plan), data)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the plan that `text` spells; line breaks inside its texts may stand as they are.

        Raises:
            InvalidPlan: it is not JSON, or not of the kind that the format is written in.
        """
        return cls(cls.read(text))

    @classmethod
    def read(cls, source: object) -> JsonObject:
        """Return the body of a plan given as a value or as its text; an object in most formats."""
        return read_object(source)

    @property
    def fingerprint(self) -> str:
        """SHA-256 hex of the canonical JSON of the plan."""
        return digest(self.body)

    def to_dict(self) -> JsonObject:
        """Return the plan as a fresh JSON object that the caller may change."""
        return copied_object(self.body)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WrittenPlan) or type(self) is not type(other):
            return NotImplemented
        return self.data == other.data and same(self.body, other.body)

    def __hash__(self) -> int:
        return hash(self.fingerprint)


_INPUTS = ("arguments", "args", "input")
"""Keys of what a tool is called with: OpenAI and MCP, LangChain, Anthropic."""


def _called(value: Json) -> Iterator[str]:
    """Yield the names of the tool calls in `value`; what a tool is called with holds no calls."""
    if isinstance(value, list):
        for item in value:
            yield from _called(item)
    elif isinstance(value, dict):
        # Chat completions of OpenAI hold the call one level deeper than all others.
        function = value.get("function")
        call = function if isinstance(function, dict) else value
        name = call.get("name")
        if isinstance(name, str) and name and any(key in call for key in _INPUTS):
            yield name
        else:
            yield from _called(list(value.values()))


@dataclass(frozen=True, slots=True, eq=False)
class DocumentPlan(WrittenPlan):
    """A plan of no known format: JSON that can be stored and bound, but not executed.

    So are tool calls: an assistant's message with `tool_calls`, content with `tool_use`, messages,
    or a bare list of any of them, which comes back as a list.
    """

    format: ClassVar[str] = "document"

    def to_dict(self) -> JsonObject:
        """Return the plan as fresh JSON: an object, or the list that it was handed in as."""
        if self.body.keys() == {LISTED}:
            # A caller that stored a list wants a list; every other plan is an object.
            return cast(JsonObject, copied(self.body[LISTED]))
        return copied_object(self.body)

    def operations(self) -> tuple[str, ...]:
        """Return the names of the tools that the plan calls, sorted; none of any other JSON."""
        return tuple(sorted(set(_called(self.body))))

    def references(self) -> tuple[Reference, ...]:
        """Return nothing: the format is unknown."""
        return ()
