"""Runs, agents and revisions that are made while a program runs."""

import asyncio
from typing import Any

import pytest

from semcache import Catalog, SemCache
from semcache.errors import InvalidInput, NotInRun
from semcache.events import NodeClosed, NodeRevised
from semcache.runs.creation import agent, revise, workflow
from semcache.runs.reflection import Prompt, Reflection
from semcache.runs.run_context import here, node
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel


# specs: U7
def test_an_async_workflow_ends_when_its_work_does(desk: Any) -> None:
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        with node("inside"):
            return number + 1

    made = workflow("later", work, runs=desk.runs, clock=desk.clock)
    assert asyncio.run(made(1)) == 2
    run = desk.runs.latest()
    assert [(n.name, n.status, n.output) for n in run] == [
        ("later", "completed", 2), ("inside", "completed", None),
    ]  # fmt: skip


# specs: U7
def test_an_async_revision_replaces_the_last_result_when_it_is_there(desk: Any) -> None:
    async def better() -> str:
        await asyncio.sleep(0)
        return "better"

    async def main() -> str:
        draft("bad")
        return await revise(better)

    with desk.run("top"):
        assert asyncio.run(main()) == "better"
    assert [(n.name, n.status) for n in desk.runs.latest()][1:] == [
        ("draft", "revised"), ("revision:draft", "completed"),
    ]  # fmt: skip


# specs: U7
def test_an_agent_that_is_asked_by_a_coroutine_answers_a_plan() -> None:
    async def ask(prompt: str) -> str:
        await asyncio.sleep(0)
        return prompt.upper()

    catalog = Catalog([agent("towns", "Names towns.", ask)])
    plan: dict[str, Any] = {
        "start_node": {"route": "one"},
        "one": {"operation": "towns", "input": {"prompt": "oslo"}, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.one"}},
    }
    with SemCache.open(catalog=catalog, embedder=HashEmbedder(), clock=FakeClock()) as semcache:
        assert semcache.execute(plan).text == "OSLO"


# specs: B-12
def test_agents_and_prompts_made_on_the_way_stand_where_they_were_made(desk: Any) -> None:
    clock, heard = FakeClock(), RecordingObserver()
    model = ScriptedModel(["Oslo", "Bergen"])

    def ask(prompt: str) -> str:
        made = Prompt("Name a town.", {"like": prompt})
        return Reflection(clock=clock).ask(made, model, read=str, name="name a town")

    towns = agent("towns", "Names towns.", ask)
    plan: dict[str, Any] = {
        "start_node": {"route": "one"},
        "one": {"operation": "towns", "input": {"prompt": "a port"}, "route": "end"},
        "end": {"completed": True, "vars": {"answer": "$.one"}},
    }
    with SemCache.open(
        catalog=Catalog([towns]), embedder=HashEmbedder(), clock=clock, observer=heard
    ) as semcache:
        semcache.cache.store("find a port", plan)
        trip = semcache.workflow("trip", lambda: semcache.run("find a port").value)
        assert trip() == {"answer": "Oslo"}
        run = semcache.runs.latest()
    assert run is not None
    path = [n.name for n in run if n.name in {"trip", "find a port", "one", "name a town"}]
    assert path == ["trip", "find a port", "one", "name a town"]
    (call,) = [n for n in run if n.kind == "model"]
    assert call.parent is not None
    assert call.parent.name == "name a town"
    assert run.root is not None
    assert run.root.model_calls == 1
    assert {e.id for e in heard.of(NodeClosed)} <= {n.id for n in run}
    assert here() is None


def draft(text: str) -> str:
    with node("draft") as opened:
        opened.gave(text)
    return text


# specs: B-12
def test_the_last_result_is_replaced_by_a_sibling_and_the_tree_does_not_fork(desk: Any) -> None:
    heard = RecordingObserver()

    def emit(event: Any) -> None:
        desk.runs(event)
        heard(event)

    with desk.run("top", emit=emit):
        draft("first")
        draft("second")
        assert revise(lambda: "better") == "better"
    run = desk.runs.latest()
    assert [(n.name, n.status, n.parent and n.parent.name) for n in run] == [
        ("top", "completed", None),
        ("draft", "completed", "top"),
        ("draft", "revised", "top"),
        ("revision:draft", "completed", "top"),
    ]
    old, new = run.nodes()[2:]
    assert (old.notes["revised_by"], new.output) == (new.id, "better")
    assert [(e.id, e.by) for e in heard.of(NodeRevised)] == [(old.id, new.id)]
    assert "↻ draft" in str(run)


# specs: B-12
def test_a_revision_can_be_revised_and_one_that_fails_leaves_the_old_result(desk: Any) -> None:
    def fail() -> None:
        raise ValueError("no idea")

    with desk.run("top"):
        draft("first")
        revise(lambda: "second")
        revise(lambda: "third")
        with pytest.raises(ValueError, match="no idea"):
            revise(fail)
    assert [(n.name, n.status) for n in desk.runs.latest().nodes()[1:]] == [
        ("draft", "revised"), ("revision:draft", "revised"),
        ("revision:revision:draft", "completed"),
        ("revision:revision:revision:draft", "failed"),
    ]  # fmt: skip


def test_without_a_run_or_a_result_there_is_nothing_to_revise(desk: Any) -> None:
    with pytest.raises(NotInRun):
        revise(lambda: 1)
    with desk.run("top"), pytest.raises(InvalidInput, match="no completed child"):
        revise(lambda: 1)
