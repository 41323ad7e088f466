"""Recognition: what a recognizer says about a text."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from semcache.canonical import Json


class Recognition(NamedTuple):
    """A value that a recognizer found in a text."""

    start: int
    """Offset of its first character."""
    end: int
    """Offset after its last character."""
    kind: str
    """Slot type: `number`, `year`, `date`…"""
    value: Json
    """The value, normalized where its words determine it, else the words."""
    relative: bool = False
    """Whether what it denotes depends on when it is asked."""


Recognizer: TypeAlias = Callable[[str], Iterable[Recognition]]
"""Finds values of an open class in a text. Pure; called with every prompt, so it must be quick."""
