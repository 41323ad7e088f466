"""Word difference: how the content words of two prompts differ, forms and slips apart."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from semcache.matching.words.classes import is_mistyped, is_other_thing, stem, word_class
from semcache.matching.words.content import ADJUNCTS
from semcache.process.memo import memoized
from semcache.prompts.words import AGGREGATION, COMPARISON, DIRECTION, NEGATION, ORDER

_SORTS = tuple(enumerate((NEGATION, COMPARISON, DIRECTION, AGGREGATION, ORDER)))
"""Sorts of which one word for another, or the same before another head, asks for another thing."""


def heads(words: Sequence[str]) -> dict[tuple[str, int], frozenset[str]]:
    """Return the stem of each head with the sort of steering words and those that stand before it.

    A head is the next word that says something of its own. Which value is meant by which of two
    slots is for their own gates to say (`roles`): a slot is no head.
    """
    found: dict[tuple[str, int], frozenset[str]] = {}
    head: str | None = None
    for word in reversed(words):
        for sort, steering in _SORTS:
            if word in steering and head is not None and word_class(head) != "slot":
                key = stem(head), sort
                found[key] = found.get(key, frozenset()) | {word}
        if _says_something(word):
            head = word
    return found


def switches(mine: Sequence[str], its: Sequence[str]) -> tuple[str, ...]:
    """Return the steering words that both say, but before other heads that both say; sorted."""
    ours, theirs = heads(mine), heads(its)
    switched: set[str] = set()
    for at, steering in ours.items():
        other = theirs.get(at, steering)
        if steering.isdisjoint(other) and steering.issubset(its) and other.issubset(mine):
            switched |= steering | other
    denied, other_denied = _denied(ours), _denied(theirs)
    if denied and other_denied and denied.isdisjoint(other_denied):
        both = {stem(w) for w in mine} & {stem(w) for w in its}
        if (denied | other_denied) <= both:
            switched |= NEGATION.intersection(mine)
    return tuple(sorted(switched))


def _denied(found: Mapping[tuple[str, int], frozenset[str]]) -> set[str]:
    return {head for head, sort in found if sort == 0}


def _says_something(word: str) -> bool:
    return word_class(word) in {"open", "slot", "digit"}


PAIRS = 64 * 64
"""Pairs of words that are looked at for forms and slips. Prompts that differ in more words than
that are refused whatever their forms; with 20,000 letters each, looking would take a second."""


@memoized(20_000)
def is_alike(left: str, right: str) -> bool:
    """Return whether two open-class words are forms of one word, or one mistyped."""
    if word_class(left) != "open" or word_class(right) != "open":
        return False
    if f"{left}e" == right or f"{right}e" == left:  # moral and morale
        return False
    if stem(left) == stem(right):
        return True
    return is_mistyped(left, right)


class Difference(NamedTuple):  # made for every neighbor: a third of the time of a dataclass
    """How the words of a prompt differ from those of a candidate."""

    extra: tuple[str, ...]
    """Words only of the prompt, each as often as it is too many."""
    missing: tuple[str, ...]
    """Words only of the candidate."""
    alike: int
    """Words that differ only in form."""
    moved: int
    """Shared words that stand in another order."""
    typed: tuple[str, ...] = ()
    """Words of the prompt among the alike that are no form of a word of the candidate, but close
    enough to one to be it mistyped."""
    formed: tuple[str, ...] = ()
    """Words of the prompt among the alike whose form may name another thing."""
    turned: bool = False
    """Whether another order joins other words: "depots of each truck" for "trucks of each depot",
    and not just a phrase that stands elsewhere."""
    switched: tuple[str, ...] = ()
    """Words that steer a plan and stand before one another's words: "the first dose of the last
    visit" for "the last dose of the first visit"."""

    def numbered(self, nouns: Sequence[str]) -> "Difference":
        """Return it where `nouns`, which both say, differ in their number: meeting and meetings."""
        if not nouns:
            return self
        return self._replace(formed=(*self.formed, *(f"{noun} (number)" for noun in nouns)))

    @property
    def words(self) -> tuple[str, ...]:
        """All words of one side only."""
        return self.extra + self.missing


_EQUAL = Difference((), (), 0, 0)


