"""Plans in the program format, in both dialects."""

from typing import Any

import pytest

from semcache.canonical import JsonObject, dumps
from semcache.errors import InvalidPlan
from semcache.plans.codec import decode
from semcache.plans.document import ExecutionPlan
from semcache.plans.program import ProgramPlan, goal

SECOND: JsonObject = {
    "plan": [
        {"seq_no": 1, "type": "reasoning", "parameters": {"why": "${nothing}"}},
        {
            "seq_no": 2,
            "type": "calling",
            "parameters": {
                "tool_name": "get_order",
                "tool_params": {"id": "A1", "fields": ["${wanted.first}"]},
                "output_vars": ["order", "owner"],
            },
        },
        {
            "seq_no": 3,
            "type": "jmp",
            "parameters": {
                "condition_prompt": "Late? ${order.status}",
                "jump_if_true": 4,
                "jump_if_false": 4,
            },
        },
        {"seq_no": 4, "type": "assign", "parameters": {"final_answer": "${order}", "x": 1}},
    ]
}


# specs: C-1
def test_the_documents_example_is_read_with_its_raw_line_breaks(tidb: str) -> None:
    plan = decode(tidb)
    assert isinstance(plan, ProgramPlan)
    assert [step.seq for step in plan.instructions()] == list(range(11))
    assert [step.type for step in plan.instructions()] == [
        "reasoning", "retrieve_knowledge_graph", "llm_generate", "jmp_if", "vector_search", "jmp",
        "retrieve_knowledge_graph", "vector_search", "vector_search", "llm_generate", "assign",
    ]  # fmt: skip
    assert plan == ProgramPlan.from_json(tidb)


# specs: C-1
def test_either_retrieval_takes_its_query_under_either_name(tidb: str) -> None:
    steps = ProgramPlan.from_json(tidb).instructions()
    assert steps[4].inputs == (("query", ("query",)),)
    assert steps[6].inputs == (("query", ("vector_search",)), ("top_k", ("top_k",)))
    assert steps[7].inputs == (("query", ("vector_search",)), ("top_k", ("top_k",)))


def test_a_bare_list_is_the_object_that_it_stands_for(tidb: str) -> None:
    plan = decode(tidb)
    assert list(plan.to_dict()) == ["instructions"]
    assert decode(plan.to_dict()["instructions"]) == plan
    assert decode(dumps(plan.to_dict())) == plan


def test_a_program_tells_what_it_calls_and_reads() -> None:
    plan = ProgramPlan.from_dict(SECOND)
    assert isinstance(plan, ExecutionPlan)
    assert plan.operations() == ("get_order",)
    assert [(r.at[1:], r.target, r.path) for r in plan.references()] == [
        ((1, "parameters", "tool_params", "fields", 0), "wanted", "${wanted.first}"),
        ((2, "parameters", "condition_prompt"), "order", "${order.status}"),
        ((3, "parameters", "final_answer"), "order", "${order}"),
    ]


def test_the_model_is_no_operation_of_the_catalog(tidb: str) -> None:
    assert decode(tidb).operations() == ("retrieve_knowledge_graph", "vector_search")


def test_what_instructions_set_is_read_in_both_dialects(tidb: str) -> None:
    first, second = ProgramPlan.from_json(tidb), ProgramPlan.from_dict(SECOND)
    assert [step.sets for step in first.instructions()][9:] == [
        ("final_recommendations",),
        ("final_answer",),
    ]
    assert [s.sets for s in second.instructions()] == [
        (), ("order", "owner"), (), ("final_answer", "x"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["final_answer", "result"], "final_answer"),
        (["result", "final"], "result"),
        (["answer", "a", "finals"], ""),
    ],
)
def test_the_goal_is_known_by_its_whole_name(names: list[str], expected: str) -> None:
    steps = [
        {"seq_no": i, "type": "assign", "parameters": {name: 1}} for i, name in enumerate(names)
    ]
    assert goal(ProgramPlan.from_dict(steps).instructions()) == expected


@pytest.mark.parametrize(
    "plan",
    [
        {"plan": ["find", "book"]},
        {"instructions": []},
        {"instructions": "stir"},
        {"instructions": [{"text": "stir", "type": "step"}]},
        {"seq_no": 0, "type": "reasoning", "parameters": {}},
    ],
)
def test_an_object_without_instructions_is_a_document(plan: JsonObject) -> None:
    assert decode(plan).format == "document"


@pytest.mark.parametrize("source", ["[]", "[1, 2]", "[{}]", [["seq_no"]], '[{"seq_no": 0}'])
def test_a_list_of_something_else_is_no_plan(source: Any) -> None:
    with pytest.raises(InvalidPlan):
        decode(source)
