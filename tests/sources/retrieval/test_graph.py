"""`retrieve_knowledge_graph` over a small graph of one's own."""

import pytest

from semcache import Catalog
from semcache.execution.program import ProgramEngine
from semcache.models.minilm import MiniLMEmbedder
from semcache.plans.program import ProgramPlan
from semcache.ports import Limits
from semcache.sources.retrieval import MAX_RELATIONSHIPS, Graph
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import FakeClock, HashEmbedder, RecordingObserver

FACTS = [
    ("TiDB 8.5", "is the latest stable version of", "TiDB"),
    ("TiDB 8.5", "was released in", "December 2024"),
    ("TiKV", "stores the data of", "TiDB"),
    ("PostgreSQL", "is written in", "C"),
]


@pytest.fixture
def graph(minilm: MiniLMEmbedder) -> Graph:
    graph = Graph(minilm, FaissIndex())
    graph.add_nodes([("TiDB", "a distributed SQL database"), ("PostgreSQL", "")])
    graph.add(FACTS)
    return graph


def test_what_is_nearest_comes_with_its_neighborhood(graph: Graph) -> None:
    found = graph.retrieve("TiDB latest stable version", top_k=1)
    nodes, facts = found["nodes"], found["relationships"]
    assert isinstance(facts, list)
    assert isinstance(nodes, list)
    assert facts[0] == {
        "source": "TiDB 8.5",
        "relation": "is the latest stable version of",
        "target": "TiDB",
    }
    assert len(facts) == 3
    assert {"name": "TiDB", "description": "a distributed SQL database"} in nodes
    assert "PostgreSQL" not in str(found)


def test_a_description_is_found_by_its_meaning(graph: Graph) -> None:
    found = graph.retrieve("a database spread over many machines", top_k=1)
    assert isinstance(found["nodes"], list)
    assert found["nodes"][0] == {"name": "TiDB", "description": "a distributed SQL database"}


def test_a_program_asks_the_graph(graph: Graph) -> None:
    plan = ProgramPlan.from_dict([
        {"seq_no": 0, "type": "retrieve_knowledge_graph",
         "parameters": {"query": "When did TiDB 8.5 come out?", "top_k": 1, "output_var": "g"}},
        {"seq_no": 1, "type": "assign", "parameters": {"final_answer": "${g.relationships}"}},
    ])  # fmt: skip
    outcome = ProgramEngine().execute(
        plan,
        catalog=Catalog([graph.operation()]),
        limits=Limits(allow_writes=False),
        clock=FakeClock(),
        observer=RecordingObserver(),
    )
    assert "December 2024" in outcome.text


def test_facts_are_kept_once_and_an_empty_graph_answers() -> None:
    graph = Graph(HashEmbedder(), FaissIndex())
    assert graph.retrieve("x") == {"nodes": [], "relationships": []}
    graph.add([("a", "knows", "b"), ("a", "knows", "b")])
    graph.add([("a", "knows", "b")])
    graph.add([])
    assert len(graph) == 1


def test_a_thing_that_everything_is_related_to_does_not_bring_everything() -> None:
    graph = Graph(HashEmbedder(), FaissIndex())
    graph.add(("hub", "has", f"part {i}") for i in range(3 * MAX_RELATIONSHIPS))
    found = graph.retrieve("hub", top_k=2)["relationships"]
    assert isinstance(found, list)
    assert len(found) == MAX_RELATIONSHIPS
