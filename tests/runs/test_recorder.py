import threading
from typing import Any

import pytest

from semcache.errors import InvalidSettings
from semcache.runs.recorder import Runs
from semcache.runs.run_context import node


def test_the_trees_that_began_longest_ago_make_room(make_desk: Any) -> None:
    desk = make_desk(max_trees=2)
    for name in "abc":
        with desk.run(name):
            pass
    assert [run.root.name for run in desk.runs.list()] == ["c", "b"]


def test_a_tree_that_runs_stays_while_finished_ones_can_go(make_desk: Any) -> None:
    desk = make_desk(max_trees=2)
    with desk.run("long", tenant="acme"):
        for name in "abc":
            with desk.run(name):
                pass
    assert desk.runs.latest(tenant="acme").root.name == "long"
    assert [run.root.name for run in desk.runs.list()] == ["c"]


def test_clearing_forgets_one_tenant(desk: Any) -> None:
    for tenant in ("acme", "initech"):
        with desk.run("work", tenant=tenant) as opened:
            pass
    assert desk.runs.get(opened.id, tenant="acme") is None
    assert desk.runs.tree(opened.id, tenant="acme") is None
    assert desk.runs.clear(tenant="acme") == 1
    assert desk.runs.latest(tenant="acme") is None
    assert desk.runs.latest(tenant="initech") is not None


def test_runs_of_many_threads_do_not_mix(make_desk: Any) -> None:
    desk = make_desk(max_trees=1000)

    def work(number: int) -> None:
        for turn in range(20):
            with desk.run(f"{number}/{turn}"), node(f"step {number}/{turn}"):
                pass

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    runs = desk.runs.list()
    assert len(runs) == 160
    assert all([n.name for n in run] == [run.root.name, f"step {run.root.name}"] for run in runs)


@pytest.mark.parametrize("bounds", [{"max_trees": 0}, {"max_nodes": 0}])
def test_bounds_of_nothing_are_refused(bounds: Any) -> None:
    with pytest.raises(InvalidSettings, match="expected 1 or more"):
        Runs(**bounds)
