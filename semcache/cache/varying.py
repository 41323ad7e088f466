"""Varying: constants of a plan that nobody said and that another value changed.

"hotels in Reno" has `state: NV` in its plan, and nobody said so. Once "hotels in Boise" is planned
and has another state, the state is known to follow from the city: then each plan serves the city
that it was made for, and a city that was never planned for is planned.
"""

from collections.abc import Collection
from dataclasses import replace

from semcache.binding.pieces import Pin
from semcache.cache.entry import Entry
from semcache.cache.family import family
from semcache.canonical import same


def varying(old: Entry, new: Entry) -> frozenset[str]:
    """Return the parameters that may have changed what the plan of `new` has beside them.

    Empty where the plans differ in nothing but their values, or for no reason in the prompts.
    """
    if family(old.plan, given=False) == family(new.plan, given=False):
        return frozenset()
    before = {parameter.name: parameter.value for parameter in old.plan.params}
    return frozenset(
        parameter.name
        for parameter in new.plan.params
        if parameter.name in new.plan.carriers
        and parameter.name in before
        and not same(parameter.value, before[parameter.name])
    )


def held(entry: Entry, names: Collection[str]) -> Entry:
    """Return `entry` serving only the values that it has for `names`."""
    known = {pin.param for pin in entry.plan.pinned}
    pins = tuple(
        Pin(parameter.name, parameter.value, "varies")
        for parameter in entry.plan.params
        if parameter.name in names and parameter.name not in known
    )
    return replace(entry, plan=replace(entry.plan, pinned=(*entry.plan.pinned, *pins)))


def at(entry: Entry, positions: Collection[int]) -> frozenset[str]:
    """Return the parameters in the slots at `positions` of the template text."""
    return frozenset(name for i, name in enumerate(entry.plan.carriers) if i in positions)
