"""Dialog a person: through a callback, beforehand, or later; from plans new and cached."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from semcache import Answer, AsyncSemCache, Catalog, Hit, Operation, Question, SemCache
from semcache.canonical import Json, JsonObject
from semcache.errors import ExecutionError, InputNeeded, InvalidParameter, OperationFailed
from semcache.planners.questions import Ask
from semcache.testing import FakeClock, HashEmbedder

PROMPT = "list issues in mandubian/ccos but ask me for the page size"
PAGE: JsonObject = {"topic": "page size", "operation": "list_issues", "input": "perPage"}
PLAN: JsonObject = {
    "start_node": {"route": "ask"},
    "ask": {"operation": "ask_user", "input": PAGE, "route": "list"},
    "list": {"operation": "list_issues", "input": {"perPage": "$.ask"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.list"}},
}


class Service:
    """Operations that keep count of their calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, JsonObject]] = []

    def operation(self, name: str, schema: JsonObject, output: Json, effect: str) -> Operation:
        def call(given: JsonObject) -> object:
            self.calls.append((name, given))
            return given if output is None else output

        return Operation(
            name, f"Do {name}.", schema, effect="read" if effect == "read" else "write", call=call
        )

    @property
    def catalog(self) -> Catalog:
        size: JsonObject = {"type": "integer", "minimum": 1, "maximum": 100, "description": "Size."}
        properties: JsonObject = {"perPage": size, "labels": {"type": "array"}}
        return Catalog(
            [
                self.operation("list_issues", {"properties": properties}, None, "read"),
                self.operation("create_issue", {}, {"number": 7}, "write"),
                self.operation("list_labels", {}, ["bug", "docs"], "read"),
            ]
        )


@pytest.fixture
def service() -> Service:
    return Service()


def opened(
    service: Service, clock: FakeClock, directory: Path | None = None, ask: Ask | None = None
) -> SemCache:
    semcache = SemCache.open(
        directory, catalog=service.catalog, embedder=HashEmbedder(), clock=clock, ask=ask
    )
    semcache.cache.store(PROMPT, PLAN)
    return semcache


@pytest.fixture
def semcache(service: Service, clock: FakeClock) -> Iterator[SemCache]:
    with opened(service, clock) as semcache:
        yield semcache


def test_a_callback_is_asked_and_its_answer_becomes_what_the_schema_wants(
    service: Service, clock: FakeClock
) -> None:
    asked: list[Question] = []

    def ask(question: Question) -> str:
        asked.append(question)
        return " 25 "

    with opened(service, clock, ask=ask) as semcache:
        answer = semcache.run(PROMPT)
    assert answer.value == {"answer": {"perPage": 25}}
    assert answer.needs is None
    assert service.calls == [("list_issues", {"perPage": 25})]
    assert [(one.topic, one.text) for one in asked] == [
        ("page size", "Please provide: page size (Size; a whole number from 1 to 100)")
    ]


def test_a_cached_plan_asks_again_each_time(service: Service, clock: FakeClock) -> None:
    said = iter(["10", "20"])
    with opened(service, clock, ask=lambda _: next(said)) as semcache:
        answers = [semcache.run(PROMPT) for _ in range(2)]
    assert all(isinstance(answer.found, Hit) for answer in answers)
    assert [answer.value for answer in answers] == [
        {"answer": {"perPage": 10}},
        {"answer": {"perPage": 20}},
    ]


def test_an_answer_that_will_not_do_is_asked_for_again_with_the_reason(
    service: Service, clock: FakeClock
) -> None:
    asked: list[str] = []
    said = iter(["many", "1000", "10"])

    def ask(question: Question) -> str:
        asked.append(question.text)
        return next(said)

    with opened(service, clock, ask=ask) as semcache:
        assert semcache.run(PROMPT).value == {"answer": {"perPage": 10}}
    assert asked[1].startswith("'page size' is 'many'")
    assert "1000 is greater than the maximum of 100" in asked[2]


def test_after_three_answers_that_will_not_do_the_run_is_given_up(
    service: Service, clock: FakeClock
) -> None:
    with (
        opened(service, clock, ask=lambda _: "") as semcache,
        pytest.raises(InvalidParameter, match="'page size' was not answered"),
    ):
        semcache.run(PROMPT)
    assert service.calls == []


