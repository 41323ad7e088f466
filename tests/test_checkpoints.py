"""Where the programs of runs stood: kept, listed, gone on from and branched."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from semcache import Catalog, Operation, SemCache
from semcache.canonical import JsonObject
from semcache.commands.cli import main
from semcache.errors import InvalidInput, OperationFailed
from semcache.execution.state import difference
from semcache.testing import FakeClock, HashEmbedder
from tests.plans.programs import step


class Shop:
    """A program over an operation that may be out of order."""

    def __init__(self, directory: Path | None = None, now: float = 0.0) -> None:
        self.calls: list[str] = []
        self.broken = False
        schema: JsonObject = {"type": "object"}
        names = ("price", "tax")
        catalog = Catalog(
            Operation(name, "", schema, effect="read", call=self.call(name)) for name in names
        )
        self.semcache = SemCache.open(
            directory, catalog=catalog, embedder=HashEmbedder(), clock=FakeClock(now)
        )
        self.semcache.cache.store("price of tea with tax", {"instructions": list(PROGRAM)})

    def call(self, name: str) -> Any:
        def called(given: JsonObject) -> int:
            if self.broken and name == "tax":
                raise RuntimeError("out of order")
            self.calls.append(name)
            return 10 if name == "price" else 2

        return called


def calling(seq: int, name: str, variable: str) -> JsonObject:
    return step(seq, "calling", tool_name=name, tool_params={}, output_vars=[variable])


PROGRAM = (
    calling(0, "price", "p"),
    step(1, "assign", double="${p} * 2"),
    calling(2, "tax", "t"),
    step(3, "assign", final_answer="${double} + ${t}"),
)


@pytest.fixture
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.semcache.close()


# specs: C-10, C-11
def test_a_checkpoint_is_kept_after_each_step_and_a_failed_one_tells_its_error(shop: Shop) -> None:
    shop.broken = True
    with pytest.raises(OperationFailed):
        shop.semcache.run("price of tea with tax")
    run = shop.semcache.runs.latest()
    assert run is not None
    states = shop.semcache.checkpoints(run.id)
    assert [(s.steps, s.following, bool(s.error)) for s in states] == [
        (1, 1, False), (2, 2, False), (2, 2, True),
    ]  # fmt: skip
    assert "out of order" in states[-1].error
    assert shop.semcache.checkpoints(run.id, tenant="other") == ()


# specs: C-10
def test_a_run_that_failed_goes_on_where_it_stood(shop: Shop) -> None:
    shop.broken = True
    with pytest.raises(OperationFailed):
        shop.semcache.run("price of tea with tax")
    shop.broken = False
    run = shop.semcache.runs.latest()
    assert run is not None
    assert shop.semcache.resume(run.id).value == 22
    assert shop.calls == ["price", "tax"]


# specs: C-10
def test_a_branch_with_an_edited_plan_leaves_the_first_run_as_it_was(shop: Shop) -> None:
    answer = shop.semcache.run("price of tea with tax")
    run = answer.run.id
    before = shop.semcache.checkpoints(run)
    edited = [*PROGRAM[:3], step(3, "assign", final_answer="${double} - ${t}")]
    assert shop.semcache.resume(run, checkpoint=1, plan={"instructions": edited}).value == 18
    assert answer.value == 22
    assert shop.semcache.checkpoints(run) == before
    changed = difference(before[0], before[1])
    assert changed.added == {"double": 20}
    assert shop.calls == ["price", "tax", "tax"]


@pytest.mark.parametrize(("run", "checkpoint"), [("none", -1), ("", 9), ("", -1)])
def test_what_cannot_be_gone_on_from_is_told(shop: Shop, run: str, checkpoint: int) -> None:
    known = shop.semcache.run("price of tea with tax").run.id
    with pytest.raises(InvalidInput):
        shop.semcache.resume(run or known, checkpoint=checkpoint)


# specs: C-10
def test_the_command_lists_the_checkpoints_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = Shop(tmp_path, time.time())  # the command reads the clock of the machine
    run = made.semcache.run("price of tea with tax").run.id
    made.semcache.close()
    where = ["--directory", str(tmp_path)]
    assert main(["plan", "checkpoints", run, *where]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].split()[:3] == ["1", "after", "1"]
    assert main(["plan", "checkpoints", run, "--json", *where]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoints"][3]["variables"]["final_answer"] == 22
    assert main(["plan", "checkpoints", "none", *where]) == 2
