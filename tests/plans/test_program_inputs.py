from semcache.plans.codec import check_values
from semcache.plans.program import ProgramPlan
from tests.plans.programs import RETRIEVALS, end, step, told


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
