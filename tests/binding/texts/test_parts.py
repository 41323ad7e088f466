"""Values inside texts of a plan: found, bound as data, and written back in the text's own way."""

import json
import sqlite3
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.binding.texts.parts import parts
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError

FAST = settings(max_examples=150)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
JSON: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.floats(-9, 9, width=16) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def call(arguments: str) -> JsonObject:
    """Return an assistant's message as the OpenAI API gives it."""
    function: JsonObject = {"name": "find", "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"type": "function", "function": function}]}


def bound(text: str, params: dict[str, Json], others: dict[str, Json]) -> str:
    """Return what `text`, made for `params`, is for `others`."""
    return str(bind(generalize({"text": text}, params), others).plan["text"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"order_id":"ORD-17","n":2}', '{"order_id":"A \\"B\\"","n":2}'),
        ('{ "order_id" : "ORD-17" , "tip": 2.50}', '{ "order_id" : "A \\"B\\"" , "tip": 2.50}'),
        ('{"n": 1,\n "order_id": "ORD-17"}\n', '{"n": 1,\n "order_id": "A \\"B\\""}\n'),
    ],
)
def test_arguments_of_a_tool_call_keep_their_spelling(arguments: str, expected: str) -> None:
    template = generalize(call(arguments), {"order_id": "ORD-17"})
    assert template.pinned == ()
    assert bind(template, {"order_id": 'A "B"'}).plan == call(expected)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"city":"Z\\u00fcrich"}', '{"city":"K\\u00f6ln/S\\u00fcd"}'),
        ('{"city":"Zürich"}', '{"city":"Köln/Süd"}'),
        ('{"city":"Zürich","u":"a\\/b"}', '{"city":"Köln\\/Süd","u":"a\\/b"}'),
    ],
)
def test_letters_are_escaped_as_the_text_escapes_them(before: str, after: str) -> None:
    assert bound(before, {"city": "Zürich"}, {"city": "Köln/Süd"}) == after


def test_types_inside_arguments_stay_what_they_are() -> None:
    text = '{"year": 2024, "code": "2024"}'
    template = generalize({"text": text}, {"year": 2024, "code": "2024"})
    assert bind(template, {"year": "2021", "code": 77}).plan["text"] == (
        '{"year": 2021, "code": "77"}'
    )
    with pytest.raises(BindingError, match="number"):
        bind(template, {"year": "2021, 1", "code": "77"})


def test_a_placeholder_in_arguments_is_bound_as_data() -> None:
    text = '{"who": "{{params.who}}", "note": "for {{params.who}}!"}'
    template = generalize({"text": text}, {"who": "Ada"})
    assert bind(template, {"who": "Zoë"}).plan["text"] == '{"who": "Zoë", "note": "for Zoë!"}'


def test_sql_in_arguments_in_a_message_is_bound_in_all_three_languages() -> None:
    arguments = json.dumps({"sql": "SELECT n FROM t WHERE who = 'Lovelace'"})
    plan = {"message": json.dumps(call(arguments))}
    served = bind(generalize(plan, {"who": "Lovelace"}), {"who": "O'Hara"}).plan
    inner = json.loads(str(served["message"]))["tool_calls"][0]["function"]["arguments"]
    assert json.loads(inner) == {"sql": "SELECT n FROM t WHERE who = 'O''Hara'"}


@pytest.mark.parametrize(
    ("sql", "params"),
    [
        ("SELECT a FROM t WHERE b = 5 -- 'Ada'", {"b": 5}),
        ("SELECT a FROM t WHERE b = 'it\\'s Ada'", {"b": "it's Ada"}),
        ('SELECT a FROM t WHERE b = "Lovelace"', {"b": "Lovelace"}),
        ("SELECT a FROM t WHERE b = E'Lovelace'", {"b": "Lovelace"}),
        ("SELECT a FROM t WHERE x-1234 > c", {"b": 1234}),
        ("SELECT a FROM t WHERE b = 'Lovelace", {"b": "Lovelace"}),
        ("SELECT a FROM t WHERE b ~ 'Lovelace'", {"b": "Lovelace"}),
        ("SELECT a FROM t WHERE REGEXP_LIKE(b, 'Lovelace')", {"b": "Lovelace"}),
        ("SELECT a FROM t WHERE b LIKE '%' || 'Lovelace' || '%'", {"b": "Lovelace"}),
    ],
)
def test_where_quoting_is_unclear_the_value_is_pinned(sql: str, params: dict[str, Json]) -> None:
    template = generalize({"sql": sql}, params)
    assert (template.bindings, [pin.param for pin in template.pinned]) == ((), ["b"])


