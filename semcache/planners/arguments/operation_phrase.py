"""Phrases of operations: the verb and the nouns by which an operation says what it does.

It says so twice: by its name (`list_issue_types`) and by the first sentence of its summary ("List
the types of issues."). A prompt asks for it if it says the words of one of the two, all of them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import snake
from semcache.planners.steps.intents import ACTIONS, Action
from semcache.prompts.tokens import tokens
from semcache.prompts.words import ARTICLES, AUXILIARIES, PREPOSITIONS, PRONOUNS, singular

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
