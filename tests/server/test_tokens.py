import json
import traceback

import pytest

from semcache.errors import InvalidInput, InvalidSettings
from semcache.server.tokens import Holder, Tokens

TOKEN = "acme-token-0123456789"  # noqa: S105 - made up
WRITER = Holder("acme", frozenset({"read", "write"}))


def test_a_token_is_of_its_tenant_and_any_other_text_of_nobody() -> None:
    tokens = Tokens({TOKEN: "acme", "initech-token-0123456789": "initech"})
    assert tokens.holder(TOKEN) == Holder("acme")
    for other in ("", TOKEN[:-1], TOKEN + "0", "\ud800", "ä" * 20):
        assert tokens.holder(other) is None


def test_tokens_are_read_from_lines_and_from_json() -> None:
    lines = f"# who may call\n\n{TOKEN} acme  # the shop\n"
    assert Tokens.read(lines).holder(TOKEN) == Holder("acme")
    assert Tokens.read(json.dumps({TOKEN: "acme"})).holder(TOKEN) == Holder("acme")


def test_a_token_has_the_rights_that_are_named_and_else_reads_and_asks() -> None:
    assert Tokens.read(f"{TOKEN} acme").holder(TOKEN) == Holder("acme", frozenset({"read", "ask"}))
    assert Tokens.read(f"{TOKEN} acme read,write").holder(TOKEN) == WRITER
    listed = {TOKEN: {"tenant": "acme", "rights": ["write", "read"]}}
    assert Tokens.read(json.dumps(listed)).holder(TOKEN) == WRITER
    assert Tokens.read(json.dumps({TOKEN: {"tenant": "acme"}})).holder(TOKEN) == Holder("acme")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "short acme",
        TOKEN,
        f"{TOKEN} acme more",
        f"{TOKEN} acme read more",
        f"acme acme {TOKEN}",
        f'{{"{TOKEN}": 7}}',
        f'{{"{TOKEN}": {{"tenant": "a", "rights": []}}}}',
    ],
)
def test_what_are_no_tokens_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        Tokens.read(text)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (f"# who\n{TOKEN} acme\nshort acme", "line 3"),
        (f"{TOKEN} acme\n{TOKEN} initech", "line 2 of the tokens has a token once more"),
        (f"{TOKEN} acme wirte", "line 1"),
        (f"{TOKEN} {'a' * 257}", "line 1"),
        (f'{{"{TOKEN}": "acme", "{TOKEN}2": {{"tenant": 7}}}}', "token 2 of 2 at 'tenant'"),
        (f'{{"{TOKEN}": {{"tenant": "a", "rights": ["wirte"]}}}}', "token 1 of 1 at 'rights'"),
        (f'{{"{TOKEN}": {{"tenant": "a", "{TOKEN}": ["read"]}}}}', "token 1 of 1"),
        (f'{{"{TOKEN}": "a\\u0000b"}}', "token 1 of 1 is of no tenant"),
        (f'{{"{TOKEN}": "acme", "x": 7}}', "token 2 of 2: expected a tenant"),
        (f'{{"{TOKEN}": "acme", "x": "acme"}}', "token 2 of 2 has 1 characters"),
        (f'{{"{TOKEN}": "acme", "\\ud800": "acme"}}', "file of tokens is not JSON: .*surrogates"),
        ("{", "line 1 column 2"),
    ],
)
def test_a_refusal_says_where_the_wrong_token_stands(text: str, place: str) -> None:
    with pytest.raises(InvalidInput, match=place) as refused:
        Tokens.read(text)
    assert TOKEN not in "".join(traceback.format_exception(refused.value))


def test_no_repr_shows_a_token() -> None:
    tokens = Tokens({TOKEN: "acme"})
    assert TOKEN not in repr(tokens) + repr(vars(tokens))
