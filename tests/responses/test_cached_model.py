import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from semcache import Parameter, SemCache, Settings, catalog_from, operation
from semcache.planners.model.planner import ModelPlanner
from semcache.ports import Completion, Message, Model, PlanRequest, RememberingModel
from semcache.responses.cache import Responses
from semcache.responses.cached_model import CachedModel
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel
from tests.calling import calling
from tests.conftest import OpenAIServer, Request

ASK = [Message("system", "Count."), Message("user", "How many?")]


@pytest.fixture
def responses(clock: FakeClock) -> Responses:
    return Responses.open(clock=clock)


# specs: B-7
def test_the_same_messages_are_asked_once(responses: Responses) -> None:
    inner = ScriptedModel([Completion("3", "m-1", 11, 7)])
    model: Model = CachedModel(inner, responses)
    assert model.complete(ASK) == Completion("3", "m-1", 11, 7)
    assert model.complete(list(ASK)) == Completion("3", "m-1", 11, 7, cached=True)
    assert model.fingerprint == inner.fingerprint
    assert len(inner.calls) == 1


def test_other_messages_roles_and_models_are_asked_anew(responses: Responses) -> None:
    inner = ScriptedModel("1234")
    model = CachedModel(inner, responses)
    asked = [ASK, ASK[:1], ASK[::-1], [Message("user", "Count."), ASK[1]]]
    assert [model.complete(messages).text for messages in asked] == list("1234")
    other = CachedModel(ScriptedModel("5", fingerprint="other"), responses)
    assert other.complete(ASK).text == "5"


# specs: B-10
def test_a_fresh_answer_replaces_the_one_kept_and_a_forgotten_one_is_gone(
    responses: Responses,
) -> None:
    model = CachedModel(ScriptedModel("123"), responses)
    assert isinstance(model, RememberingModel)
    assert [model.complete(ASK).text, model.fresh(ASK).text, model.complete(ASK).text] == [
        "1", "2", "2"
    ]  # fmt: skip
    model.forget(ASK)
    assert model.complete(ASK).text == "3"


def test_a_cache_around_a_cache_is_still_fresh_when_told(responses: Responses) -> None:
    inner = CachedModel(ScriptedModel("123"), responses)
    model = CachedModel(inner, Responses.open())
    assert [model.complete(ASK).text, model.fresh(ASK).text] == ["1", "2"]
    model.forget(ASK)
    assert model.complete(ASK).text == "3"


def test_what_is_kept_in_another_shape_is_asked_anew(responses: Responses) -> None:
    model = CachedModel(ScriptedModel("12"), responses, group="g")
    model.complete(ASK)
    (key,) = responses.keys()
    responses.set(key, {"text": 1})
    assert model.complete(ASK).text == "2"
    assert responses.bust_group("g") == 1


@operation(effect="read")
def query_sales(year: int, unit: str) -> dict[str, int]:
    """Total the sales of a year, in a unit that only a model would guess."""
    return {"total": year * len(unit)}


CATALOG = catalog_from(query_sales)

PLAN = calling("query_sales", year="{{params.year}}", unit="k€")
SCHEMA = {
    "action": "search",
    "entities": ["sale"],
    "params": {"year": 2024},
    "mentions": {"year": "2024"},
}
PROMPT = "What did we take in during 2024?"


def scripted(request: Request) -> str:
    """Answer as a model would: a schema where words are asked for, else a plan."""
    if "workflow_type" in "".join(request.messages):
        return json.dumps({"workflow_type": "sequential", "steps": [{"ps": SCHEMA}]})
    return json.dumps(PLAN)


def opened(server: OpenAIServer, *, responses: Responses | None = None, **more: Any) -> SemCache:
    return SemCache.open(
        catalog=CATALOG,
        embedder=HashEmbedder(),
        settings=Settings(model="gpt-x", api_key="k", base_url=server.base_url, **more),
        responses=responses,
    )


# specs: B-7
def test_a_second_run_on_a_fresh_plan_cache_makes_no_model_call(
    openai_server: OpenAIServer, responses: Responses
) -> None:
    openai_server.answers(scripted)
    answers = []
    for _ in range(2):
        with opened(openai_server, responses=responses) as semcache:
            answers.append(semcache.run(PROMPT))
        assert len(openai_server.requests) == 2
    assert [(a.value, a.planned) for a in answers] == [({"answer": {"total": 4048}}, True)] * 2
    assert responses.metrics().hits == 2


def test_what_a_model_answered_is_kept_beside_the_plans(
    openai_server: OpenAIServer, tmp_path: Path
) -> None:
    openai_server.answers(scripted)
    for _ in range(2):
        with opened(openai_server, directory=tmp_path / "cache") as semcache:
            assert semcache.run(PROMPT).planned
            semcache.cache.clear()
    assert len(openai_server.requests) == 2
    assert (tmp_path / "cache" / "responses").is_dir()


def test_the_response_cache_can_be_switched_off(openai_server: OpenAIServer) -> None:
    openai_server.answers(scripted)
    with opened(openai_server, response_cache=False) as semcache:
        semcache.run(PROMPT)
        semcache.cache.clear()
        semcache.run(PROMPT)
        assert semcache.responses is None
    assert len(openai_server.requests) == 4


def test_rules_alone_need_no_response_cache(tmp_path: Path) -> None:
    with SemCache.open(tmp_path, catalog=CATALOG) as semcache:
        assert semcache.responses is None
    assert not (tmp_path / "responses").exists()


# specs: B-10
def test_a_plan_that_failed_is_asked_for_anew_and_its_answer_is_forgotten(
    responses: Responses,
) -> None:
    model = ScriptedModel([json.dumps(PLAN)] * 4)
    planner = ModelPlanner(CachedModel(model, responses))
    request = PlanRequest(
        prompt=PROMPT,
        schema=None,
        catalog=CATALOG,
        params=(Parameter("year", 2024, "2024"),),
    )
    planner.plan(request)
    planner.plan(request)
    assert len(model.calls) == 1
    for calls in (2, 3):
        planner.plan(replace(request, failure="LookupError: no such year"))
        assert len(model.calls) == calls
    planner.plan(request)
    assert len(model.calls) == 4
