from collections.abc import Callable

import pytest

from semcache import Parameter
from semcache.binding.generalize.generalization import generalize
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError
from semcache.prompts.mentions import Mention

Routes = Callable[..., JsonObject]
Say = Callable[..., Mention]


def test_a_date_frozen_for_yesterday_does_not_last_the_day(routes: Routes, say: Say) -> None:
    template = generalize(
        routes({"day": "2024-03-10"}), mentions=[say("yesterday", "date", relative=True)]
    )
    assert template.perishable == "yesterday"


@pytest.mark.parametrize(
    "inputs",
    [
        {"when": "yesterday"},
        {"request": "mails of yesterday about tea"},
        {"sql": "SELECT * FROM x WHERE d >= date(current_timestamp, '-1 day')"},
    ],
)
def test_a_plan_that_hands_on_the_words_or_asks_the_clock_lasts(
    routes: Routes, say: Say, inputs: JsonObject
) -> None:
    template = generalize(routes(inputs), mentions=[say("yesterday", "date", relative=True)])
    assert template.perishable == ""
    assert template.refusal == ""


@pytest.mark.parametrize("extra", [{"month": 3}, {"since": "2024-03-10"}, {"epoch": 1710000000}])
def test_what_may_be_frozen_beside_the_words_ends_with_the_day(
    routes: Routes, say: Say, extra: dict[str, Json]
) -> None:
    plan = routes({"when": "this month", **extra})
    assert generalize(plan, mentions=[say("this month", "date", relative=True)]).perishable


def test_an_instant_frozen_for_now_is_refused_and_cannot_be_written(
    routes: Routes, say: Say
) -> None:
    plan = routes({"at": "2024-03-10T14:30"})
    template = generalize(plan, mentions=[say("30 minutes ago", "date", relative=True)])
    assert "14:30" in template.refusal
    with pytest.raises(BindingError, match="cannot be reused"):
        template.to_json()


def test_a_date_that_the_prompt_says_is_not_frozen(routes: Routes, say: Say) -> None:
    plan = routes({"when": "tomorrow", "project": "Plan 2030"})
    mentions = [say("tomorrow", "date", relative=True), say("Plan 2030", "quoted")]
    assert generalize(plan, mentions=mentions).perishable == ""


def test_a_given_date_that_relative_words_carry_ends_with_the_day(routes: Routes, say: Say) -> None:
    params = [Parameter("day", "2024-03-10", mention="yesterday")]
    mentions = [say("yesterday", "date", name="day", relative=True)]
    assert generalize(routes({"day": "2024-03-10"}), params, mentions).perishable == "yesterday"
