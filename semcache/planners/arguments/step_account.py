"""The account of a step: each word and sign is a verb, a noun, a value, its role or a courtesy.

What is none of these would be lost in the plan, so that the plan is refused. The words come from
the operation (its name, summary, the properties that were filled) and from the tables below.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from semcache.catalog.catalog import Catalog
from semcache.catalog.shape import shape
from semcache.planners.arguments.argument_match import Placed
from semcache.planners.arguments.operation_index import (
    LOOSE,
    PARTICLES,
    READING,
    VERBS,
    IndexedOperation,
    OperationPhrase,
    same_verb,
    spaces,
)
from semcache.planners.arguments.step_words import StepUnit, trimmed, units_of
from semcache.planners.arguments.synonyms import same_meaning, words
from semcache.planners.rules.frame import role
from semcache.planners.rules.lexicon import PHRASES
from semcache.prompts.parameter import name_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import ARTICLES, singular

# Prepositions that say no more than that a value or a noun belongs to what was said before.
_NEUTRAL = frozenset("of for in on at with within".split())
# Those that say which part a value plays → last words of the names of properties that are so.
_ROLES: dict[str, frozenset[str]] = {
    "from": frozenset("from origin source departure start sender since begin".split()),
    "to": frozenset("to destination target arrival end recipient receiver until".split()),
    "by": frozenset("by author creator artist director owner user assignee".split()),
    "about": frozenset("about topic subject query q search keyword term".split()),
    "as": frozenset("as role status format type state kind".split()),
}
# What these verbs do ends at somebody or something, which "to" tells.
_GIVING = frozenset(
    "add assign attach forward give invite mail move notify pay reply sell send share "
    "transfer write".split()
)
_BACK = frozenset(
    "it its them their that those these this her his him she he they ones each every all".split()
)
"""Words that speak of what a step before gave."""
_ONE = frozenset("it its this that her his him she he".split())
_NAMED = frozenset("named called titled".split())
_NAMES = frozenset("name title subject label key".split())
_NUMBERED = frozenset(["number", "no", "id", "#"])
_OWN = frozenset(["my", "our"])
_POSSESSIVES = frozenset(["'s", "\u2019s"])
_EQUALS = frozenset(["is", "are", "=", ":"])
# Whom "my" would be, if a property took a person.
_PEOPLE = frozenset("user owner customer client person employee assignee author account".split())
_LONGEST = max(map(len, PHRASES))
_SPAN_BEGINS = frozenset(["between", "from"])
_SPAN_JOINTS = frozenset("against and through to versus vs with".split())
_LISTS = frozenset("limit top_k n".split())


@dataclass(frozen=True, slots=True)
class StepAccount:
    """How a step is accounted for by one phrasing of an operation."""

    odd: tuple[str, ...]
    """Words and signs of the step that nothing accounts for."""
    unsaid: tuple[str, ...]
    """Words of the phrasing that the step should have said."""
    rank: tuple[int, int, int]
    """The lower, the nearer: another verb, words left out, another number."""

    @property
    def whole(self) -> bool:
        """Whether nothing would be lost, and nothing added."""
        return not self.odd and not self.unsaid


def account_of(
    goal: str,
    known: IndexedOperation,
    placed: Sequence[Placed],
    catalog: Catalog,
    *,
    wired: Collection[str] = (),
    verbatim: bool = False,
) -> StepAccount:
    """Return how the phrasing of an operation that fits best accounts for `goal`.

    `placed`: the values that the operation takes of it. `wired`: properties that take what steps
    before give. `verbatim`: whether one takes the words of the step as they stand.
    """
    units = units_of(trimmed(goal), placed)
    readers = (
        _Reader(units, known, one, placed, catalog, wired, verbatim) for one in known.phrasings
    )
    found = [reader.account() for reader in readers]
    return min(found, key=lambda one: (not one.whole, one.rank, len(one.odd)))


def speaks_of_one(goal: str) -> bool:
    """Return whether a step speaks of one thing that a step before gave: "close it"."""
    return not _ONE.isdisjoint(tokens(goal))


@lru_cache(maxsize=16)
def _synonyms(catalog: Catalog) -> Mapping[tuple[str, ...], Sequence[str]]:
    """Return the words of each synonym of a catalog → the singular words that it stands for."""
    return {
        tuple(tokens(word)): [singular(one) for one in tokens(meant.replace("_", " "))]
        for word, meant in catalog.synonyms.items()
    }


@dataclass
class _Reader:
    """Reads the units of a step by one phrasing of an operation."""

    units: Sequence[StepUnit]
    known: IndexedOperation
    phrasing: OperationPhrase
    placed: Sequence[Placed]
    catalog: Catalog
    wired: Collection[str]
    verbatim: bool
    said: set[str] = field(default_factory=set)
    odd: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.own = {singular(word) for word in self.phrasing.words} | {*self.phrasing.words}
        self.spaces = spaces(self.known.operation.name)
        self.operators = {one.name: one.operator for one in shape(self.known.operation).inputs}
        self.meant = _synonyms(self.catalog)

    def account(self) -> StepAccount:
        exact, start = self._verb()
        at = start
        while at < len(self.units):
            at += self._taken(at)
        self.said |= {word for one in self.placed for word in words(one.place.name)}
        self.said |= {word for name in self.wired for word in words(name)}
        unsaid = tuple(sorted(self.phrasing.nouns - self.said))
        left_out = sum(singular(word) not in self.said for word in self.phrasing.words)
        if self._disordered(start):
            self.odd.append("the order of its words")
        one_of_many, many_of_one, differs = self._numbers(start)
        if one_of_many and not self.placed:
            self.odd.append(one_of_many)
        if many_of_one and not exact and VERBS.get(self.phrasing.verb) == "get":
            self.odd.append(many_of_one)  # "search files" is not asked of `get_file`
        return StepAccount(tuple(self.odd), unsaid, (int(not exact), left_out, int(differs)))

    def _values(self) -> list[Placed]:
        return [one.value for one in self.units if one.value is not None]

    # The verb ------------------------------------------------------------------------------------

    def _verb(self) -> tuple[bool, int]:
        """Return whether the verb is the operation's own word, and where the step goes on."""
        own = self.phrasing.verb
        first = self.units[0].word if self.units and self.units[0].value is None else ""
        said = next(
            (meant[0] for word, meant in self.meant.items() if word == (first,) and meant), first
        )
        if own in {first, said}:
            return True, 1
        second = self.units[1].word if len(self.units) > 1 else ""
        if first in self.spaces and second == own:  # "git commit" of `git.commit`
            return True, 2
        if same_verb(said, own):
            return False, 1
        reads = self.known.operation.effect == "read" and VERBS.get(own) in READING
        if first and first not in VERBS and reads:  # "weather in Oslo" asks to be shown it
            return False, 0
        self.odd.append(first or "a verb")
        return False, 1

    # The others ----------------------------------------------------------------------------------

    def _taken(self, at: int) -> int:
        """Take what stands at a place, or note it as odd; return how many units it is."""
        unit = self.units[at]
        if unit.value is not None or unit.word == "please":
            return 1
        if size := self._synonym(at):
            return size
        if unit.singular in self.own or unit.word in self.own:
            self.said.add(unit.singular)
            return 1
        if unit.word in ARTICLES - _BACK or unit.word in self.spaces:
            return 1
        parts = [singular(one) for one in tokens(unit.text)]
        if len(parts) > 1 and {*parts} <= self.own:
            self.said |= {*parts}
            return 1
        if not (self._of_a_value(at) or self._small(at) or self._stays(at)):
            self.odd.append(unit.text)
        return 1

    def _stays(self, at: int) -> bool:
        """Return whether a word is kept by a property that takes the words of the step.

        Not the first one, a word that asks for more than this operation does, nor one that stands
        for another.
        """
        word, named = self.units[at].word, bool(self.phrasing.nouns)
        return self.verbatim and named and at > 0 and word not in VERBS and word not in _BACK

    def _synonym(self, at: int) -> int:
        """Return how many units here are another word of the catalog for what is accounted for."""
        for size in (3, 2, 1):
            said = tuple(one.word for one in self.units[at : at + size] if one.value is None)
            for word, meant in self.meant.items():
                alike = len(said) == size and tuple(map(singular, said)) == tuple(
                    map(singular, word)
                )
                if alike and {*meant} <= self.own | self._properties():
                    self.said |= {*meant}
                    return size
        return 0

    def _properties(self) -> set[str]:
        return {word for one in self._values() for word in words(one.place.name)}

    def _of_a_value(self, at: int) -> bool:
        """Return whether a word names the property of a value that stands near: "page 3"."""
        word = self.units[at].singular
        if not word[:1].isalnum() and word != "_":  # names are compared without their signs
            return False
        near = [one.value for one in self.units[max(at - 1, 0) : at + 5] if one.value is not None]
        for one in near:
            named = {*words(one.place.name)}
            beside = {*words(one.beside)}
            if word in named | beside and word not in LOOSE:
                return True
            if any(same_meaning(phrase, one.place.name) for phrase in self._phrases(at)):
                return True
        return False

    def _phrases(self, at: int) -> Iterator[str]:
        """Yield the runs of words that the word at a place is part of, up to three words."""
        for size in (1, 2, 3):
            for start in range(at - size + 1, at + 1):
                run = self.units[max(start, 0) : start + size]
                if start >= 0 and len(run) == size and not any(one.value for one in run):
                    yield " ".join(one.word for one in run)

    def _next(self, at: int) -> Placed | None:
        """Return the value that follows, with nothing but its property's name before it."""
        for place in range(at + 1, min(at + 5, len(self.units))):
            unit = self.units[place]
            if unit.value is not None:
                return unit.value
            if unit.word not in ARTICLES | _NAMED | _NUMBERED and not self._of_a_value(place):
                return None
        return None

    def _small(self, at: int) -> bool:
        """Return whether a small word or a sign does no more than hold the others together."""
        ways = (
            self._preposition, self._pronoun, self._possessive, self._before_a_value,
            self._comparison, self._span,
        )  # fmt: skip
        return any(way(at) for way in ways)

    def _at(self, place: int) -> StepUnit | None:
        return self.units[place] if 0 <= place < len(self.units) else None

    def _value_at(self, place: int) -> Placed | None:
        unit = self._at(place)
        return None if unit is None else unit.value

    def _preposition(self, at: int) -> bool:
        word = self.units[at].word
        if word in PARTICLES and at == 1 and VERBS.get(self.units[0].word) not in READING:
            return False  # "turn on" is another verb than "turn"
        if word in _NEUTRAL:
            return self._at(at + 1) is not None
        return word in _ROLES and self._plays(word, at)

    def _pronoun(self, at: int) -> bool:
        """Return whether it speaks of whoever asks, or of what a step before gives."""
        word = self.units[at].word
        if word in _OWN:
            return not self._takes_people()
        if word in {"me", "us"}:
            return at == 1
        if word == "all":
            return self.known.reads or bool(self.wired)
        return word in _BACK and bool(self.wired)

    def _possessive(self, at: int) -> bool:
        return self.units[at].word in _POSSESSIVES and self._value_at(at - 1) is not None

    def _before_a_value(self, at: int) -> bool:
        """Return whether it leads over to the value that follows."""
        word, value = self.units[at].word, self._value_at(at + 1)
        parts = self._value_at(at - 1) is not None
        if word == ",":
            return self._at(at + 1) is not None
        if word == "and" and parts:
            return self._next(at) is not None  # "section a and option b"
        return value is not None and (
            (word in _NAMED and not _NAMES.isdisjoint(words(value.place.name)))
            or (word == "first" and any(same_meaning(value.place.name, one) for one in _LISTS))
            or (word in _EQUALS and at > 0 and self._of_a_value(at - 1))
            or word in _NUMBERED
            or (word == "/" and parts)  # the halves of `owner/name`
        )

    def _comparison(self, at: int) -> bool:
        """Return whether it is of the comparison that the next value is bounded by: "up to"."""
        for size in range(_LONGEST, 0, -1):
            for start in range(max(at - size + 1, 0), at + 1):
                phrase = tuple(one.word for one in self.units[start : start + size])
                value = self._value_at(start + size)
                senses = PHRASES.get(phrase, ()) if value is not None else ()
                operator = "" if value is None else self.operators.get(value.place.name, "=")
                if any(one.kind in {"cmp", "when"} and one.value == operator for one in senses):
                    return True
        return False

    def _span(self, at: int) -> bool:
        """Return whether it leads to, or parts, the two ends of a range: "between 5 and 10"."""
        word = self.units[at].word
        first = at + 1 if word in _SPAN_BEGINS else at - 1
        low, high = self._value_at(first), self._value_at(first + 2)
        joint = self._at(first + 1)
        if low is None or high is None or joint is None or joint.word not in _SPAN_JOINTS:
            return False
        names = low.place.name, high.place.name
        operators = tuple(self.operators.get(name, "=") for name in names)
        one, other = (words(name) for name in names)
        alike = one[-1:] == other[-1:] and one != other and not any(map(role, map(name_key, names)))
        return alike and operators in {("=", "="), (">=", "<=")}

    def _plays(self, word: str, at: int) -> bool:
        """Return whether the value after a preposition goes where that says."""
        value = self._next(at)
        if value is None:
            return False
        direct = self.units[at + 1].value is not None
        if not direct and role(name_key(value.place.name)) in {"", word}:
            return True  # "from repository acme/web": the property is named
        if not _ROLES[word].isdisjoint(words(value.place.name)):
            return True
        if word != "to" or role(name_key(value.place.name)):
            return False
        named = not self.own.isdisjoint(words(value.place.name))
        sets = VERBS.get(self.phrasing.verb) == "update" and named  # "set the volume to 30"
        return sets or self.known.verb in _GIVING

    def _takes_people(self) -> bool:
        filled = {word for one in self.placed for word in words(one.place.name)}
        return not _PEOPLE.isdisjoint(self.known.inputs - filled)

    def _disordered(self, start: int) -> bool:
        """Return whether the words stand around "from" or "to" in another order than there."""
        own = [singular(word) for word in self.phrasing.words]
        if _ROLES.keys().isdisjoint(own):
            return False
        units = self.units[start:]
        said = [one.singular for one in units if one.value is None and one.singular in own]
        rest = iter(own)
        return not all(any(word == other for other in rest) for word in said)

    def _numbers(self, start: int) -> tuple[str, str, bool]:
        """Return the noun said of one where many are given, of many where one is; and whether any.

        "get the customer" is no list of all of them; "list customer" may be.
        """
        said = {one.word for one in self.units[start:] if one.value is None}
        listed = bool(self.units) and VERBS.get(self.units[0].word) == "list"
        own = [raw for raw in self.phrasing.words if raw not in said]
        other = [raw for raw in own if any(singular(word) == singular(raw) for word in said)]
        one = next((singular(raw) for raw in other if singular(raw) != raw and not listed), "")
        alone = {raw for raw in other if singular(raw) == raw}
        many = next((word for word in sorted(said) if singular(word) in alone), "")
        return one, many, bool(other)
