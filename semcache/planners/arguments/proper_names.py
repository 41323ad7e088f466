"""Names that no recognizer knows, by their capitals, as values of a step."""

import re
from collections.abc import Iterator, Sequence

from semcache.prompts.parameter import Parameter
from semcache.prompts.words import CLOSED_CLASS

PROPER = "proper"
"""The kind of a value that is only known to be a name: `proper`, `proper2`…"""
_WORD = re.compile(r"[^\W\d_][\w'&.-]*")
MAX_WORDS = 6
"""Words of one name."""


def proper_names(text: str, taken: Sequence[Parameter] = ()) -> tuple[Parameter, ...]:
    """Return the names in `text` that are in none of the values `taken`, in order.

    A name is a run of words with capitals; the first word of a text says nothing by its capital,
    and a text in which most words have one says nothing at all. What is all in capitals is short
    for something ("LAX"), and no value by itself.
    """
    words = list(_WORD.finditer(text))
    capital = [word for word in words if word[0][:1].isupper()]
    if len(capital) * 2 > len(words) + 1:
        return ()
    held = [_span(text, one.mention) for one in taken if one.mention]
    runs = list(_runs(text, [word.span() for word in words[1:]], held))
    return tuple(
        Parameter(PROPER if i == 0 else f"{PROPER}{i + 1}", run, run) for i, run in enumerate(runs)
    )


def _span(text: str, mention: str) -> tuple[int, int]:
    at = text.casefold().find(mention.casefold())
    return at, at + len(mention)


def _runs(
    text: str, spans: Sequence[tuple[int, int]], held: Sequence[tuple[int, int]]
) -> Iterator[str]:
    start, end, count = -1, -1, 0
    for at, until in spans:
        word = text[at:until]
        free = not any(a < until and at < b for a, b in held)
        named = word.istitle() and word.lower() not in CLOSED_CLASS and free
        joined = start >= 0 and text[end:at].isspace() and count < MAX_WORDS
        if named and joined:
            end, count = until, count + 1
        elif named:
            if start >= 0:
                yield text[start:end].rstrip(".")
            start, end, count = at, until, 1
    if start >= 0:
        yield text[start:end].rstrip(".")
