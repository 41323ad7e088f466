"""The parts of a text, in whatever language it is, and of the texts inside it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from semcache.binding.texts import json_text, sql_text, url_text
from semcache.binding.texts.part import Part, Writer

WRITERS: Mapping[str, Writer] = MappingProxyType(
    {**json_text.WRITERS, **sql_text.WRITERS, **url_text.WRITERS}
)
"""Codec → how it spells a value in a language."""

_STAMP = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)[T ](?P<clock>\d\d:\d\d)(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)
_DEEPEST = 3  # languages in one another: a message, its arguments, the SQL in them


def read_stamp(text: str) -> list[Part] | None:
    """Return the day and the time of a timestamp; None for any other text."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    return [Part(*match.span(form), match[form], codec=form) for form in ("day", "clock")]


_READERS: tuple[tuple[Callable[[str], list[Part] | None], bool], ...] = (
    (json_text.read_json, True),
    (sql_text.read_sql, False),
    (url_text.read_url, False),
    (read_stamp, True),
)
"""What reads each language, and whether its parts are all that a text says."""


def parts(text: str, depth: int = 0) -> tuple[tuple[Part, ...], str] | None:
    """Return the parts of `text`, outer ones first, and what it says beside them.

    None for a text in no language that is known.
    """
    if depth == _DEEPEST or len(text) < 4:
        return None
    for read, whole in _READERS:
        found = read(text)
        if found is not None:
            deep = [each for part in found for each in _deep(part, depth)]
            return tuple(deep), "" if whole else _rest(text, found)
    return None


def _deep(part: Part, depth: int) -> Iterator[Part]:
    """Yield a part, and the parts of its value where that is a text in a language itself."""
    is_text = isinstance(part.value, str) and not part.fixed
    inner = parts(str(part.value), depth + 1) if is_text else None
    yield part if inner is None else replace(part, rest=inner[1])
    for each in inner[0] if inner else ():
        start, end = (part.start + _length(part, each_at) for each_at in (each.start, each.end))
        yield replace(
            each,
            start=start,
            end=end,
            inside=(*part.inside, *each.inside),
            names=each.names or part.names,
            writers=(*each.writers, *part.writers),
        )


def _length(part: Part, size: int) -> int:
    return len(written(str(part.value)[:size], part.writers))


def written(text: str, writers: Sequence[str]) -> str:
    """Return the characters that spell `text` where `writers` write."""
    for writer in writers:
        text = WRITERS[writer](text) if text else text
    return text


def _rest(text: str, found: list[Part]) -> str:
    pieces, place = [], 0
    for part in found:
        pieces.append(text[place : part.start])
        place = part.end
    return " ".join([*pieces, text[place:]])
