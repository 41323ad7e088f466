from typing import Any

import pytest

from semcache.events import ModelCalled, TokenPrices
from semcache.runs.run_context import node


def call(**more: Any) -> ModelCalled:
    said: dict[str, Any] = {"prompt_tokens": 1000, "completion_tokens": 100, **more}
    return ModelCalled(run="", purpose="plan", model="m", attempt=1, seconds=0.5, **said)


def test_a_tree_of_a_hundred_thousand_nodes_keeps_the_latest_and_counts_the_rest(
    make_desk: Any,
) -> None:
    desk = make_desk(max_nodes=1000)
    with desk.run("top"):
        for batch in range(100):
            with node(f"batch {batch}"):
                for number in range(1000):
                    with node(f"part {number}"):
                        pass
    run = desk.runs.latest()
    assert len(run.nodes()) <= 1000
    assert len(run.nodes()) + sum(n.pruned for n in run) == 1 + 100 + 100_000
    assert run.named("part 999")[-1].parent.name == "batch 99"


def test_nodes_that_run_are_never_pruned(make_desk: Any) -> None:
    desk = make_desk(max_nodes=3)
    with desk.run("top"), node("a"), node("b"), node("c"), node("d"):
        pass
    run = desk.runs.latest()
    assert [n.name for n in run] == ["top", "a", "b"]
    assert sum(n.pruned for n in run) == 2


def test_nodes_deeper_than_64_levels_are_counted_and_not_kept(desk: Any) -> None:
    def dig(levels: int) -> None:
        if levels:
            with node("deeper"):
                dig(levels - 1)

    with desk.run("top"):
        dig(200)
    run = desk.runs.latest()
    assert len(run.nodes()) == 65
    assert sum(n.pruned for n in run) == 136


def test_tokens_and_cost_are_counted_all_the_way_up(make_desk: Any) -> None:
    desk = make_desk(prices=TokenPrices(prompt=2.0, completion=10.0))
    with desk.run("top"), node("plan"):
        desk.runs(call())
        desk.runs(call(cached=True))
    run = desk.runs.latest()
    assert (run.root.prompt_tokens, run.root.completion_tokens) == (1000, 100)
    assert run.root.cost == pytest.approx(0.003)
    assert (run.root.model_calls, len(run.named("model plan"))) == (1, 2)
    assert [n.notes.get("cached", False) for n in run.named("model plan")] == [False, True]


def test_tokens_of_pruned_nodes_still_count(make_desk: Any) -> None:
    desk = make_desk(max_nodes=5)
    with desk.run("top"):
        for _ in range(50):
            desk.runs(call())
    assert desk.runs.latest().root.prompt_tokens == 50_000


def test_a_call_outside_a_run_is_nobodys(desk: Any) -> None:
    desk.runs(call())
    assert desk.runs.latest() is None


def test_the_json_of_a_run_holds_every_node_with_its_parent(desk: Any) -> None:
    with desk.run("top") as top, node("plan"), node("ask"):
        pass
    said = desk.runs.get(top.id).to_dict()
    (plan,) = said["children"]
    (ask,) = plan["children"]
    assert (said["parent"], plan["parent"], ask["parent"]) == (None, top.id, plan["id"])
    assert [x["status"] for x in (said, plan, ask)] == ["completed"] * 3
