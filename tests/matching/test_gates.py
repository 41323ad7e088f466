from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.cache.result import Reason
from semcache.matching.gates import (
    CandidatePair,
    PinnedWords,
    Side,
    Verdict,
    exact_gates,
    gate_key,
    held,
    likeness,
    parameters,
    risk_gates,
    same_signs,
    slots,
    threshold,
)
from semcache.matching.words.content import content
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask


def side(text: str = "sales in 2024", *names: str, catalog: str = "", grounding: str = "") -> Side:
    template = mask(text, find_mentions(text))
    return Side(template, frozenset(names), catalog, grounding)


def pair(
    query: Side | None = None, candidate: Side | None = None, score: float = 1.0
) -> CandidatePair:
    return CandidatePair(query or side(), candidate or side(), score)


# specs: D-3
@pytest.mark.parametrize(
    ("score", "passed"), [(0.95, False), (0.9499, False), (0.951, True), (1.0, True), (-1.0, False)]
)
def test_a_score_must_be_over_the_threshold_and_not_at_it(score: float, passed: bool) -> None:
    verdict = threshold(0.95)(pair(score=score))
    assert verdict.passed is passed
    assert passed or verdict.reason.endswith("<= 0.95")


COSINES = st.floats(-1, 1)


@settings(max_examples=200)
@given(st.floats(0.01, 0.99), COSINES, COSINES)
def test_the_unit_of_an_embedder_keeps_order_and_meets_the_plain_one_where_both_are_as_strict(
    strict: float, one: float, other: float
) -> None:
    lower, higher = sorted((one, other))
    assert likeness(lower, strict) <= likeness(higher, strict)
    assert likeness(strict, strict) == pytest.approx(0.95)
    assert likeness(0.0, strict) == 0.0
    assert likeness(1.0, strict) == pytest.approx(1.0)
    assert likeness(one, 0.95) == one


# specs: D-5
@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ((), ""),
        (("order", "customer"), ""),
        (("order",), "used but not given: customer"),
        (("order", "customer", "x"), "given but not used: x"),
        (("order", "y"), "given but not used: y; used but not given: customer"),
    ],
)
def test_given_parameters_must_be_exactly_those_of_the_plan(
    names: tuple[str, ...], reason: str
) -> None:
    verdict = parameters(pair(side("refund", *names), side("refund", "customer", "order")))
    assert verdict == Verdict("parameters", not reason, reason)


def test_the_same_slots_in_another_order_are_left_to_the_words() -> None:
    query, candidate = side("5 sales in 2024"), side("sales in 2024, 5 of them")
    assert slots(pair(query, candidate)).passed
    assert content(query.template.text) != content(candidate.template.text)


def test_other_slots_are_refused_by_their_names() -> None:
    verdict = slots(pair(side("sales over $5"), side("sales")))
    assert verdict == Verdict("slots", passed=False, reason="<money> against none")


@pytest.mark.parametrize(
    ("query", "candidate", "reason"),
    [
        ("sales by -price", "sales by price", "'-price' against none"),
        ("\u2705 orders", "\u274c orders", "'\u2705' against '\u274c'"),
        ("\u2192 orders of returns", "orders of \u2192 returns", "'\u2192' in another place"),
    ],
)
def test_other_signs_are_refused(query: str, candidate: str, reason: str) -> None:
    assert same_signs(pair(side(query), side(candidate))).reason == reason


def test_what_a_plan_holds_on_to_must_be_said_by_its_words_or_its_value() -> None:
    candidate = side("sales in 2024")._replace(
        held=(PinnedWords("reno", "nv"), PinnedWords("2024", "2024"))
    )
    query = side("sales in 2024")
    assert not held(pair(query, candidate)).passed
    for words in ("reno", "nv"):
        assert held(pair(query._replace(said=frozenset({words, "2024"})), candidate)).passed
    assert held(pair(query, query)).passed


def test_what_a_caller_gives_need_not_be_said() -> None:
    candidate = side("sales in 2024")._replace(held=(PinnedWords("reno", "nv", unless_given=True),))
    assert held(pair(side("sales in 2024", "city"), candidate)).passed
    assert not held(pair(side("sales in 2024"), candidate)).passed


def test_gates_are_asked_in_order_until_one_refuses() -> None:
    gates = risk_gates() + threshold(0.95)
    verdicts = gates(pair(side("sales in 2023"), side("returns in 2024"), 0.9))
    assert [v.gate for v in verdicts] == [
        "catalog",
        "grounding",
        "parameters",
        "slots",
        "signs",
        "pinned",
        "threshold",
    ]
    assert [v.passed for v in verdicts] == [True] * 6 + [False]
    other = gates(pair(side("sales", catalog="a"), side("returns"), 0.5))
    assert [v.gate for v in other] == ["catalog"]


def test_what_a_gate_refuses_is_a_reason_of_a_miss() -> None:
    verdicts = (risk_gates() + threshold(0.0))(pair())
    assert {verdict.gate for verdict in verdicts} <= set(get_args(Reason))


def test_exact_gates_ask_nothing_about_words_or_scores() -> None:
    assert [v.gate for v in exact_gates()(pair(score=-1))] == ["catalog", "grounding", "parameters"]


SIDES = st.builds(
    side,
    st.sampled_from(["sales in 2024", "5 sales", "sales", "sales over $5 in 2024"]),
    *[st.sampled_from(["order", "customer"])] * 2,
    catalog=st.sampled_from(["", "a"]),
)


@settings(max_examples=60)
@given(SIDES, SIDES)
def test_gates_admit_a_pair_if_no_verdict_refuses(query: Side, candidate: Side) -> None:
    asked = CandidatePair(query, candidate, 1.0)
    for gates in (risk_gates(), risk_gates() + threshold(1.0), exact_gates()):
        assert gates.admit(asked) == all(verdict.passed for verdict in gates(asked))


SIDES = st.builds(
    side,
    st.sampled_from(["sales in 2024", "sales in 1850", "tax in 2024", "2024 and 2023", "sales"])
    | st.sampled_from(['sales of "a b"', 'sales of "c"', "sales of -5"]),
    catalog=st.sampled_from(["", "a"]),
    grounding=st.sampled_from(["", "g"]),
)


@settings(max_examples=200)
@given(SIDES, SIDES, SIDES)
def test_candidates_that_look_alike_to_the_gates_are_admitted_alike(
    query: Side, one: Side, other: Side
) -> None:
    if gate_key(one) == gate_key(other):
        gates = risk_gates()
        assert gates.admit(pair(query, one)) == gates.admit(pair(query, other))
