"""What a model is asked, as one key: equal for equal requests, in every process and Python."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from semcache.canonical import MAX_DEPTH, Json, digest, dumps, plain
from semcache.errors import InvalidJson
from semcache.ports import Message

FORMAT = 1
"""Goes into each key; raised when what is kept under keys changes its shape."""
NO_SCHEMA = "no-schema"
"""Fingerprint of a request that asks for no shape of the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest:
    """Everything that an answer depends on."""

    model: str
    provider: str = ""
    """Who runs the model: two servers may have different models of one name."""
    system: str | None = None
    user: str | None = None
    """The prompt, for a request of one message."""
    messages: Sequence[Message | Mapping[str, object]] = ()
    """The messages in their order, as mappings where they hold more than role and text."""
    data: Mapping[str, object] | None = None
    """Values that the prompt is made with; dates and times are allowed."""
    temperature: float | None = None
    max_tokens: int | None = None
    sampling: Mapping[str, object] = field(default_factory=dict)
    """Every other setting: `top_p`, `seed`, `stop`, penalties…"""
    tools: Sequence[Mapping[str, object]] = ()
    """Whole definitions: names, descriptions, schemas. Their order does not matter."""
    response_schema: object = None
    """JSON Schema of the answer, or a type that pydantic can describe; None: any answer."""


def response_key(request: ModelRequest) -> str:
    """Return the key of `request`: SHA-256 of its canonical form, 64 lower-case hex digits.

    Raises:
        InvalidJson: something in it is not JSON: NaN, a set, a cycle; or no schema can be written
            of `response_schema`.
    """
    parts: dict[str, object] = {
        "provider": request.provider,
        "model": request.model,
        "system": request.system,
        "user": request.user,
        "messages": [_message(message) for message in request.messages] or None,
        "data": request.data,
        "temperature": _number(request.temperature),
        "max_tokens": request.max_tokens,
        "sampling": request.sampling or None,
        "tools": sorted(canonical_text(tool, what="a tool") for tool in request.tools) or None,
    }
    # What is left out is not looked at again: most requests have few of these.
    given = {name: part for name, part in parts.items() if part is not None}
    given["format"] = FORMAT
    given["response_schema"] = schema_fingerprint(request.response_schema)
    return digest(_plain(given, "the request"))


def canonical_text(value: object, *, what: str = "value") -> str:
    """Return `value` as JSON with sorted keys and no spaces: equal texts for equal values.

    A time is written in UTC, to the millisecond or as finely as it is given
    (`"2024-01-15T10:30:00.000Z"`); one without a zone is written as it is, without the Z.

    Raises:
        InvalidJson: it is not JSON: NaN, a set, a cycle (specs/groundswell.md, B1).
    """
    return dumps(_plain(value, what))


def schema_fingerprint(schema: object) -> str:
    """Return the SHA-256 of a complete JSON Schema; `no-schema` for None.

    `schema` is a JSON Schema, or a type that pydantic can describe: a model, `Literal["a", "b"]`,
    `Annotated[int, Field(ge=3)]`.

    Raises:
        InvalidJson: the schema is not JSON, or pydantic cannot write one.
    """
    if schema is None:
        return NO_SCHEMA
    written = schema if isinstance(schema, Mapping) else _described(schema)
    return digest(_plain(written, "the response schema"))


def _described(schema: Any) -> Mapping[str, object]:  # noqa: ANN401 - any type that there is
    from pydantic import TypeAdapter  # noqa: PLC0415 - most requests have no type to describe
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - as above

    try:
        described: Mapping[str, object] = TypeAdapter(schema).json_schema()
    except PydanticUserError as error:
        raise InvalidJson(
            f"the response schema is {schema!r}; expected a JSON Schema as a mapping, "
            f"or a type that has one: {error.message}"
        ) from error
    return described


def _message(message: Message | Mapping[str, object]) -> Mapping[str, object]:
    if isinstance(message, Message):
        return {"role": message.role, "content": message.content}
    return message


def _number(value: float | None) -> float | None:
    """Return `value`, whole numbers as int: 0 and 0.0 are one setting, and different JSON."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _plain(value: object, what: str) -> Json:
    try:
        return plain(value, what=what)
    except InvalidJson:
        # Dates are rare: nobody else pays for the look.
        return plain(_dated(value, frozenset()), what=what)


def _dated(value: object, above: frozenset[int]) -> object:
    """Return `value` with its dates and times as text; what contains itself stays as it is."""
    match value:
        case datetime():
            return _time_text(value)
        case date():
            return value.isoformat()
        case Mapping() | list() | tuple() if id(value) in above or len(above) > MAX_DEPTH:
            return value
        case Mapping():
            return {key: _dated(item, above | {id(value)}) for key, item in value.items()}
        case list() | tuple():
            return [_dated(item, above | {id(value)}) for item in value]
        case _:
            return value


def _time_text(value: datetime) -> str:
    fineness = "microseconds" if value.microsecond % 1000 else "milliseconds"
    if value.tzinfo is None:
        return value.isoformat(timespec=fineness)
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec=fineness) + "Z"
