"""The plan of a group, as it is shown."""

import json
from typing import Any

import pytest

from semcache import PlanCache
from semcache.canonical import Json
from semcache.server.calls import outline
from semcache.testing import HashEmbedder

ARGUMENTS = {"order": "A-17", "amount": 30}
CALL = {"id": "c1", "type": "function", "function": {"name": "refund"}}


def outlined(prompt: str, plan: Any) -> Json:
    with PlanCache.open(embedder=HashEmbedder()) as cache:
        assert cache.store(prompt, plan)
        return outline(cache.entries()[0].plan)


@pytest.mark.parametrize(
    ("prompt", "plan", "drawn"),
    [
        (
            "weather in Oslo",
            {"calls": [{"city": "Oslo", "unit": "C"}]},
            {"calls": [{"city": "<city>", "unit": "C"}]},
        ),
        (
            "sales in Ohio in 2024",
            {"sql": "SELECT 1 WHERE state = 'Ohio' AND year = 2024"},
            {"sql": "SELECT 1 WHERE state = '<state>' AND year = <year>"},
        ),
        (
            "refund 30 of order A-17",
            [{**CALL, "function": {"name": "refund", "arguments": json.dumps(ARGUMENTS)}}],
            [
                {
                    **CALL,
                    "function": {
                        "name": "refund",
                        "arguments": '{"order": "<order>", "amount": <amount>}',
                    },
                }
            ],
        ),
    ],
)
def test_a_plan_is_drawn_with_names_where_values_go(prompt: str, plan: Any, drawn: Json) -> None:
    assert outlined(prompt, plan) == drawn
