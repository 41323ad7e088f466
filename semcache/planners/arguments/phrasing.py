"""Phrasing: the verb and the nouns by which an operation says what it does.

It says so twice: by its name (`list_issue_types`) and by the first sentence of its summary ("List
the types of issues."). A prompt asks for it if it says the words of one of the two, all of them.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from semcache.catalog.operation import Operation
from semcache.catalog.shape import snake
from semcache.planners.steps.intents import ACTIONS, KEYWORDS, Action
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
    word: action
    for word, action in (
        {word: action for action, listed in KEYWORDS.items() for word in listed}
        | dict(ACTIONS)
        | _MORE
    ).items()
    if word != "new"
}
"""Verb of an operation's name, or of a prompt → the action that it names."""
READING: frozenset[Action] = frozenset(["list", "get", "search"])
"""Actions that only ask to be shown something."""
LOOSE = frozenset(
    "all data detail details existing given id ids identifier info information list object "
    "particular record records single specific".split()
)
"""Words of a phrasing that a prompt may leave out: they say how something comes, not which."""
MAX_WORDS = 14
"""Words of a summary's first sentence; a longer one describes more than it names."""
_FUNCTION = ARTICLES | AUXILIARIES | PREPOSITIONS | PRONOUNS
_SENTENCE = re.compile(r"[.;:](?:\s|$)|\n")
_VERSION = re.compile(r"\(?\bv?\d+\)?")


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way in which an operation says what it does."""

    verb: str
    words: tuple[str, ...]
    """The other words, lower case, as they stand there."""

    @property
    def nouns(self) -> frozenset[str]:
        """The words that a prompt must say, singular."""
        return frozenset(singular(one) for one in self.words if one not in _FUNCTION | LOOSE)


def same_verb(said: str, own: str) -> bool:
    """Return whether two verbs ask for the same: by the word, or by the table of actions."""
    if said == own:
        return True
    one, other = VERBS.get(said, "other"), VERBS.get(own, "other")
    return one == other != "other" or (one in READING and other in READING)


def phrasings(operation: Operation) -> tuple[Phrasing, ...]:
    """Return the ways in which an operation says what it does, its name first."""
    return tuple(dict.fromkeys(_phrasings(operation)))


def _phrasings(operation: Operation) -> Iterator[Phrasing]:
    found = list(_by_name(operation.name))
    said = _by_summary(operation.summary)
    found += [said] if said is not None else []
    for one in found:
        yield one
        # "git status" shows something, though nobody says "to git".
        if operation.effect == "read" and one.verb not in VERBS:
            yield Phrasing("get", (one.verb, *one.words))


def _by_name(name: str) -> Iterator[Phrasing]:
    *spaces, last = _parts(name)
    if len(last) == 1 and spaces and last[0] in VERBS:  # `issues.list`
        yield Phrasing(last[0], tuple(spaces[-1]))
        return
    yield Phrasing(last[0], tuple(last[1:]))
    if len(last) > 1 and spaces and last[0] in spaces[-1]:  # `git.git_commit`
        yield Phrasing(last[1], tuple(last[2:]))


def _parts(name: str) -> list[list[str]]:
    parts = [part for part in re.split(r"[./:]", name.strip("./:")) if part]
    return [snake(part).split("_") for part in parts] or [[name.lower()]]


def spaces(name: str) -> frozenset[str]:
    """Return the words before the last part of a name, such as those of its server."""
    return frozenset(word for part in _parts(name)[:-1] for word in part)


def _by_summary(summary: str) -> Phrasing | None:
    sentence = _SENTENCE.split(summary.strip(), maxsplit=1)[0]
    found = [word for word in tokens(_VERSION.sub(" ", sentence)) if word[:1].isalnum()]
    if not found or len(found) > MAX_WORDS:
        return None
    return Phrasing(_infinitive(found[0]), tuple(found[1:]))


def _infinitive(verb: str) -> str:
    """Return the verb of "Lists", "Fetches" or "Modifies" as a prompt says it."""
    for ending, instead in (("ies", "y"), ("es", ""), ("s", "")):
        stem = verb.removesuffix(ending) + instead
        if verb.endswith(ending) and stem in VERBS:
            return stem
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb
