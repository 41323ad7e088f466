"""The run tree as `SemCache` grows it."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from semcache import AsyncSemCache, SemCache, Settings, catalog_from, operation
from semcache.canonical import dumps
from semcache.errors import OperationFailed
from semcache.events import NodeClosed, NodeFinished, NodeOpened
from semcache.models.openai import OpenAIModel
from semcache.runs.tree import Node
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver

PLAN: dict[str, Any] = {
    "start_node": {"route": "count"},
    "count": {"operation": "count_visits", "input": {"town": "Oslo"}, "route": "end"},
    "end": {"completed": True, "vars": {"answer": "$.count"}},
}


@operation(effect="read")
def count_visits(town: str) -> int:
    """Count the visits to a town."""
    if town == "Atlantis":
        raise LookupError("no such town; key sk-planted-4711-abc")
    return len(town)


@pytest.fixture
def opened() -> Iterator[Any]:
    with ExitStack() as stack:

        def make(*operations: Any, **more: Any) -> SemCache:
            said: dict[str, Any] = {"embedder": HashEmbedder(), "clock": FakeClock(), **more}
            made = SemCache.open(catalog=catalog_from(*(operations or (count_visits,))), **said)
            return stack.enter_context(made)

        yield make


def shape(node: Node) -> Any:
    return {node.name: [shape(child) for child in node.children.values()]}


def store(semcache: SemCache, plan: dict[str, Any] = PLAN) -> None:
    assert semcache.cache.store("yearly visits to Oslo", plan, params={"town": "Oslo"})


EXECUTED: Any = {"execute": [{"start_node": []}, {"count": []}, {"end": []}]}


def test_a_hit_and_a_miss_show_what_was_done_for_them(opened: Any) -> None:
    semcache = opened()
    missed = semcache.run("Count the visits of town 'Oslo'").run
    store(semcache)
    hit = semcache.run("yearly visits to Bergen", params={"town": "Bergen"})
    steps = [name for child in shape(missed.root)[missed.root.name] for name in child]
    assert steps == ["lookup", "normalize", "plan", "store", "bind", "execute"]
    assert shape(hit.run.root) == {"yearly visits to Bergen": [{"lookup": []}, EXECUTED]}
    assert hit.run.root.notes == {"tier": "template", "planned": False}
    (call,) = hit.run.named("count")
    assert (call.input, call.output, call.kind) == ({"town": "Bergen"}, 6, "operation")
    assert (call.notes["operation"], call.notes["effect"]) == ("count_visits", "read")
    assert semcache.runs.latest().id == hit.run.id


def test_the_tokens_of_a_models_answers_are_counted(opened: Any, openai_server: Any) -> None:
    openai_server.answers(
        lambda asked: json.dumps(PLAN) if "start_node" in asked.messages[0] else "no"
    )
    model = OpenAIModel("m", base_url=openai_server.base_url, max_retries=0)
    prices = Settings(prompt_token_price=1e6, completion_token_price=2e6)
    semcache = opened(model=model, settings=prices)
    run = semcache.run("How crowded would you say is it in Oslo?", params={"town": "Oslo"}).run
    calls = len(openai_server.requests)
    assert (run.root.prompt_tokens, run.root.completion_tokens) == (11 * calls, 7 * calls)
    assert run.root.cost == (11 + 2 * 7) * calls
    asking = [n.parent.name for n in run if n.kind == "model"]
    assert len(asking) == calls
    assert set(asking) == {"normalize", "plan"}


def test_a_run_that_failed_shows_where_and_why_without_secrets(opened: Any) -> None:
    semcache = opened()
    store(semcache)
    with pytest.raises(OperationFailed, match="no such town"):
        semcache.run("yearly visits to Atlantis", params={"town": "Atlantis"})
    run = semcache.runs.latest()
    failed = [n.name for n in run if n.status == "failed"]
    assert failed == ["yearly visits to Atlantis", "execute", "count"]
    assert "no such town" in run.root.error
    assert "sk-planted" not in dumps(run.to_dict()) + str(run) + run._repr_html_()


def test_tasks_that_run_in_parallel_stand_under_their_attempt(opened: Any) -> None:
    semcache = opened()
    tasks = [{"id": f"task{n}", "service": "count_visits", "input": {"town": "$task0.town"}}
             for n in range(1, 5)]  # fmt: skip
    store(semcache, {"tasks": [{"id": "task0", "input": {"town": "Oslo"}}, *tasks]})
    run = semcache.run("yearly visits to Bergen", params={"town": "Bergen"}).run
    (execute,) = run.named("execute")
    assert sorted(execute.children[key].name for key in execute.children) == [
        "task0", "task1", "task2", "task3", "task4",
    ]  # fmt: skip
    assert {n.output for n in run if n.kind == "operation"} == {6}


# specs: B-12
def test_agents_as_operations_nest_three_deep_in_one_tree(opened: Any) -> None:
    innermost = opened()
    store(innermost)

    def agent(below: SemCache) -> Any:
        @operation(effect="read", name="count_visits")
        def ask(town: str) -> int:
            """Count the visits to a town by asking another."""
            value: Any = below.run(f"yearly visits to {town}", params={"town": town}).value
            return int(value["answer"] if isinstance(value, dict) else value)

        return ask

    middle = opened(agent(innermost))
    store(middle)
    outermost = opened(agent(middle))
    store(outermost)
    answer = outermost.run("yearly visits to Bergen", params={"town": "Bergen"})
    assert answer.value["answer"] == 6
    runs = [n for n in answer.run if n.kind == "run"]
    assert [n.depth for n in runs] == [0, 3, 6]
    assert [n.parent.name for n in runs[1:]] == ["count", "count"]
    assert innermost.runs.latest() is None
    assert answer.run.nodes()[-1].status == "completed"


def test_an_observer_hears_of_every_node_and_breaks_nothing_when_it_raises(
    opened: Any, caplog: pytest.LogCaptureFixture
) -> None:
    heard = RecordingObserver()

    def observe(event: Any) -> None:
        heard(event)
        raise RuntimeError("the dashboard is down")

    semcache = opened(observer=observe)
    store(semcache)
    run = semcache.run("yearly visits to Bergen", params={"town": "Bergen"}).run
    assert {e.id for e in heard.of(NodeOpened)} == {e.id for e in heard.of(NodeClosed)}
    assert {e.id for e in heard.of(NodeOpened)} <= {n.id for n in run}
    assert len(heard.of(NodeFinished)) == 3
    assert len([r for r in caplog.records if "the observer raised" in r.message]) == 1


def test_an_agent_that_asks_itself_is_stopped(opened: Any) -> None:
    @operation(effect="read", name="count_visits")
    def again(town: str) -> int:
        """Ask itself."""
        semcache.run("yearly visits to Bergen", params={"town": town})
        return 1

    semcache = opened(again)
    store(semcache)
    with pytest.raises(OperationFailed, match="as deep as they may"):
        semcache.run("yearly visits to Bergen", params={"town": "Bergen"})
    run = semcache.runs.latest()
    assert len([n for n in run if n.kind == "run"]) == 8


def test_runs_of_async_callers_stand_where_they_were_asked(opened: Any) -> None:
    semcache = opened()
    store(semcache)

    async def main() -> None:
        with semcache.open_run("all towns"):
            async with AsyncSemCache(semcache) as door:
                await asyncio.gather(*(
                    door.run(f"yearly visits to {town}", params={"town": town})
                    for town in ("Bergen", "Trondheim", "Hamar")
                ))  # fmt: skip

    asyncio.run(main())
    run = semcache.runs.latest()
    assert run.root.name == "all towns"
    assert sorted(n.name for n in run.root.children.values()) == [
        "yearly visits to Bergen", "yearly visits to Hamar", "yearly visits to Trondheim",
    ]  # fmt: skip
