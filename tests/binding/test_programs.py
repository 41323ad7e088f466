"""Programs: values beside references, names of the program's own, and nothing interpreted."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import Catalog, Operation, Parameter
from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.leaves import survey
from semcache.canonical import Json, JsonObject, leaves
from semcache.errors import BindingError
from semcache.execution.program import ProgramEngine
from semcache.plans.codec import adopt
from tests.binding.back import gives_back
from tests.executing import executed
from tests.plans.programs import step

FAST = settings(max_examples=100)


def program(*steps: JsonObject) -> JsonObject:
    return {"instructions": list(steps)}


def test_the_numbers_and_names_of_a_program_are_never_bound() -> None:
    plan = program(
        step(0, "vector_search", query="x", top_k=3, output_var="paris"),
        step(1, "jmp", target_seq=3),
        step(2, "calling", tool_name="paris", output_vars=["rome"]),
        step(3, "assign", value="paris", var_name="rome"),
    )
    roles = {leaf.at[1:]: leaf.role for leaf in survey(plan)}
    assert roles[1, "parameters", "target_seq"] == "structure"
    assert roles[2, "parameters", "tool_name"] == "structure"
    assert roles[2, "parameters", "output_vars", 0] == "name"
    template = generalize(plan, {"top_k": 3, "rome": "paris"})
    assert [b.at[1:] for b in template.bindings] == [
        (0, "parameters", "top_k"),
        (3, "parameters", "value"),
    ]
    assert [(pin.param, pin.why) for pin in template.pinned] == [("rome", "left")]


def test_names_of_variables_keep_no_value_from_changing() -> None:
    plan = program(
        step(0, "vector_search", query="{{params.city}}", output_var="paris_weather"),
        step(1, "assign", paris_text="in {{params.city}}: {{paris_weather}}"),
        step(2, "assign", final_answer={"var": "paris_text"}),
    )
    template = generalize(plan, [Parameter("city", "Paris", "Paris")])
    assert template.pinned == ()
    assert template.format == "program"


def test_a_value_beside_a_reference_is_marked_and_the_reference_stays() -> None:
    plan = program(step(0, "assign", x="{{params.a}} {{v}} {{params.b}}!", v=1))
    bound = bind(generalize(plan, {"a": "A1", "b": "${v}"}), {"a": "{{v}}", "b": "b"})
    at = ("instructions", 0, "parameters", "x")
    assert bound.data == {(*at, 0, 5), (*at, 12, 13)}
    (reference,) = adopt(bound.plan, bound.data).references()
    assert reference.target == "v"


def test_a_value_takes_the_type_that_the_operation_wants() -> None:
    schema: JsonObject = {"properties": {"top_k": {"type": "integer"}, "query": {"type": "string"}}}
    plan = program(
        step(0, "vector_search", vector_search="{{params.code}}", top_k="{{params.n}}"),
        step(1, "calling", tool_name="vector_search", tool_params={"top_k": "{{params.n}}"}),
    )
    template = generalize(plan, {"code": "01234", "n": "5"}, schemas={"vector_search": schema})
    assert [b.codec for b in template.bindings] == ["text", "integer", "integer"]
    steps: Any = bind(template, {"code": 77, "n": "7"}).plan["instructions"]
    assert steps[0]["parameters"] == {"vector_search": "77", "top_k": 7}


def test_a_value_that_is_also_a_reference_is_refused() -> None:
    plan = program(step(0, "assign", v=1), step(1, "assign", final_answer="{{v}}"))
    with pytest.raises(BindingError) as raised:
        generalize(plan, {"text": "{{v}}"})
    assert raised.value.reason == "reference"


def test_a_placeholder_for_a_part_of_the_program_itself_is_refused() -> None:
    with pytest.raises(BindingError, match="its value would be evaluated"):
        generalize(program(step(0, "assign", value=1, var_name="{{params.x}}")), {"x": "y"})


NAMES = st.sampled_from(["v", "year", "city", "query", "var", "value", "var_name", "top_k"])
VALUES: st.SearchStrategy[Json] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3000)
    | st.sampled_from(
        ["Paris", "2024", "ORD456", "{{v}}", "${v.x}", "$.a", "$$b", "2024-10-15", "${v} + 1", "v"]
    )
    | st.text(alphabet="{}$v.- x1", max_size=8),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
KINDS = st.sampled_from(["assign", "calling", "vector_search", "llm_generate", "jmp", "reasoning"])


@st.composite
def cases(draw: st.DrawFn) -> tuple[JsonObject, dict[str, Json]]:
    """Return a program and parameters, some of whose values stand in it."""
    steps = [
        step(seq, draw(KINDS), **draw(st.dictionaries(NAMES, VALUES, max_size=3)))
        for seq in range(draw(st.integers(1, 3)))
    ]
    plan = program(*steps, step(len(steps), "assign", v=1, final_answer="${v}"))
    inside = [leaf for _, leaf in leaves(plan)]
    names = draw(st.lists(st.sampled_from(["year", "city", "query", "n"]), unique=True))
    return plan, {name: draw(st.sampled_from(inside) | VALUES) for name in names}


@given(cases())
@FAST
def test_binding_the_same_values_gives_the_program_back(
    case: tuple[JsonObject, dict[str, Json]],
) -> None:
    gives_back(*case)


TEXTS = st.lists(
    st.sampled_from(["{{params.a}}", "{{params.b}}", " ", "x", "{{v}}", "${v}", " $", "{", "}"]),
    max_size=7,
).map("".join)
NASTY = st.text(alphabet="{}$v.- 12", max_size=8) | st.sampled_from(
    ["{{v}}", "${v}", "$.a", "2024-10-15", "1 - 2", "{{params.b}}", "}}", "{{", "${"]
)


@given(TEXTS, NASTY, NASTY)
@FAST
def test_no_bound_value_is_ever_interpreted(text: str, a: str, b: str) -> None:
    plan = program(step(0, "assign", v="VALUE"), step(1, "assign", final_answer=text))
    try:
        bound = bind(generalize(plan, {"a": "first", "b": "second"}), {"a": a, "b": b})
    except BindingError:
        return
    told = executed(
        ProgramEngine(), adopt(bound.plan, bound.data), Catalog([Operation("op", "Op.", {})])
    ).text
    parts = re.split(r"(\{\{params\.[ab]\}\})", text)
    own = {"{{params.a}}": a, "{{params.b}}": b}
    read = (re.sub(r"\{\{v\}\}|\$\{v\}", "VALUE", part) for part in parts)
    assert told == "".join(own.get(part, put) for part, put in zip(parts, read, strict=True))
