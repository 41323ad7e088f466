"""What holds for every plan that could be generalized."""

from collections.abc import Mapping

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject, same
from semcache.errors import BindingError


def gives_back(plan: JsonObject, params: Mapping[str, Json]) -> None:
    """Fail unless the plan comes back with the values that it was made for, or is refused."""
    try:
        template = generalize(plan, params)
    except BindingError as error:
        assert error.reason in {"placeholder", "reference"}  # noqa: PT017 - the only ways out
        return
    assert same(bind(template, params).plan, plan)
