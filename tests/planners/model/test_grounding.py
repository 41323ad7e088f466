"""Which use case a prompt is, and what that does to plans and the cache."""

import json
from collections.abc import Sequence
from functools import partial

import pytest

from semcache import Hit, PlanCache, Settings, catalog_from, operation
from semcache.catalog.grounding import Grounding
from semcache.errors import InvalidSettings
from semcache.planners.model.grounding import Groundings
from semcache.testing import HashEmbedder, ScriptedModel
from tests.calling import calling
from tests.planners.conftest import Open


def spec(action: str, *, name: str = "support", rules: Sequence[str] = ()) -> Grounding:
    case = {
        "action": action,
        "params": {"orderId": "ORD1", "city": "Oslo"},
        "capabilities": ["Look it up"],
        "intent": "to know",
    }
    return Grounding.from_json(
        {
            "name": name,
            "domain": "shop",
            "version": "1",
            "use-cases": [case],
            "constraints": list(rules),
        }
    )


REFUND = spec("Process refund for order {orderId}", rules=["Only paid orders"])
STATUS = spec("Show status of order {orderId}", name="status")


def test_the_nearest_use_case_matches_whatever_the_values() -> None:
    groundings = Groundings([STATUS, REFUND], HashEmbedder())
    found = groundings.match("process refund for order ORD456")
    assert found is not None
    assert found.grounding is REFUND
    assert found.similarity > 0.9
    again = groundings.match("Process refund for order #77!")
    assert again is not None
    assert again.identity == found.identity


def test_no_match_is_no_failure() -> None:
    assert Groundings([REFUND], HashEmbedder()).match("What is the weather like?") is None
    assert Groundings([], HashEmbedder()).match("process refund") is None
    assert Groundings([REFUND], HashEmbedder()).match("4711") is None


def test_a_similarity_equal_to_the_threshold_is_no_match() -> None:
    embedder = HashEmbedder()
    assert Groundings([REFUND], embedder, threshold=1.0).match("process refund for order") is None


def test_prompts_of_one_template_are_embedded_once() -> None:
    embedder = HashEmbedder()
    groundings = Groundings([REFUND], embedder)
    for order in ("ORD1", "ORD2", "ORD3"):
        groundings.match(f"process refund for order {order}")
    assert len(embedder.texts) == 2  # the use case, and the wording of all three


def test_the_wordings_of_prompts_are_forgotten_with_entries_that_are_erased() -> None:
    embedder = HashEmbedder()
    groundings = Groundings([REFUND], embedder)
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        cache.store("refunds", {"operation": "refunds"})
        groundings.match("process refund for order ORD1")
        cache.clear()
    groundings.match("process refund for order ORD1")
    assert embedder.texts[1:] == ["process refund for order"] * 2


def test_settings_that_cannot_be_used_are_refused() -> None:
    with pytest.raises(InvalidSettings, match="threshold"):
        Groundings([REFUND], HashEmbedder(), threshold=2)
    with pytest.raises(InvalidSettings, match="one name"):
        Groundings([REFUND, REFUND], HashEmbedder())


# Through SemCache ----------------------------------------------------------------------------


@operation(effect="read")
def refund(order: str) -> dict[str, str]:
    """Refund."""
    return {"refunded": order}


@operation(effect="read")
def get_order(order_id: str) -> dict[str, str]:
    """Get an order."""
    return {"order_id": order_id}


PROMPT = "process refund for order ORD456"
PLAN = calling("refund", order="{{params.order}}")


# What the strategies that take a goal apart are told first is no list of steps.
SAID = [*["no steps"] * 4, json.dumps(PLAN)]


@pytest.fixture
def opened(open_semcache: Open) -> Open:
    """Open a SemCache in which a model takes goals apart."""
    return partial(open_semcache, catalog_from(refund), settings=Settings(steps_by_model=True))


def test_the_planner_is_shown_the_use_case_and_its_constraints(opened: Open) -> None:
    model = ScriptedModel(SAID)
    opened(model=model, groundings=[REFUND]).create(PROMPT, params={"order": "ORD456"})
    for asked in (model.calls[0][1].content, model.calls[-1][-1].content):
        assert "Process refund for order {orderId}" in asked
        assert "Only paid orders" in asked


def test_without_a_match_the_planner_is_asked_as_ever(opened: Open) -> None:
    grounded, plain = ScriptedModel(SAID), ScriptedModel(SAID)
    for model, groundings in ((grounded, [STATUS]), (plain, [])):
        opened(model=model, groundings=groundings).create(PROMPT, params={"order": "ORD456"})
    assert grounded.calls == plain.calls


# specs: D-3
def test_a_plan_serves_only_the_grounding_that_it_was_made_under(opened: Open) -> None:
    semcache = opened(model=ScriptedModel([]), groundings=[REFUND])
    cache, grounded = semcache.cache, semcache.ground(PROMPT)
    assert grounded is not None
    cache.store(PROMPT, PLAN, params={"order": "ORD456"}, grounding=grounded.identity)
    other = PROMPT.replace("ORD456", "ORD789")
    assert isinstance(semcache.lookup(other), Hit)
    assert not cache.lookup(other)
    assert not cache.lookup(other, grounding="another")


def test_a_plan_made_under_a_grounding_is_served_to_the_next_prompt_of_it(
    open_semcache: Open,
) -> None:
    groundings = [spec("Get the order {orderId}"), STATUS]
    semcache = open_semcache(catalog_from(get_order), groundings=groundings)
    first = semcache.run("Get the order ORD456")
    second = semcache.run("Get the order ORD789")
    (entry,) = semcache.cache.entries()
    assert (first.tier, second.tier) == ("planned", "template")
    assert second.value == {"answer": {"order_id": "ORD789"}}
    assert entry.grounding.startswith("support@1/")
