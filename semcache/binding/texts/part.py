"""A part: characters of a text that spell one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from semcache.canonical import Json, Pointer

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
