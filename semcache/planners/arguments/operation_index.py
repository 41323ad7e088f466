"""The words by which operations go, and an index of them: which of thousands could a text mean.

An operation says twice what it does: by its name (`list_issue_types`) and by the first sentence of
its summary ("List the types of issues."). A prompt asks for it if it says the words of one of the
two, all of them. The index is built once a catalog (by its fingerprint); asking it looks at the
words of the text alone.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log

from semcache.canonical import as_list, as_object
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import snake, verb_and_noun
from semcache.planners.arguments.synonyms import words
from semcache.planners.steps.intents import ACTIONS, Action
from semcache.prompts.tokens import tokens
from semcache.prompts.words import (
    ARTICLES,
    AUXILIARIES,
    FUNCTION_WORDS,
    POLITENESS,
    PREPOSITIONS,
    PRONOUNS,
    singular,
)

# Beside the verbs of the specification, those by which operations are named in general English.
_MORE: dict[str, Action] = {
    "browse": "list", "display": "list", "lookup": "search", "insert": "create", "post": "create",
    "patch": "update", "put": "update", "set": "update", "destroy": "delete", "give": "get",
    "tell": "get", "return": "get", "see": "get",
}  # fmt: skip
# "new customers" are customers, whatever a name that begins so does.
VERBS: Mapping[str, Action] = {
    word: action for word, action in {**ACTIONS, **_MORE}.items() if word != "new"
}
"""Verb of an operation's name, or of a prompt → the action that it names."""
READING: frozenset[Action] = frozenset(["list", "get", "search"])
"""Actions that only ask to be shown something."""
LOOSE = frozenset(
    "all data detail details existing given id ids identifier info information list object "
    "particular record records single specific".split()
)
"""Words of a phrasing that a prompt may leave out: they say how something comes, not which."""
PARTICLES = frozenset("away back down off on out over up".split())
"""Words after a verb that make another verb of it: "turn off"."""
MAX_WORDS = 14
"""Words of a summary's first sentence; a longer one describes more than it names."""
MARKED = 3
"""Names that begin with the same word, from which on it may be the mark of their maker."""
_FUNCTION = ARTICLES | AUXILIARIES | PREPOSITIONS | PRONOUNS
_SENTENCE = re.compile(r"[.;:](?:\s|$)|\n")
_VERSION = re.compile(r"\(?\bv?\d+\)?")
MAX_INDEXES = 16
"""Catalogs whose index is kept."""
MAX_SUMMARY = 400
"""Characters of a summary that are read; a longer one is documentation."""
SATURATION = 1.2
LENGTH = 0.75
"""The constants of BM25, as Robertson and Zaragoza (2009) give them."""
_IDLE = FUNCTION_WORDS | POLITENESS | frozenset(["all", "any", "some"])
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


# ── phrases ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class OperationPhrase:
    """One way in which an operation says what it does."""

    verb: str
    words: tuple[str, ...]
    """The other words, lower case, as they stand there."""

    @property
    def nouns(self) -> frozenset[str]:
        """The words that a prompt must say, singular; "off" of `turn_off` is one of them."""
        particle = {*self.words[:1]} & PARTICLES
        said = (one for one in self.words if one not in _FUNCTION | LOOSE)
        return frozenset((*map(singular, said), *particle))


@lru_cache(maxsize=16)
def _marks(catalog: Catalog) -> Mapping[str, str]:
    """Return space → the word with which all its names begin (`Hass`), where that says nothing."""
    spaces: dict[str, list[list[str]]] = {}
    for name in catalog.names:
        if name not in catalog.builtins:
            space, _, last = name.rpartition(".")
            spaces.setdefault(space, []).append(snake(last).split("_"))
    found = {}
    for space, names in spaces.items():
        first = {words[0] for words in names if len(words) > 1}
        if len(names) >= MARKED and len(first) == 1 and not first & VERBS.keys():
            found[space] = first.pop()
    return {s: m for s, m in found.items() if all(len(words) > 1 for words in spaces[s])}


