"""The words of a step: without courtesies, and in units of one word, sign or value each."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from semcache.canonical import same
from semcache.planners.arguments.argument_match import Placed
from semcache.prompts.mentions import find_mentions
from semcache.prompts.words import singular

_COURTESIES = re.compile(
    r"(?:(?:please|kindly|hi|hello|hey)\b[,!]?\s*|(?:can|could|would|will) you\s+"
    r"|i(?:'d| would) like (?:you )?to\s+|i (?:want|need)(?: you)? to\s+|let'?s\s+)+",
    re.IGNORECASE,
)
_THANKS = re.compile(r"(?<![\s,;.!?])[\s,;.!?]+(?:please|thanks|thank you|for me)\Z", re.IGNORECASE)
_MARKS = " \t\r\n.!?,;"
# Ways of asking to be shown something, each by one verb.
_REQUESTS = re.compile(
    r"(?:what(?:'s| is| are| was| were)|which are|(?:show|give|tell|get|find|fetch|list)"
    r" (?:me|us)|look up|search for|look for)\b",
    re.IGNORECASE,
)
MASK = "\ufffc"
"""Stands for every character of a value in a masked text."""
_UNIT = re.compile(rf"{MASK}+|['\u2019]s\b|[^\W_]+(?:[-'\u2019][^\W_]+)*|_|[^\w\s]")


def trimmed(text: str) -> str:
    """Return a text without courtesies at its beginning and its end, and without its last mark."""
    start, end = trimmed_span(text, 0, len(text))
    return text[start:end]


def trimmed_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where a part of a text begins and ends without courtesies and its last mark."""
    start = end - len(text[start:end].lstrip())
    begun = _COURTESIES.match(text, start, end)
    start = begun.end() if begun else start
    left = text[start:end].rstrip(_MARKS)
    while (thanks := _THANKS.search(left)) is not None:
        left = left[: thanks.start()].rstrip(_MARKS)
    return start, start + len(left)


@dataclass(frozen=True, slots=True)
class StepUnit:
    """One word, sign or value of a step."""

    text: str
    """As it stands there."""
    value: Placed | None = None

    @property
    def word(self) -> str:
        """The text in lower case."""
        return self.text.lower()

    @property
    def singular(self) -> str:
        """The word without the ending of a plural."""
        return singular(self.word)


def units_of(goal: str, placed: Sequence[Placed]) -> list[StepUnit]:
    """Return the words, signs and values of a text in order."""
    masked, held = goal, dict[int, Placed]()
    for one in sorted(placed, key=lambda one: -len(one.param.mention or "")):
        for start, end in _spans(masked, one):
            held[start] = one
            masked = masked[:start] + MASK * (end - start) + masked[end:]
    request = _REQUESTS.match(masked)
    at = 0
    units = []
    if request is not None:
        verb = "search" if request[0].lower() in {"look up", "search for", "look for"} else "get"
        units.append(StepUnit(verb))
        at = request.end()
    for found in _UNIT.finditer(masked, at):
        if found[0][0] != MASK:
            units.append(StepUnit(found[0]))
            continue
        starts = [one for one in held if found.start() <= one < found.end()]
        units += [StepUnit(MASK, held[one]) for one in sorted(starts)]
    return units


def _spans(text: str, one: Placed) -> Iterator[tuple[int, int]]:
    """Yield where a value stands: by its words, else as the value itself, spelled in any way."""
    param = one.param
    said = param.mention if param.mention is not None else str(param.value)
    whole = rf"(?<![\w-])[\"'\u201c\u2018]?{re.escape(said)}[\"'\u201d\u2019]?(?![\w-])"
    match = re.search(whole, text, re.IGNORECASE) if said else None
    if match is not None:
        yield match.span()
    elif param.mention is None:
        yield from (
            (found.start, found.end)
            for found in find_mentions(text)
            if not found.relative and same(found.value, param.value)
        )
