"""A recipe: a plan template prepared so that binding copies only what changes.

Copying a whole plan costs several times what the values cost (`copy.deepcopy` of 2 KB: 76 µs), so
the containers on the way to a bound place are copied and everything else is shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias, cast

from semcache.binding.pieces import Binding, Pin
from semcache.canonical import Json, JsonObject, Pointer
from semcache.prompts.parameter import Parameter, name_key

Way: TypeAlias = "tuple[tuple[str | int, Way | int], ...]"
"""From a container: its key or position, and what to do there: go on, or put place number n."""


@dataclass(frozen=True, slots=True)
class Fill:
    """One value on its way into a place."""

    param: int
    """Position of the parameter in `Recipe.names`."""
    binding: Binding


@dataclass(frozen=True, slots=True)
class Recipe:
    """What `bind` needs to know of a template, computed once."""

    names: tuple[str, ...]
    """Names of the parameters."""
    spelled: Mapping[str, int]
    """Name, as it is and free of spelling → position in `names`."""
    places: tuple[tuple[Fill, ...], ...]
    """For each place of the plan that is bound: what fills it; more than one if inline."""
    way: Way
    """From the root of the plan to the places."""
    data: frozenset[Pointer]
    """The places: what stands there is never interpreted."""
    pinned: tuple[tuple[int, Pin, tuple[int, ...]], ...]
    """Position of the parameter in `names`, its pin, and the positions of what it echoes."""
    equal: tuple[tuple[int, ...], ...]
    """Positions in `names` of parameters that must have equal values."""
    follows: tuple[tuple[int, int], ...]
    """Position of a parameter that has no words of its own, and of the one whose words it
    shares."""

    @classmethod
    def of(
        cls,
        params: Sequence[Parameter],
        bindings: Sequence[Binding],
        pinned: Sequence[Pin],
        equal: Sequence[frozenset[str]],
        follows: Mapping[str, str],
    ) -> "Recipe":
        """Return the recipe of a template of these parts."""
        names = tuple(p.name for p in params)
        recipe = _unpinned(names, tuple(bindings), tuple(equal), tuple(follows.items()))
        if not pinned:
            return recipe
        position = {name: i for i, name in enumerate(names)}
        pins = [
            (position[pin.param], pin, tuple(position[name] for name in pin.echo[1::2]))
            for pin in pinned
        ]
        return replace(recipe, pinned=tuple(pins))

    def put(self, plan: JsonObject, values: Sequence[Json]) -> JsonObject:
        """Return `plan` with `values[n]` at place n; what has no place below is shared."""
        return cast(JsonObject, _put(plan, self.way, values)) if self.way else plan


# Plans of one shape have their values in the same places, and a cache has thousands of them.
@lru_cache(maxsize=1_000)
def _unpinned(
    names: tuple[str, ...],
    bindings: tuple[Binding, ...],
    equal: tuple[frozenset[str], ...],
    follows: tuple[tuple[str, str], ...],
) -> Recipe:
    position = {name: i for i, name in enumerate(names)}
    places: dict[Pointer, list[Fill]] = {}
    for binding in bindings:
        places.setdefault(binding.at, []).append(Fill(position[binding.param], binding))
    return Recipe(
        names=names,
        spelled={name_key(name): i for name, i in position.items()} | position,
        places=tuple(tuple(fills) for fills in places.values()),
        way=_way(tuple(places)),
        data=frozenset(places),
        pinned=(),
        equal=tuple(tuple(sorted(position[name] for name in group)) for group in equal),
        follows=tuple((position[name], position[of]) for name, of in follows),
    )


@lru_cache(maxsize=1_000)
def _way(places: tuple[Pointer, ...]) -> Way:
    tree: dict[str | int, object] = {}
    for number, place in enumerate(places):
        node = tree
        for part in place[:-1]:
            node = cast("dict[str | int, object]", node.setdefault(part, {}))
        node[place[-1]] = number
    return _frozen(tree)


def _frozen(tree: Mapping[str | int, object]) -> Way:
    return tuple(
        (part, _frozen(below) if isinstance(below, dict) else cast(int, below))
        for part, below in tree.items()
    )


def _put(node: Json, way: Way, values: Sequence[Json]) -> Json:
    # A way leads through containers only, so that `node` is one; its parts fit its type.
    copy = cast("dict[str | int, Json]", node).copy()
    for part, onward in way:
        if isinstance(onward, int):
            copy[part] = values[onward]
        else:
            copy[part] = _put(copy[part], onward, values)
    return cast(Json, copy)
