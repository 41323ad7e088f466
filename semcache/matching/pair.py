"""A pair: a prompt and a candidate for it, as the gates see them."""

from dataclasses import dataclass
from typing import NamedTuple

from semcache.canonical import Json
from semcache.prompts.template import TemplateText


class Held(NamedTuple):
    """Words of an entry's prompt that its plan holds on to, case aside."""

    words: str
    value: str
    """The value that they carried, as text."""


def held(words: str, value: Json) -> Held:
    """Return words of a prompt and the value that they carry, as two prompts are compared."""
    return Held(" ".join(words.casefold().split()), str(value).casefold())


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
    """Of a prompt that comes without values: the words of its mentions, and their values, case
    aside."""
    held: tuple[Held, ...] = ()
    """Of an entry: what it was made for that a prompt without values must say too."""


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
