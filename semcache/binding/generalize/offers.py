"""Offers: which parties could have made which leaves of a plan what they are."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from semcache.binding.codecs import codec_between, codec_of, period_codec, spelling
from semcache.binding.generalize.parties import TYPE, Party, affinity
from semcache.binding.leaves import Leaf
from semcache.canonical import Json, Pointer


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
