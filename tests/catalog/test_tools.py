"""Tool definitions of SDKs as catalogs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semcache.cache.tool_sets import catalog_of
from semcache.canonical import Json
from semcache.errors import InvalidInput

SCHEMA: dict[str, Json] = {"type": "object", "properties": {"order_id": {"type": "string"}}}
SPELLINGS: list[Any] = [
    {"type": "function", "function": {"name": "track", "description": "T", "parameters": SCHEMA}},
    {"type": "function", "name": "track", "description": "T", "parameters": SCHEMA, "strict": True},
    {"name": "track", "description": "T", "input_schema": SCHEMA},
    {"name": "track", "description": "T", "inputSchema": SCHEMA, "annotations": {}},
    {"name": "track", "description": "T", "input_schema": SCHEMA, "cache_control": {"type": "x"}},
]

names = st.text("abcdefg_", min_size=1, max_size=8)
properties = st.dictionaries(names, st.sampled_from([{"type": "string"}, {"type": "integer"}]))


@pytest.mark.parametrize("tool", SPELLINGS)
def test_a_tool_is_the_same_operation_however_an_sdk_spells_it(tool: Any) -> None:
    assert catalog_of([tool]) == catalog_of([SPELLINGS[0]])
    assert catalog_of([tool]).get("track").input_schema == SCHEMA


@given(st.dictionaries(names, properties, max_size=5), st.randoms())
def test_tools_in_another_order_are_the_same_catalog(tools: dict[str, Any], random: Any) -> None:
    listed: list[Json] = [
        {"name": name, "input_schema": {"type": "object", "properties": fields}}
        for name, fields in tools.items()
    ]
    shuffled = random.sample(listed, len(listed))
    assert catalog_of(shuffled) == catalog_of(listed)
    assert catalog_of(shuffled).fingerprint == catalog_of(listed).fingerprint


@given(properties, properties)
def test_tools_have_one_fingerprint_just_when_their_schemas_are_equal(one: Any, other: Any) -> None:
    prints = [
        catalog_of([{"name": "track", "input_schema": {"properties": fields}}]).fingerprint
        for fields in (one, other)
    ]
    assert (prints[0] == prints[1]) == (one == other)


def test_a_tool_without_a_schema_counts_as_a_whole() -> None:
    search: Json = {"type": "file_search", "vector_store_ids": ["a"]}
    other: Json = {"type": "file_search", "vector_store_ids": ["b"]}
    assert catalog_of([search]).names == ("file_search",)
    assert catalog_of([search]).fingerprint != catalog_of([other]).fingerprint


@pytest.mark.parametrize("key", ["readOnlyHint", "read_only_hint"])
def test_only_what_mcp_says_only_reads_is_a_read(key: str) -> None:
    reads: Json = {"name": "track", "inputSchema": SCHEMA, "annotations": {key: True}}
    assert catalog_of([reads]).get("track").effect == "read"
    assert catalog_of([SPELLINGS[0]]).get("track").effect == "write"


@pytest.mark.parametrize(
    "tool", [{}, {"name": " "}, {"type": "function"} | {"name": 5}, "track", 7]
)
def test_what_names_no_tool_is_refused_with_its_place(tool: Any) -> None:
    with pytest.raises(InvalidInput, match=r"tools\[1\]"):
        catalog_of([SPELLINGS[0], tool])
