"""A program is cached from one prompt and served, rebound, to another."""

import json
import re

import pytest

from semcache import Catalog, Hit, Operation, Parameter, PlanCache
from semcache.canonical import Json, JsonObject
from semcache.execution.program import ProgramEngine
from semcache.models.minilm import MiniLMEmbedder
from semcache.testing import FakeClock, HashEmbedder, ScriptedModel
from tests.executing import executed

GOAL = "Provide best practices for optimizing {} performance for a high-volume {} application"
FIRST, SECOND = GOAL.format("TiDB", "e-commerce"), GOAL.format("CockroachDB", "gaming")
OWN = [Parameter("product", "TiDB", "TiDB"), Parameter("application", "e-commerce", "e-commerce")]
NEW = {"product": "CockroachDB", "application": "gaming"}


@pytest.fixture
def queries() -> list[Json]:
    return []


@pytest.fixture
def catalog(queries: list[Json]) -> Catalog:
    schema: JsonObject = {
        "type": "object",
        "properties": {"query": {"type": "string"}, "top_k": {"type": "integer"}},
        "required": ["query"],
        "additionalProperties": False,
    }

    def find(given: JsonObject) -> Json:
        queries.append(given["query"])
        return [{"text": "…"}]

    return Catalog(
        Operation(name, "Find.", schema, effect="read", call=find)
        for name in ("vector_search", "retrieve_knowledge_graph")
    )


@pytest.fixture
def service(catalog: Catalog, queries: list[Json]) -> tuple[Catalog, list[Json]]:
    """The operations that the program calls, and the queries that reach them."""
    return catalog, queries


@pytest.fixture
def planned(tidb: str) -> str:
    """The document's example as a planner writes it, with placeholders for the prompt's values."""
    text = re.sub(r"\bTiDB\b", "{{params.product}}", tidb)
    return re.sub(r"(?i)\be-commerce\b", "{{params.application}}", text)


# specs: C-1, C-2
@pytest.mark.parametrize(
    ("params", "application", "found", "trace"),
    [
        (NEW, "gaming", True, "0 1 2 3 4 5 7 8 9 10"),
        (None, "e-commerce", False, "0 1 2 3 6 7 8 9 10"),
    ],
    ids=["given", "read from the words"],
)
def test_the_documents_program_is_served_rebound_and_runs(
    service: tuple[Catalog, list[Json]],
    planned: str,
    *,
    params: dict[str, str] | None,
    application: str,
    found: bool,
    trace: str,
) -> None:
    catalog, queries = service
    with PlanCache.open(catalog=catalog, embedder=HashEmbedder(), clock=FakeClock()) as cache:
        stored = cache.store(FIRST, planned, params=OWN, tenant="acme")
        assert stored, stored.reason
        second = GOAL.format("CockroachDB", application)
        hit = cache.lookup(second, tenant="acme", params=params)
        assert isinstance(hit, Hit), hit.explain()
    model = ScriptedModel(["v25.2", json.dumps({"result": found}), "Use indexes."])
    outcome = executed(ProgramEngine(model), hit.plan, catalog)
    assert [node.node for node in outcome.nodes] == trace.split()
    assert outcome.text == (
        "Best practices for optimizing CockroachDB v25.2 performance for a high-volume "
        f"{application} application:\n\nUse indexes."
    )
    assert queries[0] == "CockroachDB latest stable version"
    assert "TiDB" not in json.dumps(hit.plan.to_dict())


def test_a_paraphrase_gets_the_program_by_meaning(
    catalog: Catalog, planned: str, minilm: MiniLMEmbedder
) -> None:
    with PlanCache.open(catalog=catalog, embedder=minilm, clock=FakeClock()) as cache:
        cache.store(FIRST, planned, params=OWN)
        hit = cache.lookup(f"Please {SECOND[0].lower()}{SECOND[1:]}", params=NEW)
    assert isinstance(hit, Hit), hit.explain()
    assert hit.plan.format == "program"