def test_without_a_callback_a_run_comes_back_with_its_questions_and_goes_on_later(
    semcache: SemCache, service: Service
) -> None:
    waiting = semcache.run(PROMPT)
    assert waiting.needs is not None
    assert waiting.value is None
    assert waiting.text == "Please provide: page size (Size; a whole number from 1 to 100)"
    assert waiting.needs.questions[0].answer["type"] == "integer"
    assert service.calls == []
    answer = semcache.answer(waiting.needs, {"page_size": "25"})
    assert (answer.value, answer.needs) == ({"answer": {"perPage": 25}}, None)
    assert answer.run.id == waiting.run.id
    told = waiting.to_dict()["needs"]
    assert isinstance(told, dict)
    assert told["token"] == waiting.needs.token


def test_an_answer_known_beforehand_is_not_asked_for(semcache: SemCache) -> None:
    assert semcache.run(PROMPT, answers={"page size": 5}).value == {"answer": {"perPage": 5}}
    with pytest.raises(InvalidParameter, match="'page size' is 'many'"):
        semcache.run(PROMPT, answers={"page size": "many"})


def test_a_run_that_waits_survives_the_process_and_is_bounded_by_its_tenant(
    service: Service, clock: FakeClock, tmp_path: Path
) -> None:
    with opened(service, clock, tmp_path / "cache") as semcache:
        needs = semcache.run(PROMPT).needs
        assert needs is not None
    with opened(service, clock, tmp_path / "cache") as semcache:
        with pytest.raises(InvalidParameter, match="no run waits under"):
            semcache.answer(needs.token, {"page size": 25}, tenant="other")
        answer = semcache.answer(needs.token, {"page size": 25})
    assert answer.value == {"answer": {"perPage": 25}}


def test_a_run_goes_on_once(semcache: SemCache) -> None:
    needs = semcache.run(PROMPT).needs
    assert needs is not None
    semcache.answer(needs, {"page size": 25})
    with pytest.raises(InvalidParameter, match="it was answered, belongs to another tenant"):
        semcache.answer(needs, {"page size": 25})


def test_a_wrong_answer_costs_nothing_and_the_run_still_waits(semcache: SemCache) -> None:
    needs = semcache.run(PROMPT).needs
    assert needs is not None
    with pytest.raises(InvalidParameter, match="'page size' is 'many'"):
        semcache.answer(needs, {"page size": "many"})
    with pytest.raises(InvalidParameter, match="nothing asks for 'color'; asked is 'page size'"):
        semcache.answer(needs, {"color": "red"})
    assert semcache.answer(needs, {"page size": 3}).value == {"answer": {"perPage": 3}}


def test_a_run_does_not_wait_for_ever(semcache: SemCache, clock: FakeClock) -> None:
    needs = semcache.run(PROMPT).needs
    assert needs is not None
    assert needs.expires_s == clock.now() + 24 * 3600
    clock.advance(24 * 3600)
    with pytest.raises(InvalidParameter, match="has waited for too long"):
        semcache.answer(needs, {"page size": 3})


LABELS: JsonObject = {
    "start_node": {"route": "make"},
    "make": {"operation": "create_issue", "input": {}, "route": "labels"},
    "labels": {"operation": "list_labels", "input": {}, "route": "size"},
    "size": {"operation": "ask_user", "input": PAGE, "route": "which"},
    "which": {
        "operation": "ask_user",
        "input": {"topic": "$.labels[0]"},
        "route": "list",
    },
    "list": {
        "operation": "list_issues",
        "input": {"perPage": "$.size", "labels": ["$.which"]},
        "route": "end",
    },
    "end": {"completed": True, "vars": {"answer": "$.list"}},
}


def test_what_was_called_before_a_question_is_not_called_again(
    semcache: SemCache, service: Service
) -> None:
    semcache.cache.store("file it and list what is like it", LABELS)
    first = semcache.run("file it and list what is like it")
    assert first.needs is not None
    assert [one.topic for one in first.needs.questions] == ["page size"]
    assert service.calls == []
    second = semcache.answer(first.needs, {"page size": 9})
    assert second.needs is not None
    assert [one.topic for one in second.needs.questions] == ["bug"]
    assert [name for name, _ in service.calls] == ["create_issue", "list_labels"]
    last = semcache.answer(second.needs, {"bug": "urgent"})
    assert last.value == {"answer": {"perPage": 9, "labels": ["urgent"]}}
    assert [name for name, _ in service.calls] == ["create_issue", "list_labels", "list_issues"]