@memoized(20_000)
def compare(mine: tuple[str, ...], its: tuple[str, ...]) -> Difference:
    """Return how the content words `mine` differ from `its`."""
    if mine == its:
        return _EQUAL
    words, others = set(mine), set(its)
    if len(words) == len(mine) and len(others) == len(its):
        extra = [word for word in mine if word not in others]
        missing = [word for word in its if word not in words]
        pairs = _pair_off(extra, missing) if extra and missing else []
        apart = {*extra, *missing}
        shared = [word for word in mine if word not in apart]
        theirs = [word for word in its if word not in apart]
    else:
        extra, missing = _without(mine, its), _without(its, mine)
        pairs = _pair_off(extra, missing) if extra and missing else []
        shared, theirs = _without(mine, extra), _without(its, missing)
    if shared != theirs and not ADJUNCTS.isdisjoint((*extra, *missing)):
        shared, theirs = _settled(shared), _settled(theirs)
    moved = 0 if shared == theirs else len(shared) - len(pairs) - _longest_common(shared, theirs)
    turned = moved > 0 and (len(shared) != len(theirs) or _is_turned(shared, theirs))
    switched = switches(mine, its) if moved > 0 else ()
    if not pairs:
        return Difference(
            tuple(extra), tuple(missing), 0, max(0, moved), turned=turned, switched=switched
        )
    return Difference(
        tuple(extra),
        tuple(missing),
        len(pairs),
        max(0, moved),
        typed=tuple(word for word, other in pairs if stem(word) != stem(other)),
        formed=tuple(
            word
            for word, other in pairs
            if stem(word) == stem(other) and is_other_thing(word, other)
        ),
        turned=turned,
        switched=switched,
    )


def _is_turned(mine: Sequence[str], its: Sequence[str]) -> bool:
    """Return whether more than one phrase stands elsewhere: the words do not just change places.

    A phrase begins with a word that joins it to what it belongs to, and takes its words along.
    """
    start = next(i for i, (word, other) in enumerate(zip(mine, its, strict=True)) if word != other)
    end = len(mine)
    while mine[end - 1] == its[end - 1]:
        end -= 1
    a, b = list(mine[start:end]), list(its[start:end])
    joins = word_class(a[0]) in _JOINING
    return not any(
        a[cut] == b[0]  # so that few of many cuts are compared word for word
        and (joins or word_class(a[cut]) in _JOINING)
        and a[cut:] + a[:cut] == b
        for cut in range(1, len(a))
    )


_JOINING = frozenset({"role", "meaning"})
"""Classes of words that a phrase begins with."""


def _settled(words: Sequence[str]) -> list[str]:
    """Return `words` with the phrases of each run that hold values in an order of their values.

    Phrases come in the order of their prepositions (`content`), and so in another one where a
    preposition is exchanged: nothing has moved by that.
    """
    settled: list[str] = []
    run: list[list[str]] = []
    for word in words:
        if word in ADJUNCTS:
            run.append([word])
        elif word_class(word) != "slot":
            settled += (each for phrase in sorted(run, key=_by_values) for each in phrase)
            run = []
            settled.append(word)
        elif run and run[-1][-1] in ADJUNCTS:
            run[-1].append(word)
        else:
            run.append([word])
    return settled + [each for phrase in sorted(run, key=_by_values) for each in phrase]


def _by_values(phrase: Sequence[str]) -> tuple[str, str]:
    return phrase[-1], phrase[0]


def _without(words: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return `words` without `others`, each taken out as often as it is there; order is kept."""
    rest = Counter(others)
    left = []
    for word in words:
        if rest[word]:
            rest[word] -= 1
        else:
            left.append(word)
    return left


def _pair_off(extra: list[str], missing: list[str]) -> list[tuple[str, str]]:
    """Take words that are forms of one another, or mistyped, out of both; return them in pairs."""
    if len(extra) * len(missing) > PAIRS:
        return []
    # Forms of a word begin as it does, and so do words mistyped.
    if {word[:1] for word in extra}.isdisjoint([word[:1] for word in missing]):
        return []
    others = [word for word in missing if word_class(word) == "open"]
    pairs = []
    for word in list(extra) if others else ():
        if word_class(word) != "open":
            continue
        for other in others:
            if word[:1] == other[:1] and is_alike(word, other):
                extra.remove(word)
                missing.remove(other)
                others.remove(other)
                pairs.append((word, other))
                break
    return pairs


def _longest_common(mine: Sequence[str], its: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    A row of the table of lengths is the bits of one number (Crochemore et al. 2001, "A fast and
    practical bit-vector algorithm for the longest common subsequence problem").
    """
    places: dict[str, int] = {}
    for i, word in enumerate(mine):
        places[word] = places.get(word, 0) | 1 << i
    row = full = (1 << len(mine)) - 1
    for word in its:
        met = row & places.get(word, 0)
        row = (row + met | row - met) & full
    return len(mine) - row.bit_count()
