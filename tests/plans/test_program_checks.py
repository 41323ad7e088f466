"""What can be wrong with a program, told before it runs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import Json
from semcache.plans.codec import adopt, check, check_values
from semcache.plans.program import ProgramPlan
from semcache.plans.program_checks import broken_program
from tests.plans.programs import RETRIEVALS, end, program, step, told


# specs: C-5
@pytest.mark.parametrize(
    ("steps", "where", "what"),
    [
        ([step(0, "jmp", target_seq=9)], "/0/parameters/target_seq", "is 9, the `seq_no` of no in"),
        ([end(0), end(0)], "/1/seq_no", "is 0 a second time"),
        ([step("0", "assign", x=1)], "/0/seq_no", "is the text '0'; expected a whole number"),
        ([step(True, "assign", x=1)], "/0/seq_no", "is the boolean true"),
        ([step(-1, "assign", x=1), end(0)], "/0/seq_no", "is the number -1; expected a whole numb"),
        ([{"type": "assign", "parameters": {"x": 1}}], "/0/seq_no", "is missing"),
        ([step(0, "assign", x=1), end(2)], "/1/seq_no", "is 2 after 0; expected 1, without a gap"),
        ([step(1, "assign", x=1), end(0)], "/1/seq_no", "is 0 after 1; expected 2"),
        ([end(5)], "/0/seq_no", "is 5 for the first; expected 0 or 1"),
        (
            [step(0, "vector_serch", query="x", output_var="y"), end(1)],
            "/0/type",
            "did you mean 'v",
        ),
        ([step(0, None), end(1)], "/0/type", "is null; expected one of assign, calling"),
        ([5, end(1)], "/0", "is the number 5; expected an instruction"),
        ([{"seq_no": 0, "type": "jmp"}, end(1)], "/0/parameters", "is null; expected an object"),
        ([step(0, "vector_search", top_k=3), end(1)], "/0/parameters", "has no 'query' or 'vector"),
        ([step(0, "vector_search", query="x"), end(1)], "/0/parameters", "has no 'output_var' or "),
        ([step(0, "llm_generate", output_var="x"), end(1)], "/0/parameters", "has no 'prompt'"),
        ([step(0, "calling", tool_params={}), end(1)], "/0/parameters", "has no 'tool_name'"),
        ([step(0, "jmp"), end(1)], "/0/parameters", "has no 'target_seq', which 'jmp' needs"),
        (
            [step(0, "jmp", condition_prompt="?", jump_if_true=1), end(1)],
            "/0/parameters",
            "has no 'jump_if_false'",
        ),
        ([step(0, "assign", var_name="x"), end(1)], "/0/parameters", "has no 'value'"),
        ([step(0, "assign"), end(1)], "/0/parameters", "assigns nothing"),
        (
            [step(0, "calling", tool_name="x", output_vars="y"), end(1)],
            "/0/parameters/output_vars",
            "is the text 'y'; expected a list of different names",
        ),
        (
            [step(0, "calling", tool_name="x", output_vars=["y", "y"]), end(1)],
            "/0/parameters/output_vars",
            "is a list; expected a list of different names",
        ),
        (
            [step(0, "jmp", target_seq="1"), end(1)],
            "/0/parameters/target_seq",
            "is the text '1'; expected the `seq_no` of an instruction",
        ),
    ],
)
def test_what_is_malformed_is_told_with_its_place(steps: list[Any], where: str, what: str) -> None:
    findings = [str(f).removeprefix("/instructions") for f in check(program(*steps))]
    assert any(f.startswith(f"{where}: ") and what in f for f in findings), findings


# specs: C-5
def test_all_findings_are_told_at_once() -> None:
    findings = told(
        step(0, "jmp", target_seq=9),
        step(0, "assign", x="{{nobody}}"),
        step(3, "fly"),
    )
    assert [f.split(" ")[0] for f in findings] == [
        "shape", "target", "shape", "unreachable", "reference", "shape", "shape", "unreachable",
    ]  # fmt: skip


def test_a_value_where_the_program_itself_is_expected_is_told() -> None:
    places = [("instructions", 0, "seq_no"), ("instructions", 0, "parameters", "target_seq")]
    plan = ProgramPlan.from_dict([step(0, "jmp", target_seq=1), end(1)], frozenset(places))
    assert [f.path for f in check_values(plan)] == [
        "/instructions/0/parameters/target_seq", "/instructions/0/seq_no",
    ]  # fmt: skip


def test_an_engine_is_told_what_it_cannot_start_with() -> None:
    plan = program(
        step(0, "vector_search", query="{{params.q}}", output_var="x"),
        step(1, "assign", y="{{known}}"),
        step(2, "jmp", target_seq=4),
        step(3, "reasoning"),
        step(4, "reasoning"),
    )
    findings = broken_program(plan, RETRIEVALS, known=["known"])
    assert [f.what[:30] for f in findings] == [
        "sets neither 'final_answer' no",
        "is '{{params.q}}', to which no",
    ]


def test_a_value_that_looks_like_a_placeholder_is_bound_all_the_same() -> None:
    at = ("instructions", 0, "parameters", "query", 2, 14)
    steps = [step(0, "vector_search", query="a {{params.q}}", output_var="x"), end(1)]
    assert broken_program(ProgramPlan.from_dict(steps, frozenset({at})), RETRIEVALS) == ()


def test_a_million_instructions_are_one_finding() -> None:
    one = end(0)
    plan = adopt({"instructions": [one] * 1_000_000})
    (finding,) = check(plan)
    assert finding.what == "has 1,000,000 instructions; expected at most 10,000"
    assert check_values(plan) == ()


ANYTHING: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.sampled_from(["x", "{{x}}", "${x.y}", "jmp", "assign", "final_answer"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["value", "var_name", "var", "target_seq", "output_var", "tool_name",
                             "tool_params", "query", "condition_prompt", "jump_if_true"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)  # fmt: skip
KINDS = st.sampled_from([
    "assign", "calling", "jmp", "jmp_if", "llm_generate", "reasoning", "vector_search", "no",
])  # fmt: skip
STEPS = st.fixed_dictionaries(
    {"seq_no": st.integers(-1, 4) | st.none(), "type": KINDS, "parameters": ANYTHING}
)


@given(st.lists(STEPS | ANYTHING, max_size=5))
@settings(max_examples=100)
def test_anything_can_be_checked(steps: list[Json]) -> None:
    plan = ProgramPlan({"instructions": steps})
    check(plan, RETRIEVALS)
    check_values(plan, RETRIEVALS)
    broken_program(plan, RETRIEVALS)


def test_the_catalog_is_asked_for_operations_and_inputs() -> None:
    findings = told(
        step(0, "calling", tool_name="vektor_search", tool_params={}),
        step(1, "vector_search", vector_search=5, top_k=50, output_var="x"),
        step(2, "retrieve_knowledge_graph", vector_search="{{x}}", top_k={"var": "x"},
             output_var="y"),
        step(3, "calling", tool_name="vector_search", tool_params={"topk": 3, "query": "${x}"}),
        end(4),
        catalog=RETRIEVALS,
    )  # fmt: skip
    assert [f.split(": ")[0] for f in findings] == [
        "operation /instructions/0/parameters/tool_name",
        "input /instructions/1/parameters/query",
        "input /instructions/1/parameters/top_k",
        "input /instructions/3/parameters/tool_params",
    ]


def test_llm_generate_needs_no_operation() -> None:
    assert told(
        step(0, "calling", tool_name="llm_generate", tool_params={"prompt": "x"}),
        step(1, "llm_generate", prompt="x", output_var="result"),
        catalog=RETRIEVALS,
    ) == []  # fmt: skip


def test_only_inputs_with_bound_values_are_checked_again() -> None:
    steps = [
        step(0, "vector_search", query=5, output_var="x"),
        step(1, "vector_search", query="q", top_k="many", output_var="y"),
        end(2),
    ]
    at = ("instructions", 1, "parameters", "top_k")
    findings = check_values(ProgramPlan.from_dict(steps, frozenset({at})), RETRIEVALS)
    assert [f.path for f in findings] == ["/instructions/1/parameters/top_k"]


# specs: C-5
def test_a_variable_that_nothing_sets_is_told() -> None:
    findings = told(step(0, "assign", total=1), end(1, "{{totl}} ${total.x} {{params.year}}"))
    assert findings == [
        (
            "reference /instructions/1/parameters/final_answer: reads 'totl', which nothing sets; "
            "did you mean 'total'?"
        )
    ]


def test_a_variable_that_is_only_set_later_is_told() -> None:
    findings = told(step(0, "assign", x={"var": "y"}), step(1, "assign", y=1), end(2))
    assert [f.split(": ")[1] for f in findings] == ["reads 'y', which cannot have been set by then"]


def test_a_variable_that_a_loop_sets_for_its_next_turn_is_fine() -> None:
    findings = told(
        step(0, "assign", x=0),
        step(1, "assign", x="${y} + 1"),
        step(2, "assign", y="${x}"),
        step(3, "jmp", condition_prompt="?", jump_if_true=1, jump_if_false=4),
        end(4),
    )
    assert findings == []


# specs: C-9
@pytest.mark.parametrize("name", ["answer", "final", "a", "final_answers", "Final_Answer"])
def test_a_program_without_a_final_answer_is_told(name: str) -> None:
    (finding,) = told(step(0, "assign", **{name: 1}))
    assert "sets neither 'final_answer' nor 'result'" in finding


def test_a_way_past_the_end_is_told() -> None:
    findings = told(
        step(0, "jmp", condition_prompt="?", jump_if_true=1, jump_if_false=2),
        end(1),
        step(2, "assign", x=1),
    )
    assert findings == [
        (
            "target /instructions/2: is the last instruction and sets no 'final_answer'; expected "
            "the final answer"
        )
    ]


def test_a_loop_without_a_way_out_is_told() -> None:
    (finding, *_) = told(
        step(0, "assign", x=1), step(1, "jmp", target_seq=0), step(2, "reasoning"), end(3)
    )
    assert finding.startswith("endless /instructions/0: leads to no end")
