"""The engine of the program format."""

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.errors import (
    ExecutionError,
    ExpressionError,
    InvalidPlan,
    ModelUnavailable,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
    StepLimitExceeded,
)
from semcache.events import ModelCalled, NodeFinished
from semcache.execution.program import ProgramEngine
from semcache.plans.codec import decode
from semcache.plans.program import ProgramPlan
from semcache.ports import Outcome
from semcache.testing import FakeClock, RecordingObserver, ScriptedModel
from tests.executing import executed
from tests.plans.programs import step

Run = Callable[..., Outcome]


def says(result: Json) -> str:
    return json.dumps({"result": result, "explanation": "because"})


@pytest.fixture
def run(catalog: Catalog, clock: FakeClock, observer: RecordingObserver) -> Run:
    """Run a program, given as its steps or as a plan, and return its outcome."""

    def execute(
        *steps: Any, model: Any = None, engine: Any = None, extra: Any = (), **options: Any
    ) -> Outcome:
        plan = steps[0] if isinstance(steps[0], ProgramPlan) else ProgramPlan.from_dict(steps)
        return executed(
            engine or ProgramEngine(model),
            plan,
            Catalog([*catalog, *extra]),
            clock=clock,
            observer=observer,
            run="run-1",
            **options,
        )

    return execute


def retrievals(calls: list[JsonObject]) -> list[Operation]:
    """Return what the document's example calls, as operations that note their inputs."""
    schema: JsonObject = {"type": "object", "required": ["query"]}

    def find(given: JsonObject) -> Json:
        calls.append(given)
        return [{"text": f"about {given['query']}"}]

    def ask(given: JsonObject) -> Json:
        calls.append(given)
        return {"nodes": [given["query"]], "relationships": []}

    return [
        Operation("vector_search", "Search.", schema, effect="read", call=find),
        Operation("retrieve_knowledge_graph", "Ask.", schema, effect="read", call=ask),
    ]


# specs: C-1
def test_what_the_model_is_asked_has_the_variables_as_text(run: Run, tidb: str) -> None:
    model = ScriptedModel(["v8.1", says(True), "Use indexes."])
    run(decode(tidb), model=model, extra=retrievals([]))
    asked = [call[-1].content for call in model.calls]
    assert '{"nodes":["TiDB latest stable version"],"relationships":[]}' in asked[0]
    assert asked[1].endswith("\n\nContext:\nLatest TiDB version: v8.1")
    assert "rely" not in asked[0]
    assert model.calls[1][0].role == "system"


# specs: C-3
def test_the_first_dialect_keeps_types_by_var_and_makes_text_of_braces(run: Run) -> None:
    outcome = run(
        step(0, "assign", value=42, var_name="number"),
        step(1, "assign", value=[{"var": "number"}, "{{number}}", "n={{number}}"],
             var_name="final_answer"),
    )  # fmt: skip
    assert outcome.value == [42, "42", "n=42"]
    assert outcome.nodes[0].output == 42


# specs: C-6
def test_the_second_dialect_reads_fields_and_keeps_types(run: Run) -> None:
    outcome = run(
        step(1, "calling", tool_name="echo", tool_params={"b": {"c": [1, None]}},
             output_vars=["a"]),
        step(2, "assign", whole="${a.b}", text="c is ${a.b.c}", deep=[{"x": "${a.b.c}"}]),
        step(3, "assign", final_answer=["${whole}", "${text}", "${deep}"]),
    )  # fmt: skip
    assert outcome.value == [{"c": [1, None]}, "c is [1,null]", [{"x": [1, None]}]]


# specs: C-6
def test_arithmetic_is_done_where_it_is_written(run: Run) -> None:
    outcome = run(
        step(1, "assign", x=10, y=2024, m=10),
        step(2, "assign", r="${x} / 2 + 1", day="2024-10-15", made="${y}-${m}-15", sum="3+4"),
        step(3, "assign", final_answer=["${r}", "${day}", "${made}", "${sum}"]),
    )
    assert outcome.value == [6, "2024-10-15", "2024-10-15", "3+4"]


