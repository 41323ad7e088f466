"""Settlement: which values may have made which leaves, what binds, and what is pinned.

Rules, for a value that equals leaves of the plan:
1. A leaf that is called what the value is called belongs to it.
2. Beside such a leaf, other equal leaves belong to it only if the value is rare (a code, several
   words): `limit: 1` does not make `page: 1`.
3. With no such leaf, a word or a year binds the one leaf that has it, or several whose names do
   not say something else; a short number binds the one leaf that has it, unless its name says
   something else; `true`, 0 and 1 bind nothing.
4. A leaf that several equal values could have made serves only when they are equal again.
5. What nobody named (a mention without a parameter) binds only if one leaf has it.

Two kinds of pins follow from words. In "book a call with Ada titled 'Call with Ada'" the title is
no value of its own: it changes with the name, and where the plan does not have it, the plan may
serve whoever is called the same way in both (an echo). And "patients in their 40s" says 40; the
plan also has 49, which nobody said. With other words for 40 the 49 would be stale, so a value that
looks like kin of an unsaid one serves only what it was.
"""

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from semcache.binding.bindings import Pin, Why
from semcache.binding.codecs import codec_between, codec_of, period_codec, spelling
from semcache.binding.generalize.values import (
    NEAR,
    RARE,
    SHORT,
    TYPE,
    WORD,
    Key,
    Party,
    affinity,
    rarity,
)
from semcache.binding.leaves import Leaf
from semcache.canonical import Json, Pointer
from semcache.prompts.parameter import Parameter, type_key


@dataclass(frozen=True, slots=True)
class Offer:
    """A party that could have made a leaf what it is."""

    party: Party
    leaf: Leaf
    form: Json
    """The form of the party's value that the leaf has."""
    codec: str
    nearness: int
    """How near their names are: EXACT, TYPE, NEAR or NONE."""


def offers(
    parties: Sequence[Party], leaves: Iterable[Leaf], taken: Iterable[Pointer]
) -> dict[Pointer, list[Offer]]:
    """Return, for each leaf that a party could have made, the offers for it, in document order.

    Leaves in or below a place of `taken` have their value already.
    """
    index = _index(leaves, frozenset(taken))
    found: dict[Pointer, list[Offer]] = defaultdict(list)
    for party in parties:
        for offer in _of(party, index):
            found[offer.leaf.at].append(offer)
    for at, offer in _periods(parties, index, found):
        found[at].append(offer)
    return found


def _periods(
    parties: Sequence[Party], index: Mapping[str, list[Leaf]], found: Container[Pointer]
) -> list[tuple[Pointer, Offer]]:
    """Return an offer for each first or last day of a year or month that one party is."""
    offered: list[tuple[Pointer, Offer]] = []
    for leaf in (leaf for same in index.values() for leaf in same if leaf.at not in found):
        if codec_of(leaf.value) != "day":
            continue
        fitting = [
            (party, codec)
            for party in parties
            for form in party.forms[:1]
            if (codec := period_codec(form, leaf.value)) is not None
        ]
        # 2024-01-01 may begin the year or the month, if both are said: then nobody knows.
        if len(fitting) == 1:
            party, codec = fitting[0]
            # A day that begins the very year that was said is there because of it.
            offered.append((leaf.at, Offer(party, leaf, party.forms[0], codec, TYPE)))
    return offered


def _index(leaves: Iterable[Leaf], taken: frozenset[Pointer]) -> Mapping[str, list[Leaf]]:
    index: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        if leaf.role in {"data", "reference"} and not leaf.is_within(taken):
            index[spelling(leaf.value)].append(leaf)
    return index


def _of(party: Party, index: Mapping[str, list[Leaf]]) -> Iterator[Offer]:
    seen: set[Pointer] = set()
    for form in party.forms:
        for leaf in index.get(spelling(form), ()):
            near = affinity(party, leaf)
            if isinstance(form, float) and leaf.value in party.forms and leaf.value != form:
                continue  # a version: the plan has its spelling, and 3.10 is not 3.1
            codec = codec_between(form, leaf.value, any_case=near >= TYPE)
            if codec is not None and leaf.at not in seen:
                seen.add(leaf.at)
                yield Offer(party, leaf, form, codec, near)


@dataclass(slots=True)
class Settled:
    """What was decided."""

    taken: dict[Pointer, Offer] = field(default_factory=dict)
    """Place → the offer that binds it."""
    pinned: dict[Key, Pin] = field(default_factory=dict)
    equal: set[frozenset[str]] = field(default_factory=set)

    def pin(self, party: Party, why: Why) -> None:
        """Let `party` serve only the value that it has."""
        pin = Pin(party.param, party.value, why, party.path)
        self.pinned.setdefault(party.key, pin)


def settle(parties: Sequence[Party], offers: Mapping[Pointer, Sequence[Offer]]) -> Settled:
    """Return what binds and what is pinned."""
    settled = Settled()
    mine: dict[Key, list[Offer]] = defaultdict(list)
    shared: list[Sequence[Offer]] = []
    crowd: dict[Pointer, int] = {}
    for rivals in offers.values():
        kept = _winners(rivals)
        crowd[kept[0].leaf.at] = len(kept)
        if len(kept) > 1:
            shared.append(kept)
        for offer in kept:
            mine[offer.party.key].append(offer)
    wanted: set[int] = set()
    for party in parties:
        wanted |= _decide(settled, party, mine[party.key], crowd)
    _take(settled, mine, wanted)
    _share(settled, shared, wanted)
    _uncover(settled)
    return settled


def _winners(rivals: Sequence[Offer]) -> Sequence[Offer]:
    best = max(offer.nearness for offer in rivals)
    nearest = [offer for offer in rivals if offer.nearness == best]
    # Only a name that says the same decides; a word in common is too little to choose by.
    return nearest if best >= TYPE and len(nearest) == 1 else rivals


