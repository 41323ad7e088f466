"""A prompt is one step where the caller says what its values are."""

from semcache.catalog.catalog import Catalog
from semcache.planners.steps.intents import Decomposition, Deferred
from semcache.planners.steps.whole import Whole
from semcache.ports import PlanRequest
from semcache.prompts.parameter import Parameter

TALK = "I'd love a quiet evening, maybe find me something by Hitchcock"


def test_a_caller_who_gives_values_gets_the_prompt_as_one_step() -> None:
    values = (Parameter("director", "Hitchcock", "Hitchcock"),)
    found = Whole().decompose(PlanRequest(TALK, None, Catalog(), values))
    assert isinstance(found, Decomposition)
    assert found.is_atomic
    (step,) = found.intents
    assert (step.goal, step.verb, step.action, step.params) == (TALK, "find", "search", values)


def test_without_values_it_leaves_the_prompt_to_others() -> None:
    found = Whole().decompose(PlanRequest(TALK, None, Catalog()))
    assert isinstance(found, Deferred)
    assert "gives no values" in found.why


def test_a_prompt_that_may_have_a_further_step_is_left_to_others() -> None:
    values = (Parameter("director", "Hitchcock", "Hitchcock"),)
    prompt = "films by Hitchcock, then sort them by year"
    found = Whole().decompose(PlanRequest(prompt, None, Catalog(), values))
    assert isinstance(found, Deferred)
    assert "may begin a further step" in found.why