def test_values_of_one_assign_are_read_as_they_were_before(run: Run) -> None:
    outcome = run(
        step(0, "assign", x=1, y=2),
        step(1, "assign", x="${y}", y="${x}"),
        step(2, "assign", final_answer=["${x}", "${y}"]),
    )
    assert outcome.value == [2, 1]


def test_a_variable_without_a_value_yet_is_null_and_its_references_stay_text(run: Run) -> None:
    outcome = run(
        step(0, "jmp", target_seq=2),
        step(1, "assign", x=1),
        step(2, "assign", final_answer=["${x}", "a {{x}}", {"var": "x"}]),
    )
    assert outcome.value == ["${x}", "a {{x}}", None]


def test_a_missing_field_is_an_error_that_names_the_instruction(run: Run) -> None:
    with pytest.raises(ExpressionError, match=r"instruction 1: .*'b'; it has 'a'") as raised:
        run(step(0, "assign", x={"a": 1}), step(1, "assign", final_answer="${x.b}"))
    assert raised.value.node == "1"


# specs: C-4
@pytest.mark.parametrize("reply", ['{"result": "true"}', "Yes.", '{"answer": true}', ""])
def test_a_condition_without_a_boolean_fails_at_its_instruction(run: Run, reply: str) -> None:
    with pytest.raises(ExecutionError, match="instruction 0: ") as raised:
        run(
            step(0, "jmp_if", condition_prompt="Late?", jump_if_true=1, jump_if_false=1),
            step(1, "assign", result=1),
            model=ScriptedModel([reply]),
        )
    assert raised.value.node == "0"


# specs: C-7
def test_a_loop_runs_its_body_afresh_until_its_condition_fails(run: Run) -> None:
    model = ScriptedModel([says(True), says(True), says(False)])
    outcome = run(
        step(0, "assign", n=0),
        step(1, "assign", n="${n} + 1"),
        step(2, "calling", tool_name="note", tool_params={"n": "${n}"}, output_vars=["noted"]),
        step(3, "jmp", condition_prompt="Go on after ${n}?", jump_if_true=1, jump_if_false=4),
        step(4, "assign", final_answer=["${n}", "${noted.noted}"]),
        model=model,
    )
    assert outcome.value == [3, 3]
    assert [n.node for n in outcome.nodes] == [*"0123123123", "4"]
    assert [call[-1].content for call in model.calls] == [f"Go on after {n}?" for n in (1, 2, 3)]


# specs: C-7
def test_a_loop_that_does_not_end_is_stopped_by_the_step_budget(run: Run) -> None:
    with pytest.raises(StepLimitExceeded, match="took 1000 steps and set no 'final_answer'"):
        run(
            step(0, "assign", n=0),
            step(1, "assign", n="${n} + 1"),
            step(2, "jmp", target_seq=1),
            step(3, "assign", final_answer=1),
            max_steps=1000,
        )


def test_a_text_that_doubles_is_stopped_by_the_output_bound(run: Run) -> None:
    with pytest.raises(OutputTooLarge):
        run(
            step(0, "assign", x="xx"),
            step(1, "assign", x="${x}${x}"),
            step(2, "jmp", target_seq=1),
            step(3, "assign", final_answer=1),
            max_output_bytes=10_000,
        )


# specs: C-8
@pytest.mark.parametrize(
    "reply", ['{"a": 1, "b": [2]}', 'Here:\n```json\n{"a": 1, "b": [2], "c": 3}\n```']
)
def test_several_outputs_are_taken_from_the_json_in_a_text(run: Run, reply: str) -> None:
    model = ScriptedModel([reply])
    outcome = run(
        step(0, "calling", tool_name="llm_generate", tool_params={"prompt": "Count.", "stream": 1},
             output_vars=["a", "b"]),
        step(1, "assign", final_answer=["${a}", "${b}"]),
        model=model,
    )  # fmt: skip
    assert outcome.value == [1, [2]]
    assert model.calls[0][0].content.endswith("Its keys: a, b.")