def _decide(
    settled: Settled, party: Party, offers: Sequence[Offer], crowd: Mapping[Pointer, int]
) -> set[int]:
    """Return the ids of the offers that bind; pin `party` if some place remains in doubt."""
    if party.placed:
        # Its planner wrote a placeholder where the value is meant; a path that reads like the value
        # is a path.
        offers = [offer for offer in offers if offer.leaf.role != "reference"]
    sure = [offer for offer in offers if offer.nearness >= TYPE]
    rest = [offer for offer in offers if offer.nearness < TYPE]
    # As many leaves as equal values to fill them: each has one of its own.
    alone = len(rest) <= min((crowd[offer.leaf.at] for offer in rest), default=1)
    doubt = _doubt(party, sure, rest, alone=alone)
    if doubt is None:
        return {id(offer) for offer in offers}
    settled.pin(party, doubt)
    # A pinned value is still a value: it is bound where it is sure to stand, so that text such as
    # "$.secret" stays data.
    return {id(o) for o in offers if o.nearness >= TYPE or o.leaf.role == "reference"}


def _doubt(
    party: Party, sure: Sequence[Offer], rest: Sequence[Offer], *, alone: bool
) -> Why | None:
    rare = rarity(party.value)
    if not (sure or rest or party.placed):
        return "unbound" if party.declared else "unknown"
    if sure or party.placed:
        chance = [offer for offer in rest if rare < WORD or offer.nearness < NEAR]
        return "repeated" if chance and rare < RARE else None
    if alone:
        return None if all(_sole(offer, rare) for offer in rest) else "repeated"
    apart = rare < RARE and any(_clash(offer) for offer in rest)
    return None if party.declared and rare >= WORD and not apart else "repeated"


def _sole(offer: Offer, rare: int) -> bool:
    """Return whether the one leaf that a value could have made is made by it."""
    if rare >= WORD or offer.nearness >= NEAR:
        return True
    return rare == SHORT and not _clash(offer)


def _clash(offer: Offer) -> bool:
    """Return whether the names of a party and a leaf say different things."""
    return offer.nearness < NEAR and offer.party.telling and offer.leaf.telling


def _take(settled: Settled, mine: Mapping[Key, Sequence[Offer]], wanted: set[int]) -> None:
    for offers in mine.values():
        for offer in offers:
            if id(offer) in wanted:
                settled.taken.setdefault(offer.leaf.at, offer)


def _uncover(settled: Settled) -> None:
    """Drop what is inside a container that is bound as a whole; a value lost there is pinned."""
    places = frozenset(settled.taken)
    inner = [at for at in places if settled.taken[at].leaf.is_within(places, strictly=True)]
    for at in inner:
        settled.pin(settled.taken.pop(at).party, "ambiguous")


def _share(settled: Settled, shared: Sequence[Sequence[Offer]], wanted: set[int]) -> None:
    for rivals in shared:
        if all(id(offer) in wanted and not offer.party.path for offer in rivals):
            settled.equal.add(frozenset(offer.party.param for offer in rivals))
        else:
            for offer in rivals:
                settled.pin(offer.party, "ambiguous")


def echoing(pins: Sequence[Pin], params: Sequence[Parameter]) -> list[Pin]:
    """Return `pins`, those on words that repeat a parameter's value as echoes of it."""
    free = _repeatable(params, {pin.param for pin in pins})
    if not free or all(pin.why != "unknown" for pin in pins):
        return list(pins)
    # Longest first: "New York" must not be found in "New York City" where both are values.
    values = sorted(free, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, values))})(?!\w)", re.IGNORECASE)
    return [_echo(pin, pattern, free) for pin in pins]


def _repeatable(params: Sequence[Parameter], pinned: set[str]) -> dict[str, str]:
    """Return value → parameter, for values that are the prompt's own words and not common."""
    return {
        param.value.casefold(): param.name
        for param in params
        if isinstance(param.value, str)
        and param.mention is not None
        and param.mention.casefold() == param.value.casefold()
        and param.name not in pinned
        and rarity(param.value) >= WORD
    }


def _echo(pin: Pin, pattern: re.Pattern[str], free: dict[str, str]) -> Pin:
    if pin.why != "unknown" or not isinstance(pin.value, str):
        return pin
    parts = pattern.split(pin.value)
    if len(parts) == 1:
        return pin
    parts[1::2] = [free[value.casefold()] for value in parts[1::2]]
    return replace(pin, why="echo", echo=tuple(parts))


_TOKEN = re.compile(r"\d+|[^\W\d_]{3,}")


def makers(
    params: Sequence[Parameter], carriers: Sequence[str], follows: Container[str]
) -> Iterator[Parameter]:
    """Yield the parameters with words of their own that may have made one without.

    Kin is what shares a word of its name (`min_age`, `max_age`) or of its value. Others are taken
    to be independent: a yes that "child-friendly" stands for holds in any city.
    """
    carried = frozenset(carriers)
    silent = [p for p in params if p.name not in carried and p.name not in follows]
    names = frozenset().union(*map(_name_words, silent))
    words = frozenset().union(*map(_words, silent))
    for param in params if silent else ():
        kin = _name_words(param) & names or _words(param) & words
        if param.name in carried and kin:
            yield param


_LABELS = frozenset("code count key kind name num number text type value".split())


def _name_words(param: Parameter) -> set[str]:
    return {part for part in type_key(param.name).split("_") if len(part) > 2} - _LABELS


def _words(param: Parameter) -> set[str]:
    return set(_TOKEN.findall(f"{spelling(param.value)} {(param.mention or '').casefold()}"))
