"""What the settings may be: kinds, ranges, choices."""

from collections.abc import Callable
from dataclasses import Field
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from semcache.errors import InvalidSettings
from semcache.settings.tables import check_arguments, check_domains, check_translations

_RANGES: dict[str, tuple[float, float]] = {
    "threshold": (-1, 1),
    "database_lag_s": (0, 3600),
    "database_pool": (1, 1000),
    "database_timeout_s": (0.001, 3600),
    "explore": (0, 1),
    "verify_from": (-1, 1),
    "verify_waiting": (1, 10_000),
    "neighbors": (1, 1000),
    "max_entries": (1, 10**9),
    "max_bytes": (1, 2**50),
    "max_total_entries": (1, 10**9),
    "max_total_bytes": (1, 2**50),
    "flight_wait_s": (0, 86_400),
    "flight_ttl_s": (0.1, 3600),
    "ttl_s": (0.001, 10**10),
    "max_prompt_chars": (1, 10**6),
    "embedder_threads": (1, 256),
    "model_timeout_s": (0.001, 3600),
    "model_retries": (0, 20),
    "temperature": (0, 2),
    "model_operations": (1, 10_000),
    "response_entries": (1, 10**9),
    "response_bytes": (1, 2**40),
    "response_ttl_s": (0.001, 10**10),
    "max_steps": (1, 10**6),
    "timeout_s": (0.001, 86_400),
    "call_timeout_s": (0.001, 86_400),
    "max_output_bytes": (1, 2**40),
    "reflection_attempts": (1, 100),
    "reflection_delay_s": (0, 3600),
    "run_trees": (1, 10**6),
    "run_nodes": (1, 10**7),
    "prompt_token_price": (0, 10**9),
    "completion_token_price": (0, 10**9),
}
"""Setting → the least and the most that it may be."""

_CHOICES = {
    "database_search": ("replica", "server"),
    "plan_format": ("routes", "tasks", "program"),
    "ttl_slides": ("never", "exact", "always"),
    "verify": ("background", "inline"),
    "warm_up": ("never", "background", "before"),
}
"""Setting → the words that it may be."""


def check(one: Field[Any], value: object) -> None:
    """Refuse a `value` that the setting cannot have.

    Raises:
        InvalidSettings: it is of another kind, out of range, or none of the choices.
    """
    if one.name in _RANGES:
        _check_range(one, value)
    _check_kind(one, value)
    choices = _CHOICES.get(one.name)
    if choices is not None and value not in choices:
        expected = f"{', '.join(choices[:-1])} or {choices[-1]}"
        raise InvalidSettings(f"{one.name} is {value!r}; expected {expected}")
    if one.name in _OTHERWISE:
        _OTHERWISE[one.name](value)


def kinds_of(one: Field[Any]) -> tuple[Any, ...]:
    """Return the types that a setting may have, in the order of its annotation."""
    options = get_args(one.type) if get_origin(one.type) in {Union, UnionType} else (one.type,)
    return tuple(get_origin(option) or option for option in options)


def shown(one: Field[Any], value: object) -> str:
    """Return `value` as messages show it: of a secret its type alone."""
    return repr(value) if one.repr else f"of type {type(value).__name__}"


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
    except (ZoneInfoNotFoundError, ValueError, OSError, TypeError) as error:
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


def _check_range(one: Field[Any], value: object) -> None:
    low, high = _RANGES[one.name]
    kinds = kinds_of(one)
    if value is None and NoneType in kinds:
        return
    whole = float not in kinds
    if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
        wanted = "a whole number" if whole else "a number"
        raise InvalidSettings(f"{one.name} is {value!r}; expected {wanted}")
    if not low <= value <= high:
        raise InvalidSettings(f"{one.name} is {value!r}; expected {low:g} to {high:g}")


def _check_kind(one: Field[Any], value: object) -> None:
    for kind, expected in ((bool, "True or False"), (str, "text")):
        if isinstance(one.default, kind) and not isinstance(value, kind):
            raise InvalidSettings(f"{one.name} is {shown(one, value)}; expected {expected}")


def _check_directory(value: object) -> None:
    if not isinstance(value, Path | None):
        raise InvalidSettings(f"directory is {value!r}; expected a Path, or None for memory")
    if "\0" in str(value):
        raise InvalidSettings(f"directory is {str(value)!r}; a path holds no NUL")


def _check_share(value: object) -> None:
    if value is None or (isinstance(value, int | float) and 0 < value < 1):
        return
    raise InvalidSettings(f"max_wrong is {value!r}; expected a share between 0 and 1, or None")


_OTHERWISE: dict[str, Callable[[Any], object]] = {
    "directory": _check_directory,
    "domains": check_domains,
    "max_wrong": _check_share,
    "model_arguments": check_arguments,
    "timezone": zone_of,
    "translations": check_translations,
}
"""Setting → what else refuses a value that it cannot have."""