# specs: C-8
def test_several_outputs_are_taken_from_an_object(run: Run) -> None:
    outcome = run(
        step(0, "calling", tool_name="echo", tool_params={"a": 1, "b": {"c": 2}},
             output_vars=["a", "b"]),
        step(1, "assign", final_answer="${b.c}"),
    )  # fmt: skip
    assert outcome.value == 2


# specs: C-8
@pytest.mark.parametrize("tool", ["echo", "nothing"])
def test_an_output_that_is_not_there_is_a_failure(run: Run, tool: str) -> None:
    with pytest.raises(ExecutionError, match="instruction 0: expected an object with 'a', 'b'"):
        run(
            step(0, "calling", tool_name=tool, tool_params={"a": 1}, output_vars=["a", "b"]),
            step(1, "assign", final_answer=1),
        )


# specs: C-8
def test_parameters_that_an_operation_does_not_know_are_refused(run: Run) -> None:
    schema: JsonObject = {"type": "object", "properties": {}, "additionalProperties": False}
    narrow = Operation("narrow", "Narrow.", schema, effect="read", call=lambda _: 1)
    with pytest.raises(OperationRefused, match="'more' was unexpected"):
        run(
            step(0, "calling", tool_name="narrow", tool_params={"more": 1}),
            step(1, "assign", final_answer=1),
            extra=[narrow],
        )


def test_top_k_is_five_or_left_out_as_the_operation_takes_it(run: Run) -> None:
    calls: list[JsonObject] = []
    find, ask = retrievals(calls)
    narrow: JsonObject = {"properties": {"query": {}}, "additionalProperties": False}
    run(
        step(0, "vector_search", vector_search="x", output_var="a"),
        step(1, "retrieve_knowledge_graph", vector_search="y", top_k=3, output_var="b"),
        step(2, "assign", final_answer=1),
        extra=[find, Operation(ask.name, "Ask.", narrow, effect="read", call=ask.call)],
        engine=ProgramEngine(workers=1),
    )
    assert calls == [{"query": "x", "top_k": 5}, {"query": "y"}]


# specs: C-9
def test_only_the_exact_name_ends_a_run(run: Run) -> None:
    outcome = run(
        step(0, "assign", a=1, n=1, answer=1, final=1, result=1),
        step(1, "assign", final_answer="yes"),
        step(2, "calling", tool_name="fail", tool_params={}),
    )
    assert (outcome.value, len(outcome.nodes)) == ("yes", 2)


# specs: C-9
def test_a_program_may_be_told_to_end_on_another_name(run: Run) -> None:
    steps = [step(0, "assign", final_answer=1), step(1, "assign", summary=2)]
    outcome = run(*steps, engine=ProgramEngine(goals=["summary"]))
    assert outcome.value == 2


# specs: C-9
def test_a_program_that_ends_without_its_answer_fails(run: Run) -> None:
    with pytest.raises(ExecutionError, match="ended after 2 and never set 'result'"):
        run(
            step(0, "jmp", target_seq=2),
            step(1, "assign", result=1),
            step(2, "reasoning"),
        )


# specs: C-13
def test_calls_that_need_nothing_of_each_other_run_at_the_same_time(run: Run) -> None:
    together = threading.Barrier(3, timeout=10)

    def meet(given: JsonObject) -> Json:
        together.wait()
        return given["n"]

    steps = [
        step(i, "calling", tool_name="meet", tool_params={"n": i}, output_vars=[f"x{i}"])
        for i in range(3)
    ]
    meeting = Operation("meet", "Meet.", {}, effect="read", call=meet)
    outcome = run(*steps, step(3, "assign", final_answer="${x0}${x1}${x2}"), extra=[meeting])
    assert outcome.value == "012"
    assert [n.node for n in outcome.nodes] == ["0", "1", "2", "3"]


def test_a_call_waits_for_the_variables_that_it_reads(run: Run) -> None:
    outcome = run(
        step(0, "calling", tool_name="echo", tool_params={"n": 1}, output_vars=["x"]),
        step(1, "calling", tool_name="echo", tool_params={"n": "${x.n}"}, output_vars=["y"]),
        step(2, "calling", tool_name="echo", tool_params={"n": 3}, output_vars=["x"]),
        step(3, "assign", final_answer=["${x.n}", "${y.n}"]),
    )
    assert outcome.value == [3, 1]


