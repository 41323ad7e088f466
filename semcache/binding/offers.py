"""Offers: which parties could have made which leaves of a plan what they are."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from semcache.binding.codecs import codec_between, spelling
from semcache.binding.leaves import Leaf
from semcache.binding.parties import TYPE, Party, affinity
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
    parties: Iterable[Party], leaves: Iterable[Leaf], taken: Iterable[Pointer]
) -> dict[Pointer, list[Offer]]:
    """Return, for each leaf that a party could have made, the offers for it, in document order.

    Leaves in or below a place of `taken` have their value already.
    """
    index = _index(leaves, frozenset(taken))
    found: dict[Pointer, list[Offer]] = defaultdict(list)
    for party in parties:
        for offer in _of(party, index):
            found[offer.leaf.at].append(offer)
    return found


def _index(leaves: Iterable[Leaf], taken: frozenset[Pointer]) -> Mapping[str, list[Leaf]]:
    index: dict[str, list[Leaf]] = defaultdict(list)
    for leaf in leaves:
        if leaf.role in {"data", "reference"} and not below(leaf.at, taken):
            index[spelling(leaf.value)].append(leaf)
    return index


def below(at: Pointer, places: frozenset[Pointer]) -> bool:
    """Return whether `at` is one of `places` or inside one."""
    return bool(places) and any(at[:size] in places for size in range(1, len(at) + 1))


def _of(party: Party, index: Mapping[str, list[Leaf]]) -> Iterator[Offer]:
    seen: set[Pointer] = set()
    for form in party.forms:
        for leaf in index.get(spelling(form), ()):
            near = affinity(party, leaf)
            codec = codec_between(form, leaf.value, any_case=near >= TYPE)
            if codec is not None and leaf.at not in seen:
                seen.add(leaf.at)
                yield Offer(party, leaf, form, codec, near)