@pytest.mark.parametrize("value", ["x' OR 'a'='a", "a\\", "50%", "a_b", "\0"])
def test_a_value_in_a_pattern_stays_itself_or_is_refused(value: str) -> None:
    sql = "SELECT a FROM t WHERE b LIKE '%shoes%'"
    try:
        served = bound(sql, {"b": "shoes"}, {"b": value})
    except BindingError as error:
        assert error.reason == "unsafe"  # noqa: PT017 - the only way out
    else:
        assert served == "SELECT a FROM t WHERE b LIKE '%x'' OR ''a''=''a%'"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("/orders/17", "/orders/a%20b"),
        ("https://x.io/v1/orders/17/items?page=2", "https://x.io/v1/orders/a%20b/items?page=2"),
        ("GET /orders?order_id=17", "GET /orders?order_id=a%20b"),
        ("/find?q=new+york&order_id=17", "/find?q=new+york&order_id=a%20b"),
    ],
)
def test_values_in_an_address_are_bound(before: str, after: str) -> None:
    assert bound(before, {"order_id": "17"}, {"order_id": "a b"}) == after


@pytest.mark.parametrize("value", ["", "..", "../admin", "a/../b", "a\\..\\b"])
def test_a_value_that_leads_elsewhere_does_not_go_into_an_address(value: str) -> None:
    with pytest.raises(BindingError, match="another place"):
        bound("/orders/17", {"order_id": "17"}, {"order_id": value})


def test_the_day_and_time_of_a_timestamp_are_bound() -> None:
    params: dict[str, Json] = {"date": "2024-03-11", "time": "10:00"}
    others: dict[str, Json] = {"date": "2024-05-06", "time": "09:30"}
    assert bound("2024-03-11T10:00:00Z", params, others) == "2024-05-06T09:30:00Z"
    with pytest.raises(BindingError, match="09:30"):
        bound("2024-03-11T10:00:00Z", params, others | {"time": "9:30 am"})


@pytest.mark.parametrize("text", ["and/or", "km/h", "{}", "[1", "a = 5", "Select a seat", "//"])
def test_other_texts_are_no_language(text: str) -> None:
    assert not (parts(text) or ((), ""))[0]


@given(st.dictionaries(TEXT, JSON, max_size=4), st.booleans(), st.booleans())
@FAST
def test_parts_of_json_spell_what_json_reads(
    value: dict[str, Json], ascii_only: bool, compact: bool
) -> None:
    separators = (",", ":") if compact else (", ", ": ")
    text = json.dumps(value, ensure_ascii=ascii_only, separators=separators)
    for part in (parts(text) or ((), ""))[0]:
        spelled = text[part.start : part.end]
        if len(part.writers) == 1 and not isinstance(part.value, str):
            assert json.loads(spelled) == part.value
        elif len(part.writers) == 1:
            assert json.loads(f'"{spelled}"') == part.value


@given(TEXT, TEXT)
@FAST
def test_any_text_bound_into_json_is_read_back_as_it_was(key: str, value: str) -> None:
    text = json.dumps({"k": "Lovelace", "x": [1, {"y": key}]})
    expected = {"k": value, "x": [1, {"y": key}]}
    assert json.loads(bound(text, {"k": "Lovelace"}, {"k": value})) == expected


@given(TEXT)
@FAST
def test_any_text_bound_into_sql_is_one_value_or_refused(value: str) -> None:
    sql = "SELECT 'Lovelace' AS k WHERE 1 < 2"
    try:
        served = bound(sql, {"k": "Lovelace"}, {"k": value})
    except BindingError:
        return
    assert sqlite3.connect(":memory:").execute(served).fetchall() == [(value,)]


@given(TEXT)
@FAST
def test_any_text_bound_into_an_address_is_one_segment_and_one_value(value: str) -> None:
    address = "https://x.io/users/lovelace-1815/orders?name=lovelace-1815&page=2"
    try:
        served = urlsplit(bound(address, {"name": "lovelace-1815"}, {"name": value}))
    except BindingError:
        return
    assert [unquote(segment) for segment in served.path.split("/")] == [
        "",
        "users",
        value,
        "orders",
    ]
    assert parse_qs(served.query) == {"name": [value], "page": ["2"]}


def test_equal_values_of_a_query_go_to_the_columns_of_their_names() -> None:
    query = "SELECT * FROM legs WHERE origin = 'Rome' AND \"destination\" = 'Rome'"
    same: dict[str, Json] = {"origin": "Rome", "destination": "Rome"}
    apart: dict[str, Json] = {"origin": "Oslo", "destination": "Bari"}
    assert bound(query, same, apart) == (
        "SELECT * FROM legs WHERE origin = 'Oslo' AND \"destination\" = 'Bari'"
    )
