"""Argument match: the values that a step says, each in the property of an operation that takes it.

A value that a caller or a model has named goes by its name. One that was only found in the words
goes by what stands around it ("page 3", "from Boston"), by its kind (a date, an address) or, last,
because one place is left for it. What could go in two places is told, never guessed.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from semcache.canonical import Json
from semcache.errors import InvalidParameter
from semcache.planners.arguments.coercion import coerced
from semcache.planners.arguments.input_fields import InputField, likeness, mapped
from semcache.planners.arguments.operation_index import IndexedOperation
from semcache.planners.arguments.proper_names import PROPER
from semcache.planners.arguments.synonyms import same_meaning, words
from semcache.planners.rules.frame import NAMES_OF_KINDS, role
from semcache.prompts.mentions import OPEN_KINDS
from semcache.prompts.parameter import Parameter, name_key
from semcache.prompts.tokens import tokens
from semcache.prompts.words import ARTICLES, singular

_IDS = ("id", "number", "key", "code", "no")
_FORMATS = {"date": "date", "email": "email", "uri": "url", "url": "url", "time": "time"}
_FIRST = frozenset(["first", "limit"])
# An identifier in two parts, where an operation takes the parts: `owner/repository`.
_PARTS = (("owner", "repository"), ("namespace", "project"), ("organization", "repository"))
_WHERE = frozenset(["in", "at", "near", "around"])
_OF = (["of"], ["for"], ["in"], ["at"])
_LOCATIONS = frozenset({
    "address", "area", "city", "country", "county", "district", "location", "place", "region",
    "state", "town", "village", "where",
})  # fmt: skip
_AS_NAMED = 0.85  # from this likeness on, words beside a value are the name of its property
_DIGITS = re.compile(r"(?<!\d)\d+\Z")
_IDENTIFYING = frozenset(["number", "code", "identifier", "quoted", PROPER])
_TAILS = frozenset((*_IDS, "name"))
_COUNTS = frozenset(["count", "num", "number"])
_CALLED = frozenset("number no id called named titled".split())


@dataclass(frozen=True, slots=True)
class Placed:
    """A value in its property."""

    place: InputField
    param: Parameter
    """Under the name by which the plan knows it, its value as the property takes it."""
    beside: str = ""
    """Words beside the value that name the property; empty if none do."""


@dataclass(frozen=True, slots=True)
class ArgumentMatch:
    """Where the values of a step go."""

    placed: tuple[Placed, ...]
    left: tuple[Parameter, ...] = ()
    """Values that no property takes."""
    ambiguous: tuple[tuple[Parameter, tuple[str, ...]], ...] = ()
    """Values that several properties could take, with those."""


def is_guess(name: str) -> bool:
    """Return whether the name of a value only says of what kind it is: `number`, `date2`."""
    kind = _kind(name)
    return kind in OPEN_KINDS or kind == PROPER


def _kind(name: str) -> str:
    return _DIGITS.sub("", name)


def placed(
    params: Sequence[Parameter],
    *,
    goal: str,
    known: IndexedOperation,
    places: Sequence[InputField],
) -> ArgumentMatch:
    """Return where `params`, the values said in `goal`, go among the places of an operation."""
    return _Placer(goal, known, places).placing(params)


class _Placer:
    """Fills the places of one operation with the values of one step."""

    def __init__(self, goal: str, known: IndexedOperation, places: Sequence[InputField]) -> None:
        self.goal = goal
        self.known = known
        self.root = known.operation.input_schema
        self.free = list(places)
        self.done: list[Placed] = []
        self.ambiguous: list[tuple[Parameter, tuple[str, ...]]] = []

    def placing(self, params: Sequence[Parameter]) -> ArgumentMatch:
        named = self._by_name([one for one in params if not is_guess(one.name)])
        named = [one for one in named if not self._listed(one)]
        left = [one for one in params if is_guess(one.name)]
        # The surest ways first, so that a value with a sure place leaves the others theirs. A value
        # with a name of its own goes by none of these: what it is was said, and is not here.
        ways = (
            self._listed, self._identified, self._named_beside, self._by_kind, self._parts,
            self._by_role, self._located,
        )  # fmt: skip
        for way in ways:
            left = [one for one in left if not way(one)]
        if len(left) == 1 and not named:
            left = [one for one in left if not self._last(one)]
        left += named
        told = {id(one) for one, _ in self.ambiguous}
        return ArgumentMatch(
            tuple(self.done),
            tuple(one for one in left if id(one) not in told),
            tuple((one, names) for one, names in self.ambiguous if id(one) in map(id, left)),
        )

    def _by_name(self, params: list[Parameter]) -> list[Parameter]:
        """Place the values that have names; return those that no name finds a place for."""
        found = mapped(
            [one.name.replace(".", " ") for one in params],
            self.free,
            about=self.known.nouns,
            fits=lambda i, place: self._value(params[i], place) is not None,
        )
        for pair in found.pairs:
            self._put(params[pair.given], pair.place)
        self.ambiguous += [(params[i], names) for i, names in found.ambiguous]
        done = {pair.given for pair in found.pairs}
        return [one for i, one in enumerate(params) if i not in done]

    def _value(self, param: Parameter, place: InputField) -> tuple[Json] | None:
        try:
            return (coerced(param.value, place.schema, root=self.root, name=param.name),)
        except InvalidParameter:
            return None

    def _put(self, param: Parameter, place: InputField, beside: str = "") -> bool:
        """Put a value into a place, if it fits; return whether it did."""
        value = self._value(param, place)
        if value is None:
            return False
        name = place.name if is_guess(param.name) else param.name
        self.done.append(Placed(place, replace(param, name=name, value=value[0]), beside))
        self.free.remove(place)
        return True

    def _only(
        self, param: Parameter, which: Callable[[InputField], bool], beside: str = ""
    ) -> bool:
        """Put a value into the one free place of a sort; note it if there are several."""
        found = [one for one in self.free if which(one) and self._value(param, one) is not None]
        needed = [one for one in found if one.required]
        if len(found) > 1 and len(needed) == 1:
            found = needed
        if len(found) > 1:
            self.ambiguous.append((param, tuple(one.name for one in found)))
        return len(found) == 1 and self._put(param, found[0], beside)

    # The ways in which an unnamed value finds its place -----------------------------------------

    def _listed(self, param: Parameter) -> bool:
        """Place a value that the schema of one property lists."""
        return self._only(param, _lists)

    def _named_beside(self, param: Parameter) -> bool:
        """Place a value whose property is named beside it: "page 3", "10 results"."""
        before, after = _around(self.goal, param)
        phrases = [" ".join(before[-n:]) for n in (3, 2, 1) if len(before) >= n]
        phrases += [after[0]] if after and _kind(param.name) == "number" else []
        for phrase in phrases:
            fit = [(self._likeness(phrase, one), one) for one in self.free]
            best = max(fit, key=lambda pair: pair[0], default=(0.0, None))
            if best[1] is not None and best[0] >= _AS_NAMED:
                return self._put(param, best[1], phrase)
        return self._counts(param, before, after)

    def _likeness(self, phrase: str, place: InputField) -> float:
        said, named = words(phrase), words(place.name)
        if said == named[1:] and named[0] in _COUNTS:  # "2 beds" is the number of beds
            return _AS_NAMED
        return likeness(phrase, place)

    def _counts(self, param: Parameter, before: Sequence[str], after: Sequence[str]) -> bool:
        """Place a number that says how many: "5 issues", "the first 5"."""
        if _kind(param.name) != "number":
            return False
        about = {singular(word) for word in after[:2]} & set(self.known.nouns)
        if not about and not _FIRST.intersection(before[-1:]):
            return False
        beside = " ".join(_FIRST.intersection(before[-1:]))
        return self._only(param, lambda one: same_meaning(one.name, "limit"), beside)

    def _identified(self, param: Parameter) -> bool:
        """Place what names one thing of a noun: the 42 of "issue 42", the C17 of "customer C17"."""
        if _kind(param.name) not in _IDENTIFYING:
            return False
        before, _ = _around(self.goal, param)
        while before and before[-1] in _CALLED:
            before.pop()
        nouns = [singular(word) for word in before]
        for size in range(min(4, len(nouns)), 0, -1):
            said = tuple(nouns[-size:])
            if self._only(param, partial(_identifies, said), " ".join(said)):
                return True
            own = {*said} <= {word for one in self.known.phrasings for word in one.nouns}
            if own and self._only(param, _is_id):
                return True
            if self._is_doubted(param):
                return False
        return False

    def _is_doubted(self, param: Parameter) -> bool:
        return any(one is param for one, _ in self.ambiguous)

    def _by_kind(self, param: Parameter) -> bool:
        """Place a value of a kind that one property is named for: an e-mail address, a date."""
        kind = _kind(param.name)
        fitting = NAMES_OF_KINDS.get(kind, frozenset())
        if kind == "identifier" and self._parts(param):
            return True

        def of_kind(place: InputField) -> bool:
            tail = words(place.name)[-1:]
            form = place.schema.get("format")
            # A text in quotes may be anything that has a name of its own in the schema.
            if kind == "quoted" and tail != words(place.name):
                return False
            return set(tail) <= fitting or (isinstance(form, str) and _FORMATS.get(form) == kind)

        return bool(kind in OPEN_KINDS) and self._only(param, of_kind)

    def _parts(self, param: Parameter) -> bool:
        """Place the two parts of `owner/repository` where an operation takes them apart."""
        value = param.value
        pieces = value.split("/") if isinstance(value, str) else []
        if len(pieces) != 2 or not all(pieces) or _kind(param.name) != "identifier":
            return False
        for names in _PARTS:
            both = [self._called(name) for name in names]
            if None not in both and len({one.name for one in both if one}) == 2:
                return all(
                    one is not None and self._put(Parameter(one.name, part, part), one)
                    for one, part in zip(both, pieces, strict=True)
                )
        return False

    def _called(self, name: str) -> InputField | None:
        found = [one for one in self.free if same_meaning(one.name, name) and one.takes_text]
        return found[0] if len(found) == 1 else None

    def _by_role(self, param: Parameter) -> bool:
        """Place a value by the preposition before it: "from Boston"."""
        before, _ = _around(self.goal, param)
        preposition = before[-1] if before else ""
        if preposition not in {"from", "to"}:
            return False
        return self._only(param, lambda one: role(name_key(one.name)) == preposition)

    def _located(self, param: Parameter) -> bool:
        """Place a name that stands after "in" or "near" where something is."""
        before, _ = _around(self.goal, param)
        if _kind(param.name) != PROPER or not _WHERE.intersection(before[-1:]):
            return False
        return self._only(param, lambda one: not _LOCATIONS.isdisjoint(words(one.name)))

    def _last(self, param: Parameter) -> bool:
        """Place the one value that is left in the one place that must be filled."""
        needed = [one for one in self.free if one.required and not one.has_default]
        if len(needed) != 1 or self._value(param, needed[0]) is None:
            return False
        # A number that stands beside no noun names nothing, and no year is an order.
        if isinstance(param.value, int | float) and needed[0].takes_text:
            return False
        kind, tail = _kind(param.name), words(needed[0].name)[-1:]
        before, _ = _around(self.goal, param)
        if kind == PROPER and before[-1:] not in _OF:
            return False
        # "cancel C17" says what it is; "orders for C17" does not.
        if not set(tail).isdisjoint(_IDS) and before[-1:] != [self.known.verb]:
            return False
        if kind == "year":
            return False
        return self._put(param, needed[0])


def _identifies(noun: tuple[str, ...], place: InputField) -> bool:
    """Return whether a property is what identifies a thing: `vector_store_id` a vector store."""
    found = words(place.name)
    return found == noun or (found[:-1] == noun and found[-1] in _TAILS)


def _is_id(place: InputField) -> bool:
    return len(words(place.name)) == 1 and words(place.name)[0] in _TAILS


def _lists(place: InputField) -> bool:
    enum = place.schema.get("enum")
    items = place.schema.get("items")
    inner = items.get("enum") if isinstance(items, dict) else None
    return isinstance(enum, list) or isinstance(inner, list)


def _around(goal: str, param: Parameter) -> tuple[list[str], list[str]]:
    """Return the words before and after a value, nearest last and first, without articles."""
    said = param.mention if param.mention is not None else str(param.value)
    # Whole words only: the 2 of "2 passengers" is not that of 2024-05-01.
    whole = (
        re.search(rf"(?<![\w-]){re.escape(said)}(?![\w-])", goal, re.IGNORECASE) if said else None
    )
    if whole is None:
        return [], []
    before, after = goal[: whole.start()], goal[whole.end() :]
    return _plain(tokens(before)), _plain(tokens(after))


def _plain(found: Iterable[str]) -> list[str]:
    return [word for word in found if word not in ARTICLES and word[:1].isalnum()]
