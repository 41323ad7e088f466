import json
import os
import re
import signal
import threading
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from html import escape
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache import secrecy
from semcache.secrecy import HIDDEN, remember, without, without_known

SECRETS = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=30)


WAYS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in an address": lambda s: quote(s, safe=""),
    "in a form": quote_plus,
    "in small letters": lambda s: re.sub("%..", lambda c: c.group().lower(), quote(s)),
    "in JSON": lambda s: json.dumps(s)[1:-1],
    "in JSON of Unicode": lambda s: json.dumps(s, ensure_ascii=False)[1:-1],
    "in Python": lambda s: repr(s)[1:-1],
    "in HTML": escape,
}


@pytest.mark.parametrize("outer", WAYS)
@pytest.mark.parametrize("inner", WAYS)
@given(secret=SECRETS)
@settings(max_examples=15)
def test_a_secret_is_cut_out_in_every_spelling_and_in_two_of_them(
    inner: str, outer: str, secret: str
) -> None:
    assert without(f"<<{WAYS[outer](WAYS[inner](secret))}>>", secret) == f"<<{HIDDEN}>>"


@given(secret=SECRETS)
def test_a_secret_is_cut_out_of_hexadecimal_digits(secret: str) -> None:
    assert without(f"<<{secret.encode().hex()}>>", secret) == f"<<{HIDDEN}>>"


@given(secret=SECRETS, before=st.binary(max_size=4), after=st.binary(max_size=4))
def test_a_secret_inside_base64_is_cut_out_but_for_its_edges(
    secret: str, before: bytes, after: bytes
) -> None:
    for encode in (b64encode, urlsafe_b64encode):
        text = encode(before + secret.encode() + after).decode()
        left = without(text, secret).replace(HIDDEN, "")
        assert len(left) <= len(text) - len(secret.encode()) * 4 // 3 + 4


def test_a_child_that_is_forked_while_secrets_are_looked_for_can_do_so_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looking, forked = threading.Event(), threading.Event()

    def wait(secret: str) -> frozenset[str]:
        looking.set()
        forked.wait(60)
        return frozenset({secret})

    monkeypatch.setattr(secrecy, "spellings", wait)
    remember("a secret of the parent")
    thread = threading.Thread(target=without_known, args=("x",))
    thread.start()
    looking.wait(60)
    child = os.fork()
    if not child:
        signal.alarm(30)  # ends a child that waits for ever
        forked.set()
        os._exit(int(without_known("a secret of the parent") != HIDDEN))
    forked.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_thousand_secrets_are_looked_for_by_their_first_letters() -> None:
    remember(*(f"token-{n:04}-of-a-door" for n in range(1_000)))
    assert without_known("x" * 1_000_000) == "x" * 1_000_000
    assert without_known(f"{'x' * 9}token-0999-of-a-door.") == f"{'x' * 9}{HIDDEN}."


def test_the_password_of_basic_authentication_is_cut_out_by_itself() -> None:
    value = "Basic " + b64encode(b"me:pass word").decode()
    assert without("no such password: pass word", value) == f"no such password: {HIDDEN}"


def test_what_was_remembered_is_cut_out_and_short_texts_never_are() -> None:
    remember("a long secret of ours", "abc", "")
    assert without_known("abc: a%20long%20secret%20of%20ours") == f"abc: {HIDDEN}"