def test_what_was_called_before_a_question_is_not_called_again_where_somebody_answers_at_once(
    service: Service, clock: FakeClock
) -> None:
    said = {"page size": "9", "bug": "urgent"}
    with opened(service, clock, ask=lambda question: said[question.topic]) as semcache:
        semcache.cache.store("file it and list what is like it", LABELS)
        answer = semcache.run("file it and list what is like it")
    assert answer.value == {"answer": {"perPage": 9, "labels": ["urgent"]}}
    assert [name for name, _ in service.calls] == ["create_issue", "list_labels", "list_issues"]


def test_a_plan_that_branches_asks_only_what_it_comes_to(
    semcache: SemCache, service: Service
) -> None:
    branching: JsonObject = {
        "start_node": {"route": "labels"},
        "labels": {
            "operation": "list_labels",
            "input": {},
            "route": [{"condition": "$.labels[9]", "node": "ask"}, "end"],
        },
        "ask": {"operation": "ask_user", "input": PAGE, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.labels"}},
    }
    semcache.cache.store("labels please", branching)
    assert semcache.run("labels please").value == {"answer": ["bug", "docs"]}


def test_a_waiting_run_is_no_failed_one(semcache: SemCache) -> None:
    for _ in range(5):
        assert semcache.run(PROMPT).needs is not None
    assert isinstance(semcache.run(PROMPT).found, Hit)


def test_a_plan_that_fails_after_its_answer_fails(service: Service, clock: FakeClock) -> None:
    def broken(given: JsonObject) -> object:
        raise OSError("no network")

    catalog = service.catalog.with_calls({"list_issues": broken})
    with SemCache.open(catalog=catalog, embedder=HashEmbedder(), clock=clock) as semcache:
        semcache.cache.store(PROMPT, PLAN)
        with pytest.raises(OperationFailed, match="no network"):
            semcache.run(PROMPT, answers={"page size": 5})


def test_a_plan_run_alone_takes_answers_or_says_what_it_asks(semcache: SemCache) -> None:
    assert semcache.execute(PLAN, answers={"page size": 5}).value == {"answer": {"perPage": 5}}
    with pytest.raises(InputNeeded, match="the plan asks for 'page size'; give `answers`"):
        semcache.execute(PLAN)


def test_a_plan_that_asks_without_end_is_stopped(semcache: SemCache) -> None:
    looping: JsonObject = {
        "start_node": {"route": "count"},
        "count": {"operation": "list_labels", "input": {}, "route": "ask"},
        "ask": {"operation": "ask_user", "input": {"topic": "again"}, "route": "count"},
        "end": {"completed": True},
    }
    with pytest.raises(ExecutionError):
        semcache.execute(looping, answers={"again": "yes"})


def test_a_tasks_plan_asks_all_its_questions_at_once(semcache: SemCache) -> None:
    labels: JsonObject = {"topic": "labels", "operation": "list_issues", "input": "labels"}
    plan: JsonObject = {
        "tasks": [
            {"id": "task0", "input": {}},
            {"id": "task1", "service": "ask_user", "input": PAGE},
            {"id": "task2", "service": "ask_user", "input": labels},
            {
                "id": "task3",
                "service": "list_issues",
                "input": {"perPage": "$task1", "labels": "$task2"},
            },
        ]
    }
    semcache.cache.store("issues by size and labels", plan)
    waiting = semcache.run("issues by size and labels")
    assert waiting.needs is not None
    assert [one.topic for one in waiting.needs.questions] == ["page size", "labels"]
    half = semcache.answer(waiting.needs, {"labels": "bug"})
    assert half.needs is not None
    assert [one.topic for one in half.needs.questions] == ["page size"]
    last = semcache.answer(half.needs, {"page size": 2})
    assert isinstance(last.value, dict)
    assert last.value["answer"] == {"perPage": 2, "labels": ["bug"]}


async def _answered(semcache: SemCache) -> Answer:
    door = AsyncSemCache(semcache)
    waiting = await door.run(PROMPT)
    assert waiting.needs is not None
    assert await door.intents(waiting.run.id) is None
    return await door.answer(waiting.needs, {"page size": 4})


def test_async_callers_can_answer_too(semcache: SemCache) -> None:
    import asyncio

    assert asyncio.run(_answered(semcache)).value == {"answer": {"perPage": 4}}
