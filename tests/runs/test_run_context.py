import asyncio
from typing import Any

import pytest

from semcache.runs.run_context import here, node, run_id


def names(run: Any) -> list[tuple[str, str | None]]:
    return [(n.name, n.parent.name if n.parent else None) for n in run.nodes()]


def test_outside_a_run_nothing_is_told_and_nothing_fails(desk: Any) -> None:
    with node("alone") as opened:
        opened.note(tier="template")
        opened.gave(1)
        opened.wrote("pay")
    assert (here(), run_id(), opened.id) == (None, "", "")
    assert desk.runs.latest() is None


def test_a_node_keeps_when_it_began_how_long_it_took_and_what_went_in_and_out(desk: Any) -> None:
    began = desk.clock.now()
    with desk.run("top"), node("sum", "operation", given={"of": [1, 2]}) as opened:
        desk.clock.advance(2)
        opened.gave(3)
        opened.note(effect="read")
    found = desk.runs.latest().named("sum")[0]
    assert (found.started_s, found.seconds, found.status) == (began, 2, "completed")
    assert (found.input, found.output, found.notes) == ({"of": [1, 2]}, 3, {"effect": "read"})


def test_what_a_node_raises_passes_and_makes_it_failed_and_those_above_too(desk: Any) -> None:
    with pytest.raises(ValueError, match="no such town"), desk.run("top"), node("plan"):
        raise ValueError("no such town")
    assert [(n.status, n.error) for n in desk.runs.latest()] == [
        ("failed", "ValueError: no such town")
    ] * 2


def test_what_is_interrupted_is_cancelled(desk: Any) -> None:
    with pytest.raises(KeyboardInterrupt), desk.run("top"):
        raise KeyboardInterrupt
    assert desk.runs.latest().root.status == "cancelled"


def test_tasks_of_a_loop_stand_where_they_were_started(desk: Any) -> None:
    async def part(number: int) -> None:
        with node(f"part {number}"):
            await asyncio.sleep(0)
            with node(f"inner {number}"):
                await asyncio.sleep(0)

    async def main() -> None:
        with desk.run("top"):
            await asyncio.gather(*(part(n) for n in range(3)))

    asyncio.run(main())
    assert set(names(desk.runs.latest())) == {
        ("top", None),
        *((f"part {n}", "top") for n in range(3)),
        *((f"inner {n}", f"part {n}") for n in range(3)),
    }


def test_a_run_inside_a_run_of_the_tenant_stands_in_its_tree(desk: Any) -> None:
    with desk.run("outer") as outer, node("call"), desk.run("inner") as inner:
        standing = here()
        assert standing is not None
        assert (run_id(), standing.runs) == (inner.id, 2)
    assert names(desk.runs.latest()) == [("outer", None), ("call", "outer"), ("inner", "call")]
    assert desk.runs.get(inner.id).root.parent.name == "call"
    assert outer.id != inner.id


def test_a_run_for_another_tenant_has_a_tree_of_its_own(desk: Any) -> None:
    with desk.run("outer", tenant="acme"), desk.run("inner", tenant="initech") as inner:
        pass
    assert names(desk.runs.latest(tenant="acme")) == [("outer", None)]
    assert names(desk.runs.latest(tenant="initech")) == [("inner", None)]
    assert desk.runs.get(inner.id, tenant="acme") is None


def test_an_attempt_knows_what_was_written_in_it_and_not_in_another(desk: Any) -> None:
    with desk.run("top"):
        with node("execute", "attempt") as first, node("pay", "operation") as pay:
            pay.wrote("pay")
        with node("execute (retry 1)", "attempt") as second:
            pass
    assert first.here is not None
    assert second.here is not None
    assert (first.here.writes, second.here.writes) == (["pay"], [])
