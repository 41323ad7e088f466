"""Plans and a catalog for the tests of plans."""

import pytest

from semcache import Catalog, Operation
from semcache.canonical import JsonObject
from tests.onemcp import onemcp
from tests.orra import IDS, two_services


@pytest.fixture
def seed() -> JsonObject:
    """The plan of the OneMCP document, with its placeholders."""
    return onemcp()


@pytest.fixture
def catalog() -> Catalog:
    """Operations that a plan may name: `find` is strict about its input, `sell` takes anything."""
    strict: JsonObject = {
        "type": "object",
        "properties": {
            "limit": {"type": "integer", "minimum": 1},
            "filters": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"field": {"enum": ["year", "state"]}, "value": {}},
                    "required": ["field"],
                },
            },
            "value": {
                "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]
            },
        },
        "required": ["limit"],
        "additionalProperties": False,
    }
    return Catalog([
        Operation("find", "Find.", strict, effect="read"),
        Operation("sell", "Sell.", {}),
    ])  # fmt: skip


@pytest.fixture
def orra() -> JsonObject:
    """The plan of the article of orra."""
    return two_services(**IDS)


@pytest.fixture
def services() -> Catalog:
    """The two services of that plan, with closed inputs."""

    def takes(name: str) -> JsonObject:
        return {
            "type": "object",
            "properties": {name: {"type": "string"}, "note": {"type": "string"}},
            "required": [name],
            "additionalProperties": False,
        }

    return Catalog([
        Operation("customer-service", "Find a customer.", takes("customerId"), effect="read"),
        Operation("order-system", "Find an order.", takes("orderId"), effect="read"),
    ])  # fmt: skip
