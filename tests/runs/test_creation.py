from typing import Any

import pytest

from semcache import SemCache
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidInput
from semcache.events import NodeClosed
from semcache.reflection import Prompt, Reflection
from semcache.runs.creation import agent, workflow
from semcache.runs.here import here
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver, ScriptedModel


# specs: B-12
def test_workflows_that_make_workflows_nest_three_deep_in_one_tree(desk: Any) -> None:
    def make(level: int) -> Any:
        def work() -> str:
            return make(level - 1)() if level else "done"

        return workflow(f"level {level}", work, runs=desk.runs, clock=desk.clock)

    assert make(3)() == "done"
    run = desk.runs.latest()
    assert [(n.name, n.depth, n.output) for n in run] == [
        (f"level {3 - depth}", depth, "done") for depth in range(4)
    ]


def test_workflows_that_make_themselves_for_ever_are_stopped(desk: Any) -> None:
    def again() -> None:
        workflow("again", again, runs=desk.runs, clock=desk.clock)()

    with pytest.raises(InvalidInput, match="as deep as they may"):
        again()
    assert len(desk.runs.latest().nodes()) == 8


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
