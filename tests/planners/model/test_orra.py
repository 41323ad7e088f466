"""The example of orra's article in production wiring: a model plans it, the cache serves it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from semcache import SemCache, Settings
from semcache.errors import PlanningError
from semcache.testing import ScriptedModel
from semcache.testing.fakes import together
from tests.conftest import OpenAIServer
from tests.execution.test_tasks import services
from tests.orra import two_services
from tests.planners.conftest import Open
from tests.planners.github import GitHub

SCHEMA = json.dumps({"action": "local", "unexplained": ["CUST789", "ORD456"]})
PLAN = json.dumps(two_services(customerId="{{params.customerId}}", orderId="{{params.orderId}}"))
PROMPT = "Summarize order ORD456 of customer CUST789"
SAID = {"customerId": "CUST789", "orderId": "ORD456"}


Opened = Callable[..., tuple[SemCache, ScriptedModel]]


@pytest.fixture
def opened(open_semcache: Open) -> Opened:
    """Open a SemCache over the two services with a model that replies, and return both."""

    def opened(*replies: str) -> tuple[SemCache, ScriptedModel]:
        model = ScriptedModel(list(replies))
        settings = Settings(plan_format="tasks")
        return open_semcache(services(), model=model, settings=settings), model

    return opened


# specs: D-2, D-12
@pytest.mark.parametrize(
    "other", [PROMPT, PROMPT.replace("ORD456", "ORD222").replace("CUST789", "CUST111")]
)
def test_the_plan_of_the_model_serves_the_next_customer_with_its_own_values(
    opened: Opened, other: str
) -> None:
    semcache, model = opened(SCHEMA, PLAN)
    first = semcache.run(PROMPT, params=SAID)
    asked = len(model.calls)
    second = semcache.run(other, params={"customerId": "CUST111", "orderId": "ORD222"})
    assert [first.planned, second.planned, len(model.calls)] == [True, False, asked]
    assert second.tier == "template"
    assert json.loads(first.text) == {"task1": {"found": "CUST789"}, "task2": {"found": "ORD456"}}
    assert json.loads(second.text) == {"task1": {"found": "CUST111"}, "task2": {"found": "ORD222"}}
    served = second.plan.to_dict()
    assert served["parallel_groups"] == [["task1", "task2"]]


# specs: D-8
def test_ten_callers_with_their_own_values_make_one_plan(opened: Opened) -> None:
    semcache, model = opened(SCHEMA, PLAN)

    def ask(number: int) -> Any:
        said: dict[str, object] = {"customerId": f"CUST{number}00", "orderId": f"ORD{number}00"}
        prompt = f"Summarize order ORD{number}00 of customer CUST{number}00"
        value: Any = semcache.run(prompt, params=said).value
        return value["answer"]

    semcache.run(PROMPT, params=SAID)
    asked = len(model.calls)
    values = together(10, ask)
    assert len(model.calls) == asked
    assert values == [
        {"task1": {"found": f"CUST{n}00"}, "task2": {"found": f"ORD{n}00"}} for n in range(10)
    ]


# specs: D-9
def test_an_invalid_plan_is_told_three_times_and_leaves_nothing_behind(opened: Opened) -> None:
    wrong = json.dumps(two_services(customerId="{{params.customerId}}"))
    semcache, model = opened(SCHEMA, *[wrong] * 3)
    with pytest.raises(PlanningError, match="orderId"):
        semcache.run(PROMPT, params=SAID)
    assert semcache.cache.stats().entries == 0
    told = [call[-1].content for call in model.calls if "REJECTED" in call[-1].content]
    assert len(told) == 2
    assert "parameter 'orderId' is missing" in told[0]


def test_what_rules_account_for_sends_a_model_no_request(
    openai_server: OpenAIServer, open_semcache: Open
) -> None:
    """Neither the normalizer nor the planner, and not for the next prompt of its kind."""
    openai_server.answers(lambda _: SCHEMA)
    settings = Settings(model="m", api_key="k", base_url=openai_server.base_url, model_retries=0)
    semcache = open_semcache(GitHub().catalog, settings=settings)
    first = semcache.run("list issues in acme/site")
    second = semcache.run("list issues in globex/docs")
    assert (first.planned, second.planned, len(openai_server.requests)) == (True, False, 0)
    with pytest.raises(PlanningError):
        semcache.run("work through whatever is left of it")
    assert openai_server.requests
