"""An index over the operations of a catalog: which of thousands could a text be about.

Built once a catalog (by its fingerprint); asking it looks at the words of the text alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from semcache.canonical import Json, JsonObject, as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import verb_and_noun
from semcache.planners.arguments.operation_phrase import (
    READING,
    VERBS,
    OperationPhrase,
    phrasings,
    unmarked,
)
from semcache.planners.arguments.synonyms import words
from semcache.planners.steps.intents import Action
from semcache.prompts.tokens import tokens
from semcache.prompts.words import FUNCTION_WORDS, POLITENESS, singular

MAX_INDEXES = 16
"""Catalogs whose index is kept."""
MAX_SUMMARY = 400
"""Characters of a summary that are read; a longer one is documentation."""
SATURATION = 1.2
LENGTH = 0.75
"""The constants of BM25, as Robertson and Zaragoza (2009) give them."""
_IDLE = FUNCTION_WORDS | POLITENESS | frozenset(["all", "any", "some"])
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@dataclass(frozen=True, slots=True)
class IndexedOperation:
    """An operation, and the words that it goes by."""

    operation: Operation
    verb: str
    """First word of its name, lower case."""
    action: Action
    """What the verb amounts to; `other` for a verb that says itself what it does (`book`)."""
    nouns: tuple[str, ...]
    """Singular words of what it is about: issue, type."""
    inputs: frozenset[str]
    """Singular words of the names of its inputs."""
    told: frozenset[str]
    """Singular content words of its summary."""
    phrasings: tuple[OperationPhrase, ...]
    """The ways in which it says what it does."""

    @property
    def reads(self) -> bool:
        """Whether it only shows something, by its effect or its verb."""
        return self.operation.effect == "read" or self.action in READING


@dataclass(frozen=True, slots=True)
class OperationIndex:
    """The operations of one catalog by their words. Immutable."""

    known: tuple[IndexedOperation, ...]
    _postings: Mapping[str, tuple[tuple[int, float], ...]]
    """Word → place of each operation that says it, and what that counts by BM25."""

    @classmethod
    def of(cls, catalog: Catalog) -> "OperationIndex":
        """Return the index of `catalog`. Cost: some 30 µs an operation."""
        known = tuple(known_as(operation, catalog) for operation in catalog)
        return cls(known, _postings([Counter(content(_told(one.operation))) for one in known]))

    def near(self, said: Iterable[str], count: int) -> list[IndexedOperation]:
        """Return at most `count` operations that have words of those said, most telling first."""
        best = sorted(self.scores(said).items(), key=lambda pair: (-pair[1], pair[0]))[:count]
        return [self.known[place] for place, _ in best]

    def scores(self, said: Iterable[str]) -> Mapping[int, float]:
        """Return place → how well the operation there matches the words said; only those over 0."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word in dict.fromkeys(said):
            for place, counts in self._postings.get(word, ()):
                scores[place] += counts
        return scores


@lru_cache(maxsize=MAX_INDEXES)
def index_of(catalog: Catalog) -> OperationIndex:
    """Return the index of `catalog`, built at its first use. Safe from several threads."""
    return OperationIndex.of(catalog)


def known_as(operation: Operation, catalog: Catalog) -> IndexedOperation:
    """Return the words that an operation of `catalog` goes by."""
    name = unmarked(operation.name, catalog)
    verb, noun = verb_and_noun(name)
    properties = operation.input_schema.get("properties")
    named: JsonObject = as_object(properties)
    return IndexedOperation(
        operation,
        verb,
        VERBS.get(verb, "other"),
        words(noun),
        frozenset(word for name in named for word in words(name)),
        frozenset(content(operation.summary[:MAX_SUMMARY])),
        phrasings(operation, name),
    )


def _postings(counts: Sequence[Counter[str]]) -> dict[str, tuple[tuple[int, float], ...]]:
    spread = Counter(word for counted in counts for word in counted)
    total = len(counts)
    length = sum(counted.total() for counted in counts) / max(total, 1) or 1.0
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, counted in enumerate(counts):
        longer = SATURATION * (1 - LENGTH + LENGTH * counted.total() / length)
        for word, times in counted.items():
            rarity = log(1 + (total - spread[word] + 0.5) / (spread[word] + 0.5))
            found[word].append((place, rarity * times * (SATURATION + 1) / (times + longer)))
    return {word: tuple(places) for word, places in found.items()}


def wording(operation: Operation) -> str:
    """Return what an operation says of itself in plain words: name, summary, names of inputs."""
    properties = operation.input_schema.get("properties")
    inputs = ", ".join(properties) if isinstance(properties, dict) else ""
    said = f"{operation.name}: {operation.summary} ({inputs})"
    return " ".join(_CAMEL.sub(" ", said).replace("_", " ").replace(".", " ").split())


def _told(operation: Operation) -> str:
    """Return the words of an operation, those of its inputs' descriptions and enums among them."""
    properties = operation.input_schema.get("properties")
    inner: list[str] = []
    for schema in properties.values() if isinstance(properties, dict) else ():
        if isinstance(schema, dict):
            inner += [str(schema.get("description", "")), *_choices(schema.get("enum"))]
    return " ".join((wording(operation), *inner))


def _choices(listed: Json) -> list[str]:
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []


def content(text: str) -> Sequence[str]:
    """Return the singular words of a text that say something, in order.

    Words that turn a condition round, compare or order are among them: what an operation does not
    account for it would lose. "order" and "count" are nouns as often.
    """
    return [
        singular(word)
        for word in tokens(text.replace("_", " "))
        if word not in _IDLE and word[:1].isalnum()
    ]
