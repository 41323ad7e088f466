"""Input fields: what an operation takes, and which of its properties each given name means.

A name and a property are compared by spelling (exact, case, `snake_case` and `camelCase`), by
synonyms and by the words that they share. The best pair of all is taken first, so that one name
never takes from another what fits that better: "page size" goes to `perPage` also where there is a
`page`. Where two properties would do as well, nothing is guessed: the name is told as ambiguous.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from semcache.canonical import Json, JsonObject, as_object
from semcache.catalog.schemas import types
from semcache.planners.arguments.synonyms import Words, canonical, same_meaning, words

MAX_PLACES = 2000
"""Properties of one operation that are looked at, required ones first; nobody fills more."""
_MARGIN = 0.04  # two scores nearer than this are a tie, unless the better one is a spelling
_SPELLED = 0.95  # from here on the names are the same but for their spelling
# Words that say so little that sharing one of them is no sign of meaning the same.
_BARE = frozenset({
    "code", "date", "day", "id", "key", "kind", "name", "number", "time", "type", "value",
})  # fmt: skip

Scores: TypeAlias = Sequence[Sequence[float]]
"""Row a given name, column a place: how well they fit, 0 for no match."""


@dataclass(frozen=True, slots=True)
class InputField:
    """One property of an operation's input."""

    name: str
    """As the schema spells it."""
    schema: JsonObject
    """What its value must be."""
    required: bool
    types: frozenset[str]
    """JSON types that it takes, without null; empty if the schema does not say."""

    @property
    def has_default(self) -> bool:
        """Whether the schema says what is taken if nothing is given."""
        return "default" in self.schema

    @property
    def takes_text(self) -> bool:
        """Whether text goes in as it is."""
        return not self.types or "string" in self.types

    @property
    def takes_whole(self) -> bool:
        """Whether a list or an object goes in as it is."""
        return not self.types or not self.types.isdisjoint({"array", "object"})


def places(schema: JsonObject) -> tuple[InputField, ...]:
    """Return the places of an input schema, required ones first, then in the schema's order.

    What cannot be read is left out; of a schema with more than two thousand only the first.
    """
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return ()
    listed = schema.get("required")
    required = set(map(str, listed)) if isinstance(listed, list) else set[str]()
    first = [name for name in properties if name in required]
    names = [*first, *(name for name in properties if name not in required)][:MAX_PLACES]
    return tuple(
        _place(name, properties[name], schema, required=name in required) for name in names
    )


def _place(name: str, described: Json, root: JsonObject, *, required: bool) -> InputField:
    one = as_object(described)
    return InputField(name, one, required, frozenset(types(one, root) - {"null"}))


@dataclass(frozen=True, slots=True)
class Pair:
    """A given name and the property that it means."""

    given: int
    """Position among the given names."""
    place: InputField


@dataclass(frozen=True, slots=True)
class Mapped:
    """Which property each given name means."""

    pairs: tuple[Pair, ...]
    """In the order of the given names; no property twice."""
    ambiguous: tuple[tuple[int, tuple[str, ...]], ...] = ()
    """Given names that could mean several properties, by position, with those."""
    left: tuple[int, ...] = ()
    """Given names that mean no property, by position."""


def mapped(
    given: Sequence[str],
    into: Sequence[InputField],
    *,
    about: Words = (),
    fits: Callable[[int, InputField], bool] | None = None,
) -> Mapped:
    """Return which of the places `into` each of the names `given` means, best for all at once.

    `about` are the words of what the operation is about, which a name may leave out (`number` for
    `issue_number`). `fits` tells whether the value of a given name can be what a place takes.
    """
    if not given or not into:
        return Mapped((), left=tuple(range(len(given))))
    scores = [[_score(name, place, about) for place in into] for name in given]
    if fits is not None:
        for i, row in enumerate(scores):
            row[:] = [score if score and fits(i, into[j]) else 0.0 for j, score in enumerate(row)]
    chosen = _assigned(scores)
    ties = {i: _ties(i, j, scores, chosen) for i, j in chosen.items()}
    return Mapped(
        tuple(Pair(i, into[j]) for i, j in sorted(chosen.items()) if not ties[i]),
        ambiguous=tuple(
            (i, tuple(into[j].name for j in sorted({chosen[i], *others})))
            for i, others in sorted(ties.items())
            if others
        ),
        left=tuple(i for i in range(len(given)) if i not in chosen),
    )


def likeness(name: str, place: InputField) -> float:
    """Return how well a name fits a place, in [0, 1]; 1 is the very same name."""
    return _score(name, place, ())


def _assigned(scores: Scores) -> dict[int, int]:
    """Return row → column, the best pair of all first, then the best of what is left.

    A name never gives up what fits it best so that another fits at all: a pair that would come of
    that is as likely wrong, and a name without a property is asked about.
    """
    pairs = [(-score, i, j) for i, row in enumerate(scores) for j, score in enumerate(row) if score]
    chosen: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(pairs):
        if i not in chosen and j not in taken:
            chosen[i] = j
            taken.add(j)
    return chosen


def _ties(row: int, column: int, scores: Scores, chosen: dict[int, int]) -> set[int]:
    """Return the other columns that the row could as well have had."""
    score = scores[row][column]
    if score >= _SPELLED:
        return set()
    holder = {j: i for i, j in chosen.items()}
    near = (j for j, other in enumerate(scores[row]) if other and other >= score - _MARGIN)
    return {j for j in near if j != column and _could_give(row, column, j, scores, holder.get(j))}


def _could_give(row: int, column: int, other: int, scores: Scores, holder: int | None) -> bool:
    """Return whether `other` is free, or its holder would as well take `column` instead."""
    if holder is None:
        return True
    now = scores[row][column] + scores[holder][other]
    swapped = scores[row][other] + scores[holder][column]
    return bool(scores[holder][column]) and swapped >= now - _MARGIN


def _score(name: str, place: InputField, about: Words) -> float:
    if name == place.name:
        return 1.0
    if name.casefold() == place.name.casefold():
        return 0.98
    one, other = words(name), words(place.name)
    if "".join(one) == "".join(other):
        return 0.96
    if same_meaning(name, place.name):
        return 0.9
    return _by_words(name, place, about)


def _by_words(name: str, place: InputField, about: Words) -> float:
    subject = set(canonical(" ".join(about))) | set(about)
    left, right = set(canonical(name)), set(canonical(place.name))
    if left == right or (left and left < right and right - left <= subject):
        return 0.85
    shorter = words(name) if left < right else words(place.name)
    inside = bool(left) and (left < right or right < left)
    if inside and not _BARE.issuperset(shorter):
        return 0.55 + 0.25 * len(left & right) / len(left | right)
    return 0.0
