import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.models.memo import VectorMemo
from semcache.ports import Vectors


class Counting:
    """An encoder whose vectors are the lengths of texts, and which keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def __call__(self, texts: list[str]) -> Vectors:
        self.asked.append(texts)
        return np.array([[len(text)] for text in texts], dtype=np.float32).reshape(-1, 1)


def test_only_new_texts_are_encoded_each_once() -> None:
    memo, encode = VectorMemo(10), Counting()
    memo.embed(["a", "bb"], encode)
    assert memo.embed(["bb", "ccc", "ccc", "a"], encode).tolist() == [[2], [3], [3], [1]]
    assert encode.asked == [["a", "bb"], ["ccc"]]


def test_the_text_asked_for_longest_ago_is_forgotten() -> None:
    memo, encode = VectorMemo(2), Counting()
    for text in ("a", "b", "a", "c", "a", "b"):
        memo.embed([text], encode)
    assert encode.asked == [["a"], ["b"], ["c"], ["b"]]


def test_what_a_caller_does_to_its_rows_is_not_remembered() -> None:
    memo, encode = VectorMemo(2), Counting()
    memo.embed(["a"], encode)[0, 0] = 99
    memo.embed(["a"], encode)[0, 0] = 99
    assert memo.embed(["a"], encode).tolist() == [[1]]


@settings(max_examples=100)
@given(st.integers(0, 3), st.lists(st.lists(st.sampled_from(["", "a", "bb", "ccc"]))))
def test_rows_are_right_whatever_is_remembered(size: int, calls: list[list[str]]) -> None:
    memo, encode = VectorMemo(size), Counting()
    for texts in calls:
        assert memo.embed(texts, encode).tolist() == [[len(text)] for text in texts]
