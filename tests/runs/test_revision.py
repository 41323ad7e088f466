from typing import Any

import pytest

from semcache.errors import InvalidInput, NotInRun
from semcache.events import NodeRevised
from semcache.runs.here import node
from semcache.runs.revision import revise
from semcache.testing import RecordingObserver


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
def test_a_revision_can_be_revised(desk: Any) -> None:
    with desk.run("top"):
        draft("first")
        revise(lambda: "second")
        revise(lambda: "third")
    assert [(n.name, n.status) for n in desk.runs.latest().nodes()[1:]] == [
        ("draft", "revised"), ("revision:draft", "revised"),
        ("revision:revision:draft", "completed"),
    ]  # fmt: skip


def test_a_revision_that_fails_leaves_the_old_result(desk: Any) -> None:
    def fail() -> None:
        raise ValueError("no idea")

    with desk.run("top"):
        draft("first")
        with pytest.raises(ValueError, match="no idea"):
            revise(fail)
    assert [(n.name, n.status) for n in desk.runs.latest().nodes()[1:]] == [
        ("draft", "completed"), ("revision:draft", "failed"),
    ]  # fmt: skip


def test_without_a_run_or_a_result_there_is_nothing_to_revise(desk: Any) -> None:
    with pytest.raises(NotInRun):
        revise(lambda: 1)
    with desk.run("top"), pytest.raises(InvalidInput, match="no completed child"):
        revise(lambda: 1)
