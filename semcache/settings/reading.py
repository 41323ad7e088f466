"""From a file, an environment or a caller to values of the type that each setting has."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import Field
from pathlib import Path
from types import NoneType
from typing import Any

from semcache.errors import InvalidSettings
from semcache.file_errors import unreadable
from semcache.settings.checks import kinds_of, shown
from semcache.settings.tables import read_arguments, read_domains, read_translations

PREFIX = "SEMCACHE_"
"""What the name of a setting has before it in the environment."""


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


def typed(chosen: Mapping[str, object], known: Mapping[str, Field[Any]]) -> dict[str, Any]:
    """Return `chosen` with each value in the type of its setting.

    Raises:
        InvalidSettings: a name that is no setting, or a value that cannot be of its type.
    """
    unknown = sorted(set(chosen) - set(known))
    if unknown:
        raise InvalidSettings(f"unknown setting {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return {name: _typed(known[name], value) for name, value in chosen.items()}


def _typed(one: Field[Any], value: object) -> object:
    kinds = kinds_of(one)
    for kind in kinds:
        if kind is NoneType and (value is None or value in ("none", "None")):
            return None
        reader = _TABLES.get(one.name) if kind is Mapping else _READ.get(kind)
        if reader is not None and (read := reader(value)) is not None:
            return read
    wanted = " or ".join(kind.__name__ for kind in kinds)
    raise InvalidSettings(f"{one.name} is {shown(one, value)}; expected {wanted}")


def _bool(value: object) -> bool | None:
    if isinstance(value, bool):
        return value
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    return words.get(value.lower()) if isinstance(value, str) else None


def _int(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None
    return int(number) if number is not None and number.is_integer() else None


def _float(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _path(value: object) -> Path | None:
    if not isinstance(value, str | Path):
        return None
    try:
        return Path(value).expanduser()
    except RuntimeError:  # "~nobody/x" names the home of a user that there is not
        return None


def _str(value: object) -> str | None:
    return value if isinstance(value, str) else None


_TABLES: dict[str, Callable[[object], object]] = {
    "domains": read_domains,
    "model_arguments": read_arguments,
    "translations": read_translations,
}
_READ: dict[type, Callable[[object], object]] = {
    bool: _bool,
    int: _int,
    float: _float,
    Path: _path,
    str: _str,
}
