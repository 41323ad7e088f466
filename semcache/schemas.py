"""Schemas: what is read from files that anybody may have edited, checked before any of it is used.

A checksum tells damage, not intent: who edits a file can make the checksum anew. So each format has
one schema beside the code that writes it, for all that is read of it, down to numbers and names,
and this is how a schema is applied. What it lets through never fails later.
"""

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, PlainValidator, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from semcache.canonical import Json, plain, pointer_text
from semcache.errors import InvalidJson

T = TypeVar("T")

STRICT = ConfigDict(strict=True, allow_inf_nan=False)
"""No text for a number, no number for a text, no NaN. Members that a schema does not name are left
alone: a later version of a format may have more of them."""
LATEST_S = 253_402_300_799.0
"""The last second of the year 9999, beyond which Python knows no dates."""
MOST = 1e12
"""The highest count of anything: far from where adding to a float does nothing."""


def _printable(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL, which no database keeps")
    return text


if TYPE_CHECKING:
    Value: TypeAlias = Json
    AnyValue: TypeAlias = Json
else:  # pydantic cannot follow a recursive alias
    Value = Annotated[Any, PlainValidator(plain)]
    """A JSON value that JSON can hold: see `plain`."""
    AnyValue = Any
    """The same where whoever takes the value looks: `Parameter` does."""
Name = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(_printable)]
"""Text that names something."""
Word = Annotated[str, Field(max_length=10_000), AfterValidator(_printable)]
"""The same, or empty text."""
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Seconds = Annotated[float, Field(ge=0, le=LATEST_S)]
"""Epoch seconds, or a duration."""
Count = Annotated[int, Field(ge=0, le=int(MOST))]
Amount = Annotated[float, Field(ge=0, le=MOST)]


def validated(schema: TypeAdapter[T], value: object, *, what: str) -> T:
    """Return `value` as the schema reads it; `what` names it in errors.

    Raises:
        InvalidJson: it is otherwise; the message says where, by a JSON pointer, and what is there.
    """
    try:
        return schema.validate_python(value)
    except ValidationError as error:
        raise InvalidJson(f"{what}{_told(error.errors()[0])}") from error


def read(schema: TypeAdapter[T], text: str | bytes, *, what: str) -> T:
    """Return what JSON `text` spells, as the schema reads it, with tuples for lists.

    Faster than `validated`, for what is read often.

    Raises:
        InvalidJson: it is not JSON, or otherwise than the schema has it.
    """
    try:
        return schema.validate_json(text, strict=True)
    except ValidationError as error:
        raise InvalidJson(f"{what}{_told(error.errors()[0])}") from error


def faults(error: ValidationError) -> list[str]:
    """Return what is wrong, each with its place: `limit: Input should be a valid integer`."""
    return [
        f"{'.'.join(map(str, found['loc'])) or 'input'}: {found['msg']}"
        for found in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _told(found: ErrorDetails) -> str:
    # Names in parentheses and brackets are of our schemas, not of what was read.
    at = [p for p in found["loc"] if isinstance(p, int) or not p.endswith(("()", "]"))]
    place = f" at {pointer_text(tuple(at))!r}" if at else ""
    match found["type"]:
        case "missing":
            return f"{place}: the member is missing"
        case "value_error":  # one of ours, which says what it found
            return f"{place}: {found['msg'].removeprefix('Value error, ')}"
        case _:
            said = found["msg"]
            return f"{place}: {said[:1].lower()}{said[1:]}; found {found['input']!r:.80}"