def test_a_write_waits_until_the_calls_before_it_have_succeeded(
    run: Run, calls: list[JsonObject]
) -> None:
    with pytest.raises(OperationFailed):
        run(
            step(0, "calling", tool_name="fail", tool_params={}, output_vars=["x"]),
            step(1, "calling", tool_name="write", tool_params={}, output_vars=["y"]),
            step(2, "assign", final_answer=1),
        )
    assert calls == []


def test_no_call_is_started_beyond_the_one_that_ends_the_run(
    run: Run, calls: list[JsonObject]
) -> None:
    run(
        step(0, "calling", tool_name="echo", tool_params={"n": 1}, output_vars=["final_answer"]),
        step(1, "calling", tool_name="note", tool_params={}, output_vars=["y"]),
    )
    assert calls == []


def test_calls_of_the_model_are_reported_and_its_failures_are_the_instructions(
    run: Run, observer: RecordingObserver
) -> None:
    ask = step(0, "llm_generate", prompt={"a": 1}, output_var="final_answer")
    assert run(ask, model=ScriptedModel(["hm"])).text == "hm"
    with pytest.raises(OperationFailed, match="overloaded"):
        run(ask, model=ScriptedModel([ModelUnavailable("overloaded")]))
    assert [(e.purpose, e.error) for e in observer.of(ModelCalled)] == [
        ("generate", ""),
        ("generate", "ModelUnavailable"),
    ]


def test_a_program_that_asks_a_model_is_refused_where_there_is_none(run: Run, tidb: str) -> None:
    with pytest.raises(InvalidPlan, match="'jmp_if', which asks a model") as raised:
        run(decode(tidb), extra=retrievals([]))
    assert len(raised.value.findings) == 3


@pytest.mark.parametrize(
    "steps",
    [
        [step(0, "jmp", target_seq=7), step(1, "assign", result=1)],
        [step(0, "assign", x=1)],
        [step(0, "assign", result="${y}")],
        [step(0, "fly"), step(1, "assign", result=1)],
    ],
)
def test_nothing_of_a_broken_program_is_executed(
    run: Run, steps: list[JsonObject], observer: RecordingObserver
) -> None:
    with pytest.raises(InvalidPlan):
        run(*steps)
    assert observer.events == []


@pytest.mark.parametrize("value", ["{{x}}", "${x}", "$.a", "$$x", "2024-10-15", "${x} + 1"])
def test_a_bound_value_stays_what_it_is(run: Run, value: str) -> None:
    whole = ("instructions", 1, "parameters", "final_answer")
    text = ("instructions", 1, "parameters", "note", 4, 4 + len(value))
    steps = [
        step(0, "assign", x=1, n={"var": "x"}),
        step(1, "assign", final_answer=value, note=f"{{{{x}}}}{value}"[1:] + " ${x}"),
    ]
    outcome = run(ProgramPlan.from_dict(steps, frozenset({whole, text})))
    assert outcome.value == value
    assert isinstance(outcome.nodes[1].output, dict)
    assert outcome.nodes[1].output["note"] == "{x}}" + value + " 1"


def test_a_value_of_a_variable_is_never_read_again(run: Run) -> None:
    outcome = run(
        step(0, "calling", tool_name="echo", tool_params={"t": ["{{y}}", {"var": "y"}]},
             output_vars=["x"]),
        step(1, "assign", y="secret"),
        step(2, "assign", final_answer=["${x.t}", "{{x}}"]),
    )  # fmt: skip
    # The parameters are the program's own, and read; what came out of the call is not.
    assert outcome.value == [["{{y}}", None], '{"t":["{{y}}",null]}']


NAMES = st.sampled_from(["x", "y", "final_answer", "z"])
VALUES: st.SearchStrategy[Json] = (
    st.integers(-3, 3)
    | st.sampled_from(
        ["a", "${x}", "{{y}}", "${x} + 1", "${x} ** ${x}", "{{x}}{{y}}", "2024-10-15"]
    )
    | st.builds(lambda name: {"var": name}, NAMES)
)


