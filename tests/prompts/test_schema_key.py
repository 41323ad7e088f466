from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import PromptSchema
from semcache.canonical import Json, JsonObject
from semcache.prompts.schema import identity, psk

SUMMED: JsonObject = {"aggregate": "sum"}


def schema(action: str = "search", /, **params: Json) -> PromptSchema:
    return PromptSchema(action, ("sale",), params=params)


def test_the_key_reads_as_documented() -> None:
    # specs: A-1
    one = PromptSchema("summarize", ("sale",), ("category",), {"year": "2024", "amount": SUMMED})
    other = PromptSchema("summarize", ("sale",), ("category",), {"year": "2023", "amount": SUMMED})
    assert psk(one) == psk(other) == "summarize-sale-amount_year-group_category"
    assert identity(one) == identity(other)


@pytest.mark.parametrize(
    ("asked", "key"),
    [
        (PromptSchema("list"), "list"),
        (PromptSchema("summarize", group_by=("category",)), "summarize-group_category"),
        (schema(date="x", amount=1), "search-sale-amount_date"),
        (PromptSchema("get", ("sale", "order")), "get-order_sale"),
        (PromptSchema("", ("sale",)), "-sale"),
        (PromptSchema("list", ("sale", "sale")), "list-sale_sale"),
    ],
)
def test_empty_parts_are_left_out_and_names_are_sorted(asked: PromptSchema, key: str) -> None:
    # specs: A-2
    assert psk(asked) == key


def test_names_are_sorted_by_utf_16_code_unit() -> None:
    # specs: A-2
    assert psk(PromptSchema("a", ("\uffee", "\U0001f600"))) == "a-\U0001f600_\uffee"


def test_the_order_of_groups_counts_and_no_other() -> None:
    # specs: A-2
    one = PromptSchema("list", ("a", "b"), ("x", "y"), {"p": 1, "q": 2})
    same = PromptSchema("list", ("b", "a"), ("x", "y"), {"q": 2, "p": 1})
    turned = PromptSchema("list", ("a", "b"), ("y", "x"), {"p": 1, "q": 2})
    assert (psk(one), identity(one)) == (psk(same), identity(same))
    assert psk(one) != psk(turned)
    assert identity(one) != identity(turned)


COLLIDING = [
    # Each pair shares a Prompt Schema Key, and none may share a plan.
    (schema(a_b=1), schema(a=1, b=2)),
    (PromptSchema("list", ("a_b",)), PromptSchema("list", ("a", "b"))),
    (PromptSchema("list", group_by=("x",)), PromptSchema("list", params={"group_x": 1})),
    (
        schema(amount={"operator": ">", "operand": 1}),
        schema(amount={"operator": "<", "operand": 1}),
    ),
    (schema(amount={"operator": ">", "operand": 1}), schema(amount=1)),
    (schema(amount=SUMMED), schema(amount={"aggregate": "avg"})),
    (schema(amount=SUMMED), schema(amount={"operator": "=", "operand": 1})),
    (schema(state={"operator": "in", "operand": ["TX"]}), schema(state="TX")),
    (schema(state=["TX"]), schema(state="TX")),
    (schema(state=None), schema(state="TX")),
    (schema(sort_by="amount"), schema(sort_by="date")),
    (schema(sort_by="date", order="asc"), schema(sort_by="date", order="desc")),
    (schema(amount=SUMMED), schema(amount={**SUMMED, "operator": ">", "operand": 1})),
    (schema(amount={"unit": "USD"}), schema(amount={"unit": "EUR"})),
    (schema(price=1, order="asc"), schema(price=1, order="desc")),
]


# specs
@pytest.mark.parametrize(("one", "other"), COLLIDING)
def test_schemas_of_different_shape_never_share_an_identity(
    one: PromptSchema, other: PromptSchema
) -> None:
    assert psk(one) == psk(other)
    assert identity(one) != identity(other)


def test_what_only_changes_a_value_leaves_the_identity_as_it_is() -> None:
    pairs = [
        (
            schema(amount={"operator": ">", "operand": 1}),
            schema(amount={"operator": ">", "operand": 2}),
        ),
        (
            schema(state={"operator": "in", "operand": ["TX", "CA"]}),
            schema(state={"operator": "in", "operand": ["TX", "CA", "OH"]}),
        ),
        (schema(limit=5), schema(limit=10)),
        (schema(amount={"operator": "greater_than"}), schema(amount={"operator": ">"})),
        (schema(amount={"aggregate": "average"}), schema(amount={"aggregate": "avg"})),
    ]
    assert [pair for pair in pairs if identity(pair[0]) != identity(pair[1])] == []


names = st.text(st.sampled_from("ab_-."), min_size=1, max_size=4)
values = st.one_of(
    st.just("x"),
    st.just(["x"]),
    st.none(),
    st.fixed_dictionaries({"operator": st.sampled_from([">", "<", "in"]), "operand": st.just(1)}),
    st.fixed_dictionaries({"aggregate": st.sampled_from(["sum", "avg"])}),
)
schemas = st.builds(
    PromptSchema,
    names,
    st.lists(names, max_size=2, unique=True).map(tuple),
    st.lists(names, max_size=2).map(tuple),
    st.dictionaries(names, values, max_size=2),
)


@settings(max_examples=100)
@given(asked=st.lists(schemas, min_size=2, max_size=6))
def test_equal_identities_mean_equal_shapes(asked: list[PromptSchema]) -> None:
    for one, other in combinations(asked, 2):
        alike = (
            one.action == other.action
            and set(one.entities) == set(other.entities)
            and one.group_by == other.group_by
            and one.params == other.params
        )
        assert (identity(one) == identity(other)) == alike
