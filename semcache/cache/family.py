"""Family: what an entry's plan is but for the values of a prompt."""

from semcache.binding.codecs import inline
from semcache.binding.recipe import Fill
from semcache.binding.template import PlanTemplate
from semcache.canonical import Json, digest

_BLANK = "\0"
"""Stands for a value; no plan holds it."""


def family(plan: PlanTemplate, *, given: bool) -> str:
    """Return a name that plans share if they differ only in values.

    `given`: all values count as such, as they do where the caller gives them; else only those that
    words of the prompt carry: of "sales this year" the year is part of what the plan is.
    """
    return _named(plan, {} if given else _unsaid(plan))


def families(plan: PlanTemplate) -> tuple[str, str]:
    """Return the family of `plan` for prompts without given values, and for those with them."""
    unsaid = _unsaid(plan)
    given = _named(plan, {})
    return (_named(plan, unsaid) if unsaid else given), given


def _unsaid(plan: PlanTemplate) -> dict[str, Json]:
    """Return the values that no words of the prompt carry, by the names of their parameters."""
    said = {*plan.carriers, *plan.follows}
    return {p.name: p.value for p in plan.params if p.name not in said}


def _named(plan: PlanTemplate, values: dict[str, Json]) -> str:
    """Return the name of `plan` with `values` in it, and nothing for the others."""
    recipe = plan.recipe
    filled = [_blanked(place, values) for place in recipe.places]
    return digest(recipe.put(plan.plan, filled))[:20]


def _blanked(place: tuple[Fill, ...], values: dict[str, Json]) -> Json:
    if not place[0].binding.inline:
        binding = place[0].binding
        return values.get(binding.param, _BLANK + binding.codec)
    return "".join(
        fill.binding.before
        + (str(inline(values[fill.binding.param])) if fill.binding.param in values else _BLANK)
        + fill.binding.after
        for fill in place
    )
