"""Closed sets: the values that a field can have, and the phrases that are known to say them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from semcache.canonical import Json
from semcache.process.memo import memoized
from semcache.prompts.parameter import type_key
from semcache.prompts.tokens import PIECE, lowered, phrase_key
from semcache.prompts.words import CLOSED_CLASS, is_grammar, singular

T = TypeVar("T")


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
        parts = PIECE.findall(lowered(phrase))
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
        if not self._lengths:
            return
        lower = lowered(text)
        words = _tokens(lower)
        if self._lengths.keys().isdisjoint(words):
            return
        hits = list(self._hits(words))
        if hits:
            spans = [match.span() for match in PIECE.finditer(lower)]
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
@memoized(16)
def _tokens(lower: str) -> tuple[str, ...]:
    return tuple(PIECE.findall(lower))


Scalar: TypeAlias = str | int | float | bool
"""What words may be known to stand for."""


class _Member(NamedTuple):
    field: str
    value: Json
    spelling: str
    """How it was declared."""
    told: bool = False
    """Whether it comes from a table of translations."""


def _rows(tables: Mapping[str, Mapping[str, Scalar]]) -> Iterator[tuple[str, str, Scalar]]:
    for field, table in tables.items():
        for words, value in table.items():
            yield field, words, value


class ClosedValues(Mapping[str, Sequence[str]]):
    """Field → the values that it can have, compiled for search. Immutable.

    A value that stands in two fields belongs to the first of them. Values that are also words of
    English grammar ("IN" for Indiana, "OR" for Oregon) count only in capitals inside a text that
    has other letters; two-letter codes also count in lower case after "in" or "from".
    """

    def __init__(
        self,
        values: Mapping[str, Sequence[str]],
        *,
        synonyms: Mapping[str, str] = MappingProxyType({}),
        translations: Mapping[str, Mapping[str, Scalar]] = MappingProxyType({}),
        labels: Mapping[str, Mapping[str, Scalar]] = MappingProxyType({}),
    ) -> None:
        """Compile `values`; a synonym of one of them ("Texas" of `TX`) is found as that value.

        `translations`: name of a parameter, or slot type → words → the value that they stand for.
        They go before values of the same words. `labels`: field → words → value, as schemas have
        them; values and synonyms go before these.
        """
        self._values = {field: tuple(values[field]) for field in values}
        self._phrases: Phrases[_Member] = Phrases()
        for field, words, value in _rows(translations):
            self._phrases.put(words, _Member(type_key(field), value, words, told=True))
        for field, members in self._values.items():
            for member in members:
                self._put(_Member(field, member, member))
        members_of = {value: name for name in reversed([*values]) for value in values[name]}
        for word, target in synonyms.items():
            if target in members_of and self._phrases.get(word) is None:
                self._phrases.put(word, _Member(members_of[target], target, target))
        for field, words, value in _rows(labels):
            self._put(_Member(field, value, words))

    def __getitem__(self, field: str) -> Sequence[str]:
        """Return the values of `field`."""
        return self._values[field]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        """Return whether there is anything to find."""
        return len(self._phrases) > 0

    def find(self, text: str) -> Iterator[tuple[int, int, str, Json]]:
        """Yield start, end, field and declared value of each member; spans may overlap."""
        for start, end, member in self._phrases.find(text):
            if _is_meant(text, start, end, member):
                yield start, end, member.field, member.value

    def _put(self, member: _Member) -> None:
        for spelling in _spellings(member.spelling):
            if self._phrases.get(spelling) is None:
                self._phrases.put(spelling, member)


def _spellings(value: str) -> Iterator[str]:
    """Yield `value` as declared, in the other number ("Laptops"), and without `_`."""
    yield value
    if "_" in value or "-" in value:
        yield value.replace("_", " ").replace("-", " ")
    words = phrase_key(value)
    head, _, last = words.rpartition(" ")
    one = f"{head} {singular(last)}".strip()
    yield one
    if one == words and len(last) > 2 and last.isalpha() and not value.isupper():
        yield words[:-1] + "ies" if _ends_in_consonant_y(last) else words + "s"


def _ends_in_consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


def _is_meant(text: str, start: int, end: int, member: _Member) -> bool:
    words, declared = text[start:end], member.spelling
    if is_grammar(text, start, end):
        return False
    if words.lower() in CLOSED_CLASS:
        return words == declared and (member.told or declared.isupper())
    if len(words) == 2 and declared.isupper() and words != declared:
        return text[:start].lower().endswith(("in ", "from "))
    return True