def unmarked(name: str, catalog: Catalog) -> str:
    """Return a name without the word that begins all names beside it: `turn_on` of `HassTurnOn`."""
    space, _, last = name.rpartition(".")
    mark = _marks(catalog).get(space)
    if mark is None:
        return name
    rest = snake(last).partition("_")[2]
    return f"{space}.{rest}" if space else rest


def same_verb(said: str, own: str) -> bool:
    """Return whether two verbs ask for the same: by the word, or by the table of actions."""
    if said == own:
        return True
    one, other = VERBS.get(said, "other"), VERBS.get(own, "other")
    return one == other != "other" or (one in READING and other in READING)


def phrasings(operation: Operation, name: str = "") -> tuple[OperationPhrase, ...]:
    """Return the ways in which an operation says what it does, its name first.

    `name`: the name to read, if not its own.
    """
    return tuple(dict.fromkeys(_phrasings(operation, name or operation.name)))


def _phrasings(operation: Operation, name: str) -> Iterator[OperationPhrase]:
    found = list(_by_name(name))
    said = _by_summary(operation.summary)
    found += [said] if said is not None else []
    for one in found:
        yield one
        # "git status" shows something, though nobody says "to git".
        if operation.effect == "read" and one.verb not in VERBS:
            yield OperationPhrase("get", (one.verb, *one.words))


def _by_name(name: str) -> Iterator[OperationPhrase]:
    *spaces, last = _parts(name)
    if len(last) == 1 and spaces and last[0] in VERBS:  # `issues.list`
        yield OperationPhrase(last[0], tuple(spaces[-1]))
        return
    yield OperationPhrase(last[0], tuple(last[1:]))
    if len(last) > 1 and last[0] not in VERBS:  # `vacuum_start`, `light_set_color`
        inner = (at for at, word in enumerate(last) if at and word in VERBS)
        for at in dict.fromkeys((*inner, len(last) - 1)):
            yield OperationPhrase(last[at], (*last[:at], *last[at + 1 :]))
    if len(last) > 1 and spaces and last[0] in spaces[-1]:  # `git.git_commit`
        yield OperationPhrase(last[1], tuple(last[2:]))


def _parts(name: str) -> list[list[str]]:
    parts = [part for part in re.split(r"[./:]", name.strip("./:")) if part]
    return [snake(part).split("_") for part in parts] or [[name.lower()]]


def spaces(name: str) -> frozenset[str]:
    """Return the words before the last part of a name, such as those of its server."""
    return frozenset(word for part in _parts(name)[:-1] for word in part)


def _by_summary(summary: str) -> OperationPhrase | None:
    sentence = _SENTENCE.split(summary.strip(), maxsplit=1)[0]
    found = [word for word in tokens(_VERSION.sub(" ", sentence)) if word[:1].isalnum()]
    if not found or len(found) > MAX_WORDS:
        return None
    return OperationPhrase(_infinitive(found[0]), tuple(found[1:]))


def _infinitive(verb: str) -> str:
    """Return the verb of "Lists", "Fetches" or "Modifies" as a prompt says it."""
    for ending, instead in (("ies", "y"), ("es", ""), ("s", "")):
        stem = verb.removesuffix(ending) + instead
        if verb.endswith(ending) and stem in VERBS:
            return stem
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


# ── the index ────────────────────────────────────────────────────────────────────────────────────


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
    named = as_object(operation.input_schema.get("properties"))
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
    inputs = ", ".join(as_object(operation.input_schema.get("properties")))
    said = f"{operation.name}: {operation.summary} ({inputs})"
    return " ".join(_CAMEL.sub(" ", said).replace("_", " ").replace(".", " ").split())


def _told(operation: Operation) -> str:
    """Return the words of an operation, those of its inputs' descriptions and enums among them."""
    inner: list[str] = []
    for schema in as_object(operation.input_schema.get("properties")).values():
        if isinstance(schema, dict):
            inner.append(str(schema.get("description", "")))
            inner += [one for one in as_list(schema.get("enum")) if isinstance(one, str)]
    return " ".join((wording(operation), *inner))


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
