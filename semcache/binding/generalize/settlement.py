"""Settle: which of the offers become bindings, and which values are pinned because none is sure.

Rules, for a value that equals leaves of the plan:
1. A leaf that is called what the value is called belongs to it.
2. Beside such a leaf, other equal leaves belong to it only if the value is rare (a code, several
   words): `limit: 1` does not make `page: 1`.
3. With no such leaf, a word or a year binds the one leaf that has it, or several whose names do
   not say something else; a short number binds the one leaf that has it, unless its name says
   something else; `true`, 0 and 1 bind nothing.
4. A leaf that several equal values could have made serves only when they are equal again.
5. What nobody named (a mention without a parameter) binds only if one leaf has it.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from semcache.binding.generalize.offers import Offer
from semcache.binding.generalize.parties import NEAR, RARE, SHORT, TYPE, WORD, Key, Party, rarity
from semcache.binding.pieces import Pin, Why
from semcache.canonical import Pointer


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
