"""Grounding specs in orra's form."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.catalog.grounding import Grounded, Grounding
from semcache.errors import InvalidInput

REFUND = {
    "action": "Process refund for {orderId}",
    "params": {"orderId": "ORD456", "reason": "Item damaged"},
    "capabilities": ["Verify refund eligibility", "Process payment refund"],
    "intent": "Handle customer refund request",
}
SPEC = {
    "name": "customer-support-use-cases",
    "domain": "e-commerce-customer-support",
    "version": "1.0",
    "use-cases": [REFUND],
    "constraints": ["Verify customer owns order"],
}


def test_a_spec_is_read_and_written_as_it_is() -> None:
    found = Grounding.from_json(SPEC)
    assert found.to_json() == SPEC
    assert found.use_cases[0].wording == "Process refund for"


def test_constraints_are_optional_and_use_cases_may_have_an_underscore() -> None:
    spec = {k: v for k, v in SPEC.items() if k not in {"constraints", "use-cases"}}
    assert Grounding.from_json({**spec, "use_cases": [REFUND]}).constraints == ()


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"name": " "}, "`name`"),
        ({"version": 1.0}, "`version` is 1.0"),
        ({"domain": "ab"}, "3 to 63"),
        ({"domain": "Support"}, "lower-case"),
        ({"domain": "a" * 64}, "3 to 63"),
        ({"use-cases": []}, "at least one"),
        ({"use-cases": ["x"]}, "use-cases/0"),
        ({"use-cases": [{**REFUND, "params": {}}]}, "orderId"),
        ({"use-cases": [{**REFUND, "capabilities": []}]}, "`capabilities`"),
        ({"use-cases": [{**REFUND, "intent": ""}]}, "`intent`"),
        ({"use-cases": [{**REFUND, "action": "{orderId}"}]}, "no words"),
        ({"constraints": "none"}, "`constraints`"),
    ],
)
def test_a_spec_that_cannot_be_used_says_why(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        Grounding.from_json({**SPEC, **wrong})


def test_everything_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        Grounding.from_json({"domain": "X", "use-cases": [{"action": "go to {place}"}]})
    for part in ("name", "domain", "version", "intent", "place", "capabilities"):
        assert part in str(caught.value)


def test_identity_tells_use_cases_and_constraints_apart() -> None:
    other = {**REFUND, "action": "Find {orderId}"}
    specs = [
        SPEC,
        {**SPEC, "use-cases": [other]},
        {**SPEC, "constraints": []},
        {**SPEC, "version": "1.1"},
    ]
    groundings = [Grounding.from_json(spec) for spec in specs]
    identities = {Grounded(one, one.use_cases[0], 0.95).identity for one in groundings}
    assert len(identities) == len(specs)
    same = Grounded(groundings[0], groundings[0].use_cases[0], 0.99).identity
    assert same in identities


@settings(max_examples=100)
@given(
    st.dictionaries(
        st.sampled_from(["name", "domain", "version", "use-cases", "constraints"]),
        st.none() | st.text(max_size=4) | st.lists(st.none() | st.text(max_size=3), max_size=3),
    )
)
def test_any_json_is_a_grounding_or_a_typed_error(spec: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        Grounding.from_json(spec)
