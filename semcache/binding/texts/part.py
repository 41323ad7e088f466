"""A part: characters of a text that spell one value, and a value put inside longer text."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from semcache.canonical import Json, Pointer
from semcache.errors import BindingError

Writer: TypeAlias = Callable[[Json], str]
"""Spells a value in a language, so that it stays one value there. Raises BindingError where that
cannot be promised. The spelling of a text is that of its characters, one after another."""


@dataclass(frozen=True, slots=True)
class Part:
    """Characters of a text that spell a value."""

    start: int
    end: int
    value: Json
    inside: Pointer = ()
    """Keys and positions on the way to it, where the language has such."""
    names: tuple[str, ...] = ()
    """What it is called there, spelled alike; empty: what the whole text is called."""
    writers: tuple[str, ...] = ()
    """Names of the codecs that spell another value in its place, the innermost first."""
    codec: str = ""
    """Codec whose form another value must have; empty: that of the value's type."""
    fixed: bool = False
    """Whether nothing may take its place: how it is spelled is not how we would spell it."""
    rest: str | None = None
    """What its value says beside the parts that it has itself; None: it has no parts."""


# Inline: a value inside longer text, put there so that it stays a value.
#
# Operations may read such text as SQL, a path or a query. A planner should hand values on whole;
# where it wrote `.../orders/{{params.id}}` instead, only values that cannot change what the text
# says are let in.

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_PLAIN = re.compile(r"[\w .,:@+-]*")
_TOKEN = re.compile(r"[\w.:@+-]*")
_QUOTES = "'\"`"
_TIGHT = "/\\?&#%$;|{}[]<>()="  # what has a meaning in paths, queries and code, next to the value
_LOOSE = "=<>"  # what compares with the value, across a space


def check_inline(before: str, value: str, after: str) -> None:
    """Let `value` stand between `before` and `after`, or refuse.

    Raises:
        BindingError: the value could end the text it stands in and say something else (`unsafe`).
    """
    if (
        _CONTROL.search(value)
        or not _allowed(before, after).fullmatch(value)
        or (before.endswith(("/", "\\")) and ".." in value)
    ):
        raise BindingError(
            f"{value[:80]!r} does not go between {before[-20:]!r} and {after[:20]!r}: it could "
            "change what the text means; hand the value on as an input of its own",
            reason="unsafe",
        )


def _allowed(before: str, after: str) -> re.Pattern[str]:
    left, right = before[-1:], after[:1]
    if left and left == right and left in _QUOTES:
        return _INSIDE[left]
    if before.rstrip()[-1:] in tuple(_LOOSE):
        return _TOKEN
    if left in tuple(_TIGHT + _QUOTES) or right in tuple(_TIGHT + _QUOTES):
        return _PLAIN
    return _ANY


_ANY = re.compile(r".*", re.DOTALL)
_INSIDE = {quote: re.compile(rf"[^{quote}\\\n]*") for quote in _QUOTES}
