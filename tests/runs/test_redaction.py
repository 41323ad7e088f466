from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.canonical import dumps
from semcache.runs.redaction import hidden, is_secret_name, kept
from semcache.secrecy import HIDDEN


@pytest.mark.parametrize(
    "secret",
    [
        "sk-planted-4711-abc", "ghp_" + "a1" * 15, "AKIA" + "A1B2C3D4E5F6G7H8",
        "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSM", "xoxb-1234567890-abc",
    ],
)  # fmt: skip
def test_a_secret_is_hidden_wherever_it_stands_in_a_text(secret: str) -> None:
    assert hidden(f"before {secret} after") == f"before {HIDDEN} after"


def test_credentials_of_addresses_and_headers_are_hidden() -> None:
    assert hidden("postgres://me:pw123@db/x") == f"postgres://{HIDDEN}@db/x"
    assert hidden("Authorization: Bearer abc.def-123") == f"Authorization: Bearer {HIDDEN}"
    assert hidden("https://h/p?token=abc123&x=1") == f"https://h/p?token={HIDDEN}&x=1"


def test_usual_words_stay() -> None:
    text = "sales in 2024, task-12, risk-adjusted, ask-me, 16 tokens: what is the plan"
    assert hidden(text) == text


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("api_key", True), ("apiKey", True), ("API-KEY", True), ("password", True),
        ("user_password", True), ("Authorization", True), ("accessToken", True),
        ("author", False), ("key", False), ("prompt_tokens", False), ("maxTokens", False),
        ("keyboard", False), ("tokens", True), ("session", False),
    ],
)  # fmt: skip
def test_a_name_tells_whether_it_is_a_secret(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_values_under_secret_names_are_hidden_at_any_depth() -> None:
    value = {"a": [{"password": "x", "note": "fine"}], "token": {"inner": "y"}, "api_key": None}
    assert kept(value) == {
        "a": [{"password": HIDDEN, "note": "fine"}], "token": HIDDEN, "api_key": None,
    }  # fmt: skip


def test_a_long_text_is_cut_and_says_how_long_it_was() -> None:
    copy = kept("x" * 10_000_000)
    assert isinstance(copy, str)
    assert copy.endswith("… (10,000,000 characters)")
    assert len(copy) < 2100


def test_a_secret_across_the_edge_of_a_cut_is_hidden() -> None:
    copy = str(kept("x" * 1990 + " sk-planted-4711-abcdefgh " + "y" * 500))
    assert "sk-p" not in copy


def test_a_long_list_ends_where_the_room_does() -> None:
    copy: Any = kept(list(range(1_000_000)))
    assert copy[-1].endswith("more")
    assert len(copy) < 3000


def test_what_is_no_json_is_named_by_its_type() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    value = {"nan": float("nan"), "set": {1}, "cycle": cycle, "bytes": b"x", 7: 1, "big": 1 << 99}
    copy: Any = kept(value)
    assert copy["nan"] == "<nan>"
    assert copy["set"] == "<set>"
    assert copy["cycle"] == ["<cycle or too deep>"]
    assert copy["bytes"] == "<bytes>"
    assert copy["<int>"] == 1
    assert copy["big"] == "<integer of 100 bits>"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
)


@settings(max_examples=100)
@given(VALUES)
def test_whatever_is_kept_is_json_and_small(value: Any) -> None:
    text = dumps(kept(value, max_chars=100))
    text.encode()
    assert len(text) < 3000
