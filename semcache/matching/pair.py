"""A pair: a prompt and a candidate for it, as the gates see them."""

from dataclasses import dataclass
from typing import NamedTuple

from semcache.prompts.template import Slot, TemplateText


class Held(NamedTuple):
    """Words of an entry's prompt that its plan holds on to, case aside."""

    words: str
    value: str
    """The value that they carried, as text."""
    unless_given: bool = False
    """Whether they need not be said where the caller gives the values."""


def words_and_value(slot: Slot) -> tuple[str, str]:
    """Return the words in a slot and the value that they carry, as two prompts are compared."""
    return " ".join(slot.mention_text.casefold().split()), str(slot.value).casefold()


class Side(NamedTuple):  # as `Pair`
    """What one side of a pair brings."""

    template: TemplateText
    """Template text and slots."""
    names: frozenset[str]
    """Spelling-free names of the parameters that the caller gives, or that the entry needs."""
    catalog: str = ""
    """Fingerprint of the catalog in force; empty without one."""
    grounding: str = ""
    """Which grounding is in force; empty for none."""
    said: frozenset[str] = frozenset()
    """Of a prompt: the words of the mentions that nobody gave, and their values, case aside."""
    held: tuple[Held, ...] = ()
    """Of an entry: what it was made for that a prompt must say too."""


class Pair(NamedTuple):  # made for every candidate: half the time of a frozen dataclass
    """A prompt and a candidate for it."""

    query: Side
    candidate: Side
    score: float
    """Cosine of the template texts, in [-1, 1]; higher is nearer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of a pair."""

    gate: str
    passed: bool
    reason: str = ""
    """Why not; empty if it passed."""
