from functools import partial

import pytest

from semcache import Hit, Parameter, PlanCache, PromptSchema
from semcache.canonical import Json
from semcache.testing import HashEmbedder
from tests.calling import calling, given_input, missed

YEAR = Parameter("year", "2024", mention="2024")
plan = partial(calling, "sales")


def schema(
    action: str = "summarize", group_by: tuple[str, ...] = ("category",), **params: Json
) -> PromptSchema:
    return PromptSchema(action, ("sale",), group_by, params)


# Template tier ───────────────────────────────────────────────────────────────────────────────────


def test_an_equal_template_is_served_without_embedding(
    cache: PlanCache, embedder: HashEmbedder
) -> None:
    cache.store("Sales in 2024 by category?", plan(year="2024"), params=[YEAR])
    embedder.texts.clear()
    found = cache.lookup("sales in 1999 by category")
    assert given_input(found) == {"year": "1999"}
    assert (found.tier, found.score) == ("template", 1.0) if isinstance(found, Hit) else False
    assert embedder.texts == []


# specs: C-14
@pytest.mark.parametrize(
    "prompt",
    ["SALES IN 2023 BY CATEGORY", "  sales in 2023  by category ?", "Sales in 2023 by category."],
)
def test_case_and_closing_signs_of_a_goal_do_not_matter(cache: PlanCache, prompt: str) -> None:
    cache.store("Sales in 2024 by category?", plan(year="2024"), params=[YEAR])
    found = cache.lookup(prompt)
    assert given_input(found) == {"year": "2023"}
    assert found.trace.tiers == (("template", "hit"),)


# Schema tier ─────────────────────────────────────────────────────────────────────────────────────


# specs
def test_another_wording_with_the_same_schema_is_served_its_own_values(cache: PlanCache) -> None:
    query = schema(year="2024", amount={"aggregate": "sum"})
    cache.store("Total sales 2024 by category", plan(year="2024"), params=[YEAR], schema=query)
    other = schema(year="2023", amount={"aggregate": "sum"})
    found = cache.lookup("How much was sold per category in 2023?", schema=other)
    assert given_input(found) == {"year": "2023"}
    assert isinstance(found, Hit)
    assert (found.tier, found.key) == ("schema", "summarize-sale-amount_year-group_category")


# specs
@pytest.mark.parametrize(
    "other",
    [
        schema(year="2023", amount={"aggregate": "avg"}),
        schema(year={"operator": ">", "operand": "2023"}, amount={"aggregate": "sum"}),
        schema(group_by=("state",), year="2023", amount={"aggregate": "sum"}),
        schema(group_by=("category", "state"), year="2023", amount={"aggregate": "sum"}),
        schema("search", year="2023", amount={"aggregate": "sum"}),
        schema(year="2023", amount={"aggregate": "sum"}, limit=5),
        schema(year="2023"),
    ],
)
def test_a_schema_that_asks_something_else_never_shares_a_plan(
    cache: PlanCache, other: PromptSchema
) -> None:
    query = schema(year="2024", amount={"aggregate": "sum"})
    cache.store("Total sales 2024 by category", plan(year="2024"), params=[YEAR], schema=query)
    prompt = "How much was sold per category in 2023?"
    assert not cache.lookup(prompt, schema=other)
    assert cache.lookup(prompt, schema=schema(year="2023", amount={"aggregate": "sum"}))


def test_a_partial_schema_finds_nothing_and_is_found_by_nothing(cache: PlanCache) -> None:
    whole = schema(year="2024")
    partial = PromptSchema(
        whole.action, whole.entities, whole.group_by, whole.params, unexplained=("returns",)
    )
    cache.store("sales without returns in 2024", plan(year="2024"), params=[YEAR], schema=partial)
    assert not cache.lookup("what was sold in 2024", schema=whole)
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR], schema=whole)
    found = missed(cache.lookup("what was sold less returns in 2024", schema=partial))
    assert ("schema", "partial: returns") in found.trace.tiers


def test_a_schema_without_a_value_that_the_plan_needs_is_refused(cache: PlanCache) -> None:
    both = {"year": "2024", "region": "west"}
    query = schema(year="2024")
    cache.store("sales 2024", plan(**both), params=both, schema=query)
    found = missed(cache.lookup("what was sold in 2023", schema=schema(year="2023")))
    assert "no value for 'region'" in found.explain()


# The same prompt again ────────────────────────────────────────────────────────────────────────────


def test_a_prompt_that_is_asked_again_gets_the_same_answer(cache: PlanCache) -> None:
    cache.store("sales in 2024 by category", plan(year="2024"), params=[YEAR])
    first, again = (cache.lookup("sales in 2023 by category").to_dict() for _ in range(2))
    for told in (first, again):
        assert isinstance(told["trace"], dict)
        del told["trace"]["milliseconds"]
    assert first == again
    assert cache.stats().hits == {"template": 2}


def test_a_plan_that_another_year_changed_since_is_not_served_to_who_asks_again(
    cache: PlanCache,
) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR])
    assert cache.lookup("sales in 2023")
    cache.store("sales in 2022", calling("revenue", year="2022"), params={"year": "2022"})
    missed(cache.lookup("sales in 2023"))


# Both, and what follows them ─────────────────────────────────────────────────────────────────────


def test_tiers_are_asked_in_order_until_one_serves(cache: PlanCache) -> None:
    cache.store("sales in 2024", plan(year="2024"), params=[YEAR], schema=schema(year="2024"))
    by_template = cache.lookup("sales in 2023", schema=schema(year="2023"))
    by_schema = cache.lookup("what was sold during 2023", schema=schema(year="2023"))
    by_none = cache.lookup("what was sold during 2023", schema=schema("list", year="2023"))
    query = [[tier for tier, _ in found.trace.tiers] for found in (by_template, by_schema, by_none)]
    assert query == [
        ["template"],
        ["template", "schema"],
        ["template", "schema", "semantic"],
    ]
