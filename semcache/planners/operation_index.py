"""An index over the operations of a catalog: which of thousands could a step be about.

Built once a catalog (by its fingerprint); asking it looks at the words of the step alone.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from threading import Lock

from semcache.canonical import JsonObject
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import verb_and_noun
from semcache.planners.intents import ACTIONS, KEYWORDS, Action
from semcache.planners.synonyms import words
from semcache.prompts.words import FUNCTION_WORDS, POLITENESS, singular, tokens

MAX_INDEXES = 8
"""Catalogs whose index is kept."""
MAX_SUMMARY = 400
"""Characters of a summary that are read; a longer one is documentation."""
# Beside the verbs of the specification, those by which operations are named in general English.
_MORE: dict[str, Action] = {
    "browse": "list", "display": "list", "lookup": "search", "insert": "create", "post": "create",
    "patch": "update", "put": "update", "set": "update", "destroy": "delete",
}  # fmt: skip
VERBS: Mapping[str, Action] = (
    {word: action for action, listed in KEYWORDS.items() for word in listed} | dict(ACTIONS) | _MORE
)
"""Verb of an operation's name, or of a prompt → the action that it names."""
_IDLE = FUNCTION_WORDS | POLITENESS | frozenset(["all", "any", "some"])
READING: frozenset[Action] = frozenset(["list", "get", "search"])
"""Actions that only ask to be shown something."""


@dataclass(frozen=True, slots=True)
class Known:
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

    @property
    def reads(self) -> bool:
        """Whether it only shows something, by its effect or its verb."""
        return self.operation.effect == "read" or self.action in READING


@dataclass(frozen=True, slots=True)
class OperationIndex:
    """The operations of one catalog by their words. Immutable."""

    known: tuple[Known, ...]
    _postings: Mapping[str, tuple[tuple[int, float], ...]]
    """Word → place of each operation that has it, and what having it counts."""
    _rarity: Mapping[str, float]
    """Word → the rarer, the more: the logarithm of operations by operations that have it."""
    _nouns: frozenset[str]

    @classmethod
    def of(cls, catalog: Catalog) -> "OperationIndex":
        """Return the index of `catalog`. Cost: some 30 µs an operation."""
        known = tuple(known_as(operation) for operation in catalog)
        weights: dict[str, dict[int, float]] = {}
        for place, one in enumerate(known):
            parts = ((one.told, 1.0), (one.inputs, 1.0), ((one.verb,), 2.0), (one.nouns, 4.0))
            for named, weight in parts:
                for word in named:
                    weights.setdefault(word, {})[place] = weight
        count = max(len(known), 1)
        return cls(
            known,
            {word: tuple(places.items()) for word, places in weights.items()},
            {word: log(1 + count / len(places)) for word, places in weights.items()},
            frozenset(word for one in known for word in one.nouns),
        )

    def rarity(self, word: str) -> float:
        """Return how much a word tells operations apart; the most for one that none has."""
        return self._rarity.get(word, log(1 + max(len(self.known), 1)))

    def is_noun(self, word: str) -> bool:
        """Return whether some operation is about the word."""
        return word in self._nouns

    def near(self, said: Iterable[str], count: int) -> list[Known]:
        """Return at most `count` operations that have words of those said, most telling first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word in set(said):
            rarity = self._rarity.get(word, 0.0)
            for place, weight in self._postings.get(word, ()):
                scores[place] += weight * rarity
        best = sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:count]
        return [self.known[place] for place, _ in best]


class Indexes:
    """Indexes by catalog, the latest kept. Safe from several threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, OperationIndex] = OrderedDict()
        self._lock = Lock()

    def of(self, catalog: Catalog) -> OperationIndex:
        """Return the index of `catalog`, built at its first use."""
        with self._lock:
            found = self._kept.get(catalog.fingerprint)
            if found is not None:
                self._kept.move_to_end(catalog.fingerprint)
                return found
        made = OperationIndex.of(catalog)
        with self._lock:
            self._kept[catalog.fingerprint] = made
            while len(self._kept) > MAX_INDEXES:
                self._kept.popitem(last=False)
        return made


def known_as(operation: Operation) -> Known:
    """Return the words that an operation goes by."""
    verb, noun = verb_and_noun(operation.name)
    properties = operation.input_schema.get("properties")
    named: JsonObject = properties if isinstance(properties, dict) else {}
    return Known(
        operation,
        verb,
        VERBS.get(verb, "other"),
        words(noun),
        frozenset(word for name in named for word in words(name)),
        frozenset(content(operation.summary[:MAX_SUMMARY])),
    )


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
