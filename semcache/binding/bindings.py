"""Pieces of a plan template: where a value goes, and which value must stay."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

from semcache.canonical import Json, Pointer

Why: TypeAlias = Literal[
    "unbound", "repeated", "ambiguous", "left", "derived", "unknown", "echo", "shape", "kin",
    "moment", "varies",
]  # fmt: skip
"""Why a value is pinned; `WHY` says what each word means."""

WHY: Mapping[Why, str] = MappingProxyType(
    {
        "unbound": "it stands nowhere in the plan",
        "repeated": "it stands in the plan where it may be by chance",
        "ambiguous": "more than one value may have made what the plan has",
        "left": "it also stands inside a longer text of the plan",
        "derived": "a constant of the plan may follow from it",
        "unknown": "the plan does not have these words, so nobody knows what they change",
        "echo": "its words repeat other values, and must go on doing so",
        "kin": "a value of the plan that nobody said may follow from it",
        "moment": "a date of the plan may follow from it",
        "shape": "its parts may change, how many they are may not",
        "varies": "with another value of it the plan had other constants",
    }
)
"""What each of them means, in words for users."""


@dataclass(frozen=True, slots=True)
class Binding:
    """A place in a plan, and the parameter whose value goes there."""

    at: Pointer
    """Where the value goes."""
    param: str
    """Name of the parameter."""
    codec: str
    """Name of the codec that makes the plan's value of the parameter's; of several, one after
    another, with `|` between: the last ones spell the value in a text."""
    path: Pointer = ()
    """Which part of the parameter's value; empty for the whole."""
    inline: bool = False
    """Whether the value is part of longer text; such bindings of one place follow each other."""
    before: str = ""
    """The text before the value, if `inline`."""
    after: str = ""
    """The text after the value, if `inline` and last of its place."""

    @property
    def is_checked(self) -> bool:
        """Whether text may change what the words around it say, so that it has to be checked."""
        return "|" not in self.codec or self.codec.startswith("inline|")


@dataclass(frozen=True, slots=True)
class Filling:
    """A place of a plan, whole or inside a text, and the value that goes there."""

    at: Pointer
    """Where; two numbers below a text are those characters of it."""
    param: str
    codec: str
    path: Pointer = ()
    """Which part of the parameter's value; empty for the whole."""
    in_text: bool = False
    """Whether `at` ends in the two numbers."""

    @property
    def span(self) -> tuple[int, int]:
        """The characters of the text, from and to (exclusive)."""
        start, end = self.at[-2:]
        return int(start), int(end)


@dataclass(frozen=True, slots=True)
class Pin:
    """A value that must stay what it was: the plan serves no other."""

    param: str
    """Name of the parameter."""
    value: Json
    """The value it must have."""
    why: Why
    path: Pointer = ()
    """Which part of the parameter's value is pinned; empty for the whole."""
    echo: tuple[str, ...] = ()
    """For `echo`: text and names of parameters by turns, text first and last; with their values in
    place the text is the value that is wanted ("Update on ", `customer`, "")."""