@st.composite
def programs(draw: st.DrawFn) -> list[JsonObject]:
    count = draw(st.integers(1, 7))
    seqs = st.integers(0, count)
    steps: list[JsonObject] = []
    for seq in range(count):
        match draw(st.sampled_from(["assign", "pairs", "jmp", "call", "cond"])):
            case "assign":
                steps.append(step(seq, "assign", value=draw(VALUES), var_name=draw(NAMES)))
            case "pairs":
                steps.append(
                    step(seq, "assign", **draw(st.dictionaries(NAMES, VALUES, min_size=1)))
                )
            case "jmp":
                steps.append(step(seq, "jmp", target_seq=draw(seqs)))
            case "call":
                given = draw(st.dictionaries(NAMES, VALUES, max_size=2))
                out = draw(st.lists(NAMES, max_size=2, unique=True))
                steps.append(
                    step(seq, "calling", tool_name="echo", tool_params=given, output_vars=out)
                )
            case "cond":
                steps.append(step(seq, "jmp_if", condition_prompt="?", jump_if_true=draw(seqs),
                                  jump_if_false=draw(seqs)))  # fmt: skip
    return [*steps, step(count, "assign", final_answer=draw(VALUES), x=1, y=2, z=3)]


@given(programs(), st.lists(st.booleans(), min_size=40, max_size=40), st.sampled_from([1, 3]))
@settings(max_examples=100)
def test_a_program_ends_well_or_with_a_typed_error_in_bounded_steps(
    steps: list[JsonObject], replies: list[bool], workers: int
) -> None:
    observer = RecordingObserver()
    echo = Operation("echo", "Echo.", {}, effect="read", call=lambda given: given)
    engine = ProgramEngine(ScriptedModel(map(says, replies)), workers=workers)
    try:
        plan = ProgramPlan.from_dict(steps)
        limits = {"max_steps": 40, "max_output_bytes": 10_000}
        outcome = executed(engine, plan, Catalog([echo]), observer=observer, **limits)
    except (ExecutionError, InvalidPlan):
        pass
    else:
        assert len(outcome.nodes) <= 40
    assert len(observer.of(NodeFinished)) <= 41


@given(programs(), st.lists(st.booleans(), min_size=40, max_size=40))
@settings(max_examples=50)
def test_the_results_are_those_of_one_call_after_the_other(
    steps: list[JsonObject], replies: list[bool]
) -> None:
    assert traced(steps, replies, workers=3) == traced(steps, replies, workers=1)


def traced(steps: list[JsonObject], replies: list[bool], *, workers: int) -> Any:
    """Return what a program did, step by step, or the error that it ended with."""
    states: list[Any] = []
    echo = Operation("echo", "Echo.", {}, effect="read", call=lambda given: given)
    try:
        outcome = executed(
            ProgramEngine(ScriptedModel(map(says, replies)), workers=workers),
            ProgramPlan.from_dict(steps),
            Catalog([echo]),
            max_steps=30,
            max_output_bytes=10_000,
            sink=states.append,
        )
    except (ExecutionError, InvalidPlan) as error:
        return str(error), states
    return outcome.value, outcome.nodes, states


def test_what_a_program_sets_is_bounded_together(run: Run) -> None:
    sets = {f"x{i}": "y" * 900 for i in range(9)}
    with pytest.raises(OutputTooLarge, match="over 8,000 bytes"):
        run(step(0, "assign", **sets), step(1, "assign", final_answer="1"), max_output_bytes=1000)


def test_texts_inside_one_value_are_bounded_before_they_are_made(run: Run) -> None:
    steps = [
        step(0, "assign", x="y" * 900),
        step(1, "assign", many=["${x}!"] * 9),
        step(2, "assign", final_answer="1"),
    ]
    with pytest.raises(OutputTooLarge, match="a text grows over 1,000 bytes"):
        run(*steps, max_output_bytes=1000)
