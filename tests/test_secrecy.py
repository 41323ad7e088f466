import json
from base64 import b64encode, urlsafe_b64encode
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.secrecy import HIDDEN, remember, without, without_known

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30)


@pytest.mark.parametrize(
    "written",
    [
        str,
        lambda s: quote(s, safe=""),
        quote_plus,
        lambda s: json.dumps(s)[1:-1],
        lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
        lambda s: s.encode().hex(),
    ],
)
@given(secret=SECRETS)
def test_a_secret_is_cut_out_in_every_spelling(written: "type[str]", secret: str) -> None:
    assert without(f"<<{written(secret)}>>", secret) == f"<<{HIDDEN}>>"


@given(secret=SECRETS, before=st.binary(max_size=4), after=st.binary(max_size=4))
def test_a_secret_inside_base64_is_cut_out_but_for_its_edges(
    secret: str, before: bytes, after: bytes
) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        left = without(text, secret).replace(HIDDEN, "")
        assert len(left) <= len(text) - len(secret.encode()) * 4 // 3 + 4


def test_codes_in_small_letters_are_codes_too() -> None:
    assert without("a%2fkey%3d", "a/key=") == HIDDEN


def test_the_password_of_basic_authentication_is_cut_out_by_itself() -> None:
    value = "Basic " + b64encode(b"me:pass word").decode()
    assert without("no such password: pass word", value) == f"no such password: {HIDDEN}"


def test_what_was_remembered_is_cut_out_and_short_texts_never_are() -> None:
    remember("a long secret of ours", "abc", "")
    assert without_known("abc: a%20long%20secret%20of%20ours") == f"abc: {HIDDEN}"
