"""Phrases: many known phrases found in a text at once."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Generic, TypeVar

from semcache.prompts.text import lowered

T = TypeVar("T")

_TOKEN = re.compile(r"\w+|[^\w\s]")


class Phrases(Generic[T]):
    """Known phrases and what each stands for; case and white space make no difference.

    Safe to search from several threads while one thread changes it.
    """

    def __init__(self) -> None:
        self._known: dict[str, T] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}
        self._begun: Counter[str] = Counter()
        """How many phrases begin with a word."""

    def __len__(self) -> int:
        """Return how many phrases are known."""
        return len(self._known)

    def items(self) -> Iterable[tuple[str, T]]:
        """Return each phrase, in the form of `phrase_key`, with what it stands for."""
        return self._known.items()

    def get(self, phrase: str) -> T | None:
        """Return what `phrase` stands for; None if it is not known."""
        return self._known.get(phrase_key(phrase))

    def put(self, phrase: str, meaning: T) -> None:
        """Let `phrase` stand for `meaning`, whatever it stood for before; blank text is ignored."""
        parts = _TOKEN.findall(lowered(phrase))
        if parts:
            known = " ".join(parts)
            self._begun[parts[0]] += known not in self._known
            self._known[known] = meaning
            # Replaced, not changed in place: a reader may be walking the old tuple.
            lengths = {len(parts), *self._lengths.get(parts[0], ())}
            self._lengths[parts[0]] = tuple(sorted(lengths, reverse=True))

    def drop(self, phrase: str) -> None:
        """Forget `phrase`; its length stays listed while others begin with the same word."""
        known = phrase_key(phrase)
        if self._known.pop(known, None) is None:
            return
        first = known.partition(" ")[0]
        self._begun[first] -= 1
        if not self._begun[first]:
            del self._begun[first]
            self._lengths.pop(first, None)

    def find(self, text: str) -> Iterator[tuple[int, int, T]]:
        """Yield start, end and meaning of the longest known phrase at each word of `text`."""
        lower = lowered(text)
        words = _tokens(lower)
        if self._lengths.keys().isdisjoint(words):
            return
        hits = list(self._hits(words))
        if hits:
            spans = [match.span() for match in _TOKEN.finditer(lower)]
            for first, last, meaning in hits:
                yield spans[first][0], spans[last][1], meaning

    def _hits(self, words: tuple[str, ...]) -> Iterator[tuple[int, int, T]]:
        for i, word in enumerate(words):
            for length in self._lengths.get(word, ()):
                meaning = self._known.get(" ".join(words[i : i + length]))
                if meaning is not None and i + length <= len(words):
                    yield i, i + length - 1, meaning
                    break


# Closed sets and learned values look at the same text, one after the other.
@lru_cache(maxsize=16)
def _tokens(lower: str) -> tuple[str, ...]:
    return tuple(_TOKEN.findall(lower))


def phrase_key(phrase: str) -> str:
    """Return the form in which phrases are compared: lower case, one space between all tokens."""
    return " ".join(_TOKEN.findall(lowered(phrase)))
