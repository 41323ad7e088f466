"""The settings that are tables: domains, and the values that plans have for words of prompts."""

import json
import math
from collections.abc import Mapping
from typing import Any

from semcache.canonical import Json, plain
from semcache.errors import InvalidJson, InvalidSettings

Translations = Mapping[str, Mapping[str, str | int | float | bool]]
"""Name of a parameter, or slot type → words of prompts → the value that plans have for them."""


def read_domains(value: object) -> Mapping[str, tuple[str, ...]] | None:
    """Return domain → its keywords from a table or its JSON; None if `value` is neither."""
    table = _table(value)
    if table is None:
        return None
    found = {str(name): _words(words) for name, words in table.items()}
    told = {name: words for name, words in found.items() if words is not None}
    return told if len(told) == len(found) else None


def read_arguments(value: object) -> Mapping[str, Json] | None:
    """Return the arguments of a table or its JSON; None if `value` is neither."""
    table = _table(value)
    return None if table is None else dict(table)


def check_arguments(table: object) -> None:
    """Refuse what is no JSON object.

    Raises:
        InvalidSettings: it is none.
    """
    try:
        if isinstance(plain(table, what="model_arguments"), dict):
            return
    except InvalidJson:
        pass
    raise InvalidSettings(
        f"model_arguments is {table!r}; expected a JSON object such as "
        '{"reasoning_effort": "low"}'
    )


def read_translations(value: object) -> Translations | None:
    """Return tables of translations from a table or its JSON; None if `value` is neither."""
    tables = _table(value)
    if tables is None or not all(isinstance(table, Mapping) for table in tables.values()):
        return None
    return {name: dict(table) for name, table in tables.items()}


def _table(value: object) -> Mapping[str, Any] | None:  # what is in it, its readers look at
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return None
    return value if isinstance(value, Mapping) else None


def _words(value: object) -> tuple[str, ...] | None:
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return tuple(value)
    return None


def check_domains(table: object) -> None:
    """Refuse what is no table of lists of words: of one text each letter would be a keyword.

    Raises:
        InvalidSettings: it is not name -> keywords.
    """
    if read_domains(table) is None or isinstance(table, str):
        raise InvalidSettings(
            f"domains is {table!r}; expected name -> keywords, such as "
            '{"github": ["issue", "pull request"]}'
        )


def check_translations(tables: object) -> None:
    """Refuse tables that are none, and words that two of them translate otherwise.

    Raises:
        InvalidSettings: they cannot be used.
    """
    if not isinstance(tables, Mapping):
        raise InvalidSettings(f"translations is {tables!r}; expected name -> words -> value")
    told: dict[str, tuple[str, object]] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not name.strip() or not isinstance(table, Mapping):
            raise InvalidSettings(
                f"translations has {table!r} for {name!r}; expected words -> value for a name, "
                'such as {"state": {"California": "CA"}}'
            )
        for words, value in table.items():
            _check_translation(name, words, value)
            key = " ".join(words.casefold().split())
            other, known = told.setdefault(key, (name, value))
            if (type(known), known) != (type(value), value):
                raise InvalidSettings(
                    f"translations has {words!r} for {known!r} in {other!r} and for {value!r} in "
                    f"{name!r}; words stand for one value"
                )


def _check_translation(name: str, words: object, value: object) -> None:
    if not isinstance(words, str) or not any(map(str.isalnum, words)):
        raise InvalidSettings(f"translations of {name!r} has the words {words!r}; expected text")
    finite = not isinstance(value, float) or math.isfinite(value)
    if not isinstance(value, str | int | float | bool) or not finite:
        raise InvalidSettings(
            f"translations has {value!r} for {words!r} of {name!r}; expected text, a number, true "
            "or false"
        )
