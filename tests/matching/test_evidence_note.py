"""What a process works out of a note that it wrote is what it would read from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import dumps, loads
from semcache.matching import evidence as bounds
from semcache.matching import samples
from semcache.matching.evidence import Evidence, Shift
from semcache.matching.evidence_note import copied, note_text, noted
from semcache.matching.model.risk import score_key

KEYS = st.sampled_from("all by not from over sales state tax zone".split())
COUNTS = st.floats(0.01, 9, allow_nan=False)
TALLIES = st.sampled_from("words kinds pairs families supposed doubted record".split())


@st.composite
def news(draw: st.DrawFn) -> Evidence:
    """Draw what a few labels say."""
    said = Evidence()
    for name, key, same, weight in draw(
        st.lists(st.tuples(TALLIES, KEYS, st.booleans(), COUNTS), max_size=12)
    ):
        told = score_key(len(key)) if name == "record" else key
        getattr(said, name).add(told, same=same, weight=weight)
    drawn = draw(st.dictionaries(KEYS, st.tuples(COUNTS, st.floats(-9, 9)), max_size=6))
    if drawn:
        weights = draw(st.lists(st.floats(-9, 9), min_size=3, max_size=3))
        said.shift(Shift(np.abs(np.array(weights)), np.array(weights), drawn))
    said.count(same=draw(st.booleans()))
    for score, right in draw(st.lists(st.tuples(st.floats(-9, 9), st.booleans()), max_size=3)):
        said.samples.add(draw(st.sampled_from(["one scale", "another"])), score, right=right)
    return said


def read(text: str) -> Evidence:
    return Evidence.from_json(loads(text), weights=3)


@pytest.fixture(scope="module", autouse=True)
def small_bounds() -> object:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MAX_WORDS", "MAX_FAMILIES", "MAX_LEANINGS"):
            patch.setattr(bounds, name, 5)
        patch.setattr(samples, "STRETCH", 5)
        yield


@settings(max_examples=150)
@given(st.lists(news(), min_size=1, max_size=5))
def test_what_is_noted_in_memory_is_what_the_note_gives_back(rounds: list[Evidence]) -> None:
    in_memory, written = Evidence(), Evidence()
    for each in rounds:
        in_memory = noted(in_memory, each)
        written.merge(each)
        written.trim()
        text = dumps(written.to_json())
        assert note_text(in_memory) == text
        written = read(text)
        assert dumps(copied(in_memory).to_json()) == text
        assert dumps(in_memory.to_json()) == dumps(written.to_json())


@settings(max_examples=50)
@given(news(), news())
def test_a_copy_does_not_follow_what_is_added_later(first: Evidence, second: Evidence) -> None:
    before = noted(Evidence(), first)
    text = note_text(before)
    copied(before).merge(second)
    noted(before, second)
    assert note_text(before) == text
