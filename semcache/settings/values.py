"""What the settings may be, and how they are read from a file, an environment or a caller."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import Field as Setting
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, cast, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from semcache.errors import InvalidSettings
from semcache.files import unreadable
from semcache.schemas import Value

PREFIX = "SEMCACHE_"
"""What the name of a setting has before it in the environment."""


@cache
def zone_of(name: str) -> tzinfo:
    """Return the time zone of that name.

    Raises:
        InvalidSettings: this machine knows none.
    """
    if name == "UTC":
        return UTC  # known to every machine
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InvalidSettings(
            f"timezone is {name!r}; expected a name of the IANA database such as 'Europe/Berlin' "
            "(install `tzdata` if this machine has none)"
        ) from error


def directory_of(path: object) -> Path | None:
    """Return the directory at `path`: text or a path; None stays None, for memory.

    Raises:
        InvalidSettings: it is neither.
    """
    if path is None or isinstance(path, str | Path):
        return None if path is None else Path(path)
    raise InvalidSettings(f"directory is {path!r}; expected a path, or None for memory")


def _at_home(path: Path) -> Path:
    if "\0" in str(path):
        raise InvalidSettings(f"directory is {str(path)!r}; a path holds no NUL")
    try:
        return path.expanduser()
    except RuntimeError as error:  # "~nobody/x" names the home of a user that there is not
        raise InvalidSettings(f"directory is {str(path)!r}; expected a path: {error}") from error


def _known_zone(name: str) -> str:
    zone_of(name)
    return name


Directory = Annotated[Path, AfterValidator(_at_home)]
TimeZone = Annotated[str, AfterValidator(_known_zone)]
Cosine = Annotated[float, Field(ge=-1, le=1)]
Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0.001, le=86_400)]
Delay = Annotated[float, Field(ge=0, le=86_400)]
Lifetime = Annotated[float, Field(ge=0.001, le=10**10)]
Price = Annotated[float, Field(ge=0, le=10**9)]
Some = Annotated[int, Field(ge=1, le=1000)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Bytes = Annotated[int, Field(ge=1, le=2**50)]
Domains = Mapping[str, Annotated[tuple[str, ...], Field(strict=False)]]
Arguments = Mapping[str, Value]


def _of_one_value(
    tables: Mapping[str, Mapping[str, str | int | float | bool]],
) -> Mapping[str, Mapping[str, str | int | float | bool]]:
    """Return tables that translate no words otherwise than another one does."""
    told: dict[str, tuple[str, object]] = {}
    for name, table in tables.items():
        for words, value in table.items():
            if not name.strip() or not any(map(str.isalnum, words)):
                raise ValueError(f"has the words {words!r} for {name!r}; expected text for a name")
            key = " ".join(words.casefold().split())
            other, known = told.setdefault(key, (name, value))
            if (type(known), known) != (type(value), value):
                raise ValueError(
                    f"has {words!r} for {known!r} in {other!r} and for {value!r} in {name!r}; "
                    "words stand for one value"
                )
    return tables


Translations = Annotated[
    Mapping[str, Mapping[str, str | int | float | bool]], AfterValidator(_of_one_value)
]
"""Name of a parameter, or slot type → words of prompts → the value that plans have for them."""

_TABLES = {
    "domains": 'name -> keywords, such as {"github": ["issue", "pull request"]}',
    "model_arguments": 'a JSON object such as {"reasoning_effort": "low"}',
    "translations": "name -> words -> value (text, a number, true or false), such as "
    '{"state": {"California": "CA"}}',
}
"""Setting that is a table → what is expected of it; as text it is JSON."""


def from_environ(environ: Mapping[str, str], known: Mapping[str, object]) -> dict[str, object]:
    """Return what `environ` says of the `known` settings; what is empty says nothing.

    `OPENAI_API_KEY` is the `api_key` where no variable of ours is.
    """
    found: dict[str, object] = {
        key[len(PREFIX) :].lower(): value
        for key, value in environ.items()
        if key.startswith(PREFIX) and key[len(PREFIX) :].lower() in known and value != ""
    }
    if environ.get("OPENAI_API_KEY"):
        found.setdefault("api_key", environ["OPENAI_API_KEY"])
    return found


def from_file(file: Path) -> dict[str, object]:
    """Return what a TOML file says.

    Raises:
        InvalidSettings: it cannot be read, or is not TOML.
    """
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSettings(unreadable(file, error, expected="settings as TOML")) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidSettings(f"{str(file)!r} is not TOML: {error}; expected settings") from error


def in_file(file: Path, why: str) -> str:
    """Return why settings cannot be used, with the name of their file."""
    name = repr(str(file))
    return why if name in why else f"in {name}, {why}"


def typed(chosen: Mapping[str, object], known: Mapping[str, Setting[Any]]) -> dict[str, Any]:
    """Return `chosen` with each value in the type of its setting; texts are read.

    Raises:
        InvalidSettings: a name that is no setting, or a value that its setting cannot have.
    """
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise InvalidSettings(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return {name: _typed(known[name], value) for name, value in chosen.items()}


def _typed(one: Setting[Any], value: object) -> object:
    if not isinstance(value, str):
        return checked(one, value)
    if value in ("none", "None") and NoneType in get_args(one.type):
        return None
    if one.name not in _TABLES:
        return checked(one, value, read=True)
    try:
        return checked(one, json.loads(value))
    except ValueError:
        return checked(one, value)


def checked(one: Setting[Any], value: object, *, read: bool = False) -> object:
    """Return a `value` that the setting can have; `read`: from its text.

    Raises:
        InvalidSettings: it is of another type, out of range, or none of the choices.
    """
    adapter = _adapter(one)
    try:
        return adapter.validate_strings(value) if read else adapter.validate_python(value)
    except ValidationError as error:
        found = error.errors()[0]
        if one.name in _TABLES:
            raise InvalidSettings(_no_table(one.name, found, value)) from None
        expected = found["msg"].removeprefix("Input should be ")
        if found["type"].startswith(("greater_than", "less_than")):
            expected = _range(adapter) or expected
        shown = repr(value) if one.repr else f"of type {type(value).__name__}"
        raise InvalidSettings(f"{one.name} is {shown}; expected {expected}") from None


def _no_table(name: str, found: ErrorDetails, value: object) -> str:
    if name == "translations" and found["type"] == "value_error":  # ours, which says what it found
        return f"{name} {found['msg'].removeprefix('Value error, ')}"
    how = "is" if found["input"] is value else "has"
    return f"{name} {how} {found['input']!r}; expected {_TABLES[name]}"


@cache
def _adapter(one: Setting[Any]) -> TypeAdapter[Any]:
    return TypeAdapter(
        cast("type[Any]", one.type), config=ConfigDict(strict=True, allow_inf_nan=False)
    )


def _range(adapter: TypeAdapter[Any]) -> str:
    """Return the range of a number, both ends in it; empty if an end is open or stands outside."""
    schema = adapter.json_schema()
    for each in (schema, *schema.get("anyOf", ())):
        if "minimum" in each and "maximum" in each:
            return f"{each['minimum']:g} to {each['maximum']:g}"
    return ""
