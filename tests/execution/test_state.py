"""Where a program stands: resuming, branching, comparing."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from semcache import Catalog
from semcache.canonical import dumps, loads
from semcache.errors import InvalidInput, OperationFailed, StepLimitExceeded
from semcache.execution.program import ProgramEngine
from semcache.execution.state import State, difference
from semcache.plans.program import ProgramPlan
from semcache.ports import Outcome
from semcache.testing import ScriptedModel
from tests.executing import executed
from tests.plans.programs import step

Run = Callable[..., Outcome]
YES, NO = '{"result": true}', '{"result": false}'


def program(*, last: str = "${n}", tool: str = "echo") -> ProgramPlan:
    return ProgramPlan.from_dict([
        step(0, "assign", n=0),
        step(1, "assign", n="${n} + 1"),
        step(2, "jmp", condition_prompt="More than ${n}?", jump_if_true=1, jump_if_false=3),
        step(3, "calling", tool_name=tool, tool_params={"n": "${n}"}, output_vars=["said"]),
        step(4, "assign", final_answer=last),
    ])  # fmt: skip


@pytest.fixture
def run(catalog: Catalog) -> Run:
    def execute(plan: ProgramPlan, *replies: str, max_steps: int = 100, **options: Any) -> Outcome:
        return executed(
            ProgramEngine(ScriptedModel(replies)), plan, catalog, max_steps=max_steps, **options
        )

    return execute


def states_of(run: Run, plan: ProgramPlan) -> list[State]:
    states: list[State] = []
    run(plan, YES, NO, sink=states.append)
    return states


# specs: C-10
def test_the_state_after_each_step_is_handed_out(run: Run) -> None:
    states = states_of(run, program())
    assert [(s.executed, s.following, s.steps) for s in states] == [
        (0, 1, 1), (1, 2, 2), (2, 1, 3), (1, 2, 4), (2, 3, 5), (3, 4, 6), (4, None, 7),
    ]  # fmt: skip
    assert [s.variables["n"] for s in states] == [0, 1, 1, 2, 2, 2, 2]
    assert states[-1].variables["final_answer"] == 2


# specs: C-10
@pytest.mark.parametrize("k", range(6))
def test_a_run_resumed_at_any_step_ends_in_the_same_state(run: Run, k: int) -> None:
    states = states_of(run, program())
    kept = State.from_json(loads(dumps(states[k].to_json())))  # type: ignore[arg-type]  # an object
    assert kept == states[k]
    again: list[State] = []
    replies = [YES, NO][sum(state.executed == 2 for state in states[: k + 1]) :]
    outcome = run(program(), *replies, state=kept, sink=again.append)
    assert again == states[k + 1 :]
    assert outcome.value == 2


# specs: C-10
def test_a_difference_tells_what_was_set_and_changed(run: Run) -> None:
    states = states_of(run, program())
    found = difference(states[1], states[5])
    assert (found.added, found.removed) == ({"said": {"n": 2}}, {})
    assert (found.changed, found.following, found.plan) == ({"n": (1, 2)}, (2, 4), False)
    edited = program(last="x")
    back = difference(states[5].branched(edited), states[1])
    assert (back.removed, back.plan) == ({"said": {"n": 2}}, True)


# specs: C-11
def test_a_failed_step_is_recorded_and_can_be_tried_again(run: Run) -> None:
    states: list[State] = []
    broken = program(tool="fail")
    with pytest.raises(OperationFailed):
        run(broken, NO, sink=states.append)
    assert states[-1].error == "OperationFailed: operation 'fail' failed: LookupError: no such row"
    assert (states[-1].executed, states[-1].following) == (2, 3)
    assert states[-1].variables == states[-2].variables == {"n": 1}
    mended = program()
    assert run(mended, state=states[-1].branched(mended)).value == 1


def test_steps_made_before_count_towards_the_budget(run: Run) -> None:
    states = states_of(run, program())
    with pytest.raises(StepLimitExceeded):
        run(program(), state=states[4], max_steps=6)


def test_a_state_of_another_plan_is_refused(run: Run) -> None:
    states = states_of(run, program())
    with pytest.raises(InvalidInput, match="belongs to another plan"):
        run(program(last="x"), state=states[0])
    with pytest.raises(InvalidInput, match="nothing is left to resume"):
        run(program(), state=states[-1])
    with pytest.raises(InvalidInput, match="goes on at 77"):
        run(program(), state=replace(states[0], following=77))
    with pytest.raises(InvalidInput, match="has no instruction 3"):
        states[4].branched(ProgramPlan.from_dict([step(0, "assign", result=1)]))


@pytest.mark.parametrize("record", [{}, {"plan": 1}, {"plan": {1}}])
def test_what_is_no_state_is_refused(record: Any) -> None:
    with pytest.raises(InvalidInput):
        State.from_json(record)
