import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import JsonObject
from semcache.matching.cautions import Doubt
from semcache.matching.evidence import MAX_LEANINGS, MAX_WORDS, Evidence, Shift, leanings
from semcache.matching.learning import learn_doubts
from semcache.matching.words.difference import compare

WORDS = st.lists(st.sampled_from("paid unpaid state city over".split()), max_size=4).map(tuple)
LABELS = st.lists(st.tuples(WORDS, WORDS, st.sampled_from("fg"), st.booleans()), max_size=12)
Label = tuple[tuple[str, ...], tuple[str, ...], str, bool]


def learned(labels: list[Label]) -> Evidence:
    evidence = Evidence()
    for mine, its, group, same in labels:
        evidence.learn(compare(mine, its), group, same=same)
        evidence.count(same=same)
        learn_doubts(evidence, [Doubt(word, "role") for word in mine], same=same)
        keys = leanings(compare(mine, its), group)
        drawn = dict.fromkeys(keys, (0.5, float(same)))
        evidence.shift(Shift(np.full(3, 0.5), np.full(3, float(same)), drawn))
    return evidence


def test_a_difference_of_several_words_blames_each_of_them_a_part() -> None:
    evidence = learned([(("paid", "late", "sales"), ("sales",), "f", False)])
    assert evidence.words.of("paid") == (0.0, 0.5)
    same = learned([(("paid", "late", "sales"), ("sales",), "f", True)])
    assert same.words.of("paid") == (1.0, 0.0)


def test_two_words_exchanged_are_counted_as_a_pair() -> None:
    evidence = learned([(("sales", "state"), ("sales", "city"), "f", False)])
    assert evidence.pairs.of("city state") == (0.0, 1.0)


def test_no_word_of_difference_and_another_plan_is_held_against_the_family() -> None:
    evidence = learned([(("sales",), ("sales",), "f", False)])
    assert evidence.families.of("f") == (0.0, 1.0)


@settings(max_examples=50)
@given(LABELS, LABELS)
def test_evidence_of_two_processes_adds_up(one: list[Label], other: list[Label]) -> None:
    together = learned(one)
    together.merge(learned(other))
    assert together.to_json() == learned([*one, *other]).to_json()


@settings(max_examples=50)
@given(LABELS)
def test_evidence_comes_back_from_json(labels: list[Label]) -> None:
    evidence = learned(labels)
    assert Evidence.from_json(evidence.to_json(), weights=3).to_json() == evidence.to_json()


def test_evidence_stays_bounded_and_keeps_what_is_frequent() -> None:
    evidence = Evidence()
    for i in range(MAX_WORDS + 1):
        evidence.words.add(f"w{i}", same=True)
    evidence.words.add("w7", same=False)
    learn_doubts(evidence, [Doubt(f"w{i}", "role") for i in range(MAX_WORDS + 1)], same=True)
    evidence.leanings.merge({f"+w{i}": (1.0, 1.0) for i in range(MAX_LEANINGS + 1)})
    evidence.leanings.merge({"+w7": (1.0, 1.0)})
    evidence.trim()
    assert len(evidence.leanings.sums) < MAX_LEANINGS
    assert evidence.leanings.precision("+w7") == 2.0
    assert len(evidence.words.same) < MAX_WORDS
    assert evidence.words.of("w7") == (1.0, 1.0)
    assert len(evidence.doubted.same) < MAX_WORDS


@pytest.mark.parametrize(
    "change",
    [
        {"format": 99},
        {"words": 3},
        {"words": {"same": {"a": -1}, "other": {}}},
        {"words": {"same": {"a": math.inf}, "other": {}}},
        {"labels": -1},
        {"labels": True},
        {"pull": [1.0]},
        {"precision": [math.nan] * 3},
        {"families": None},
        {"leanings": None},
        {"leanings": {"+a": [1.0]}},
        {"leanings": {"+a": [-1.0, 0.0]}},
        {"leanings": {"+a": [1.0, math.nan]}},
    ],
)
def test_evidence_of_another_version_or_broken_is_refused(change: JsonObject) -> None:
    body = learned([(("a",), ("b",), "f", True)]).to_json() | change
    with pytest.raises(ValueError, match="evidence"):
        Evidence.from_json(body, weights=3)


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda doc: doc.pop("words"), "at '/words': the member is missing"),
        (lambda doc: doc.pop("format"), "at '/format': the member is missing"),
        (lambda doc: doc.update(words=[]), "at '/words'"),
        (lambda doc: doc.update(leanings={"a": 1}), "at '/leanings/a'"),
    ],
)
def test_evidence_that_was_edited_says_what_is_wrong_with_it(
    harm: Callable[[dict[str, Any]], object], told: str
) -> None:
    doc = cast("dict[str, Any]", Evidence().to_json())
    harm(doc)
    with pytest.raises(ValueError, match=told):
        Evidence.from_json(doc, weights=3)
