"""Mapping: which property of an operation each given name means, best for all of them at once.

A name and a property are compared by spelling (exact, case, `snake_case` and `camelCase`), by
synonyms, by the words that they share and by the property's description. The pairs are chosen
together (an assignment problem), so that one name never takes from another what fits that better:
"page size" goes to `perPage` also where there is a `page`. Where two properties would do as well,
nothing is guessed: the name is told as ambiguous.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semcache.planners.arguments.places import Place
from semcache.planners.arguments.synonyms import GENERAL, Synonyms, Words, words

ENOUGH = 0.55
"""Scores below are no match."""
_MARGIN = 0.04  # two scores nearer than this are a tie, unless the better one is a spelling
_SPELLED = 0.95  # from here on the names are the same but for their spelling
# Words that say so little that sharing one of them is no sign of meaning the same.
_BARE = frozenset({
    "code", "date", "day", "id", "key", "kind", "name", "number", "time", "type", "value",
})  # fmt: skip

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pair:
    """A given name and the property that it means."""

    given: int
    """Position among the given names."""
    place: Place
    score: float
    """In (0, 1]; 1 is the very same name."""
    how: str
    """What they have in common: `spelling`, `synonym`, `words`, `description`."""


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
    into: Sequence[Place],
    *,
    about: Words = (),
    synonyms: Synonyms = GENERAL,
    fits: Callable[[int, Place], bool] | None = None,
) -> Mapped:
    """Return which of the places `into` each of the names `given` means, best for all at once.

    `about` are the words of what the operation is about, which a name may leave out (`number` for
    `issue_number`). `fits` tells whether the value of a given name can be what a place takes.
    """
    if not given or not into:
        return Mapped((), left=tuple(range(len(given))))
    scored = [[_score(name, place, about, synonyms) for place in into] for name in given]
    scores = np.array([[score for score, _ in row] for row in scored])
    if fits is not None:
        for i, j in np.argwhere(scores >= ENOUGH).tolist():
            if not fits(i, into[j]):
                scores[i, j] = 0.0
    chosen = _assigned(scores)
    ties = {i: _ties(i, j, scores, chosen) for i, j in chosen.items()}
    return Mapped(
        tuple(
            Pair(i, into[j], float(scores[i, j]), scored[i][j][1])
            for i, j in sorted(chosen.items())
            if not ties[i]
        ),
        ambiguous=tuple(
            (i, tuple(into[j].name for j in sorted({chosen[i], *others})))
            for i, others in sorted(ties.items())
            if others
        ),
        left=tuple(i for i in range(len(given)) if i not in chosen),
    )


def likeness(name: str, place: Place, *, synonyms: Synonyms = GENERAL) -> float:
    """Return how well a name fits a place, in [0, 1]; 1 is the very same name."""
    return _score(name, place, (), synonyms)[0]


def _assigned(scores: Scores) -> dict[int, int]:
    """Return the row → column pairs of the greatest sum of scores, each score enough."""
    # Imported here since it takes 0.2 s that a lookup never needs.
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415 - see the line above

    enough = np.where(scores >= ENOUGH, scores, 0.0)
    # The same name is never given up so that others fit better: it outweighs all of them.
    weights = enough + np.where(scores >= _SPELLED, float(len(scores)), 0.0)
    rows, columns = linear_sum_assignment(weights, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {i: j for i, j in pairs if enough[i, j] > 0}


def _ties(row: int, column: int, scores: Scores, chosen: dict[int, int]) -> set[int]:
    """Return the other columns that the row could as well have had."""
    score = scores[row, column]
    if score >= _SPELLED:
        return set()
    holder = {j: i for i, j in chosen.items()}
    near = np.flatnonzero(scores[row] >= max(ENOUGH, score - _MARGIN)).tolist()
    return {j for j in near if j != column and _could_give(row, column, j, scores, holder.get(j))}


def _could_give(row: int, column: int, other: int, scores: Scores, holder: int | None) -> bool:
    """Return whether `other` is free, or its holder would as well take `column` instead."""
    if holder is None:
        return True
    now = scores[row, column] + scores[holder, other]
    swapped = scores[row, other] + scores[holder, column]
    return bool(scores[holder, column] >= ENOUGH and swapped >= now - _MARGIN)


def _score(name: str, place: Place, about: Words, synonyms: Synonyms) -> tuple[float, str]:
    if name == place.name:
        return 1.0, "spelling"
    if name.casefold() == place.name.casefold():
        return 0.98, "spelling"
    one, other = words(name), words(place.name)
    if "".join(one) == "".join(other):
        return 0.96, "spelling"
    if synonyms.same(name, place.name):
        return 0.9, "synonym"
    return _by_words(name, place, about, synonyms)


def _by_words(name: str, place: Place, about: Words, synonyms: Synonyms) -> tuple[float, str]:
    subject = set(synonyms.canonical(" ".join(about))) | set(about)
    one = synonyms.canonical(name)
    left, right = set(one), set(synonyms.canonical(place.name))
    if left == right or (left and left < right and right - left <= subject):
        return 0.85, "words"
    shorter = words(name) if left < right else words(place.name)
    inside = bool(left) and (left < right or right < left)
    if inside and not _BARE.issuperset(shorter):
        return 0.55 + 0.25 * len(left & right) / len(left | right), "words"
    if not place.description or not one or _BARE.issuperset(words(name)):
        return 0.0, ""
    return _by_description(one, synonyms.canonical(place.description[:500]))


def _by_description(one: Words, told: Words) -> tuple[float, str]:
    in_a_row = any(told[i : i + len(one)] == one for i in range(len(told) - len(one) + 1))
    if in_a_row:
        return 0.65, "description"
    return (0.58, "description") if set(one) <= set(told) else (0.0, "")
