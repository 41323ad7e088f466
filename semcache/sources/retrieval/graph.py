"""`retrieve_knowledge_graph` over a small graph of one's own: things, and how they are related.

Plain dictionaries: what a program asks for is the neighborhood of the few facts that are nearest to
a query, for which networkx would bring an import and nothing else.
"""

import sys
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Operation
from semcache.ports import Embedder, VectorIndex
from semcache.sources.retrieval.texts import Texts, top_k

MAX_RELATIONSHIPS = 50
"""Relationships of one answer; a thing that everything is related to must not bring everything."""


@dataclass(frozen=True, slots=True)
class Relationship:
    """That one thing is related to another: `("TiDB 8.5", "is a version of", "TiDB")`."""

    source: str
    relation: str
    target: str

    @property
    def sentence(self) -> str:
        """The fact in words, as it is embedded."""
        return f"{self.source} {self.relation} {self.target}"


class Graph:
    """Nodes with descriptions and relationships between them, found by meaning.

    The vectors live in `index`, which must be empty (`stores.faiss.FaissIndex()`) and is this
    object's from then on. Safe from several threads as far as index and embedder are.
    """

    def __init__(self, embedder: Embedder, index: VectorIndex) -> None:
        """Keep what is needed; nothing is loaded before the first fact.

        Raises:
            InvalidInput: the index is not empty.
        """
        self._texts = Texts(embedder, index, chunk_chars=sys.maxsize)
        self._lock = threading.Lock()
        self._nodes: dict[str, str] = {}
        self._facts: dict[str, Relationship] = {}
        self._around: dict[str, dict[str, None]] = {}

    def add_nodes(self, nodes: Iterable[tuple[str, str]]) -> None:
        """Keep nodes: name and description (may be empty), replacing those of the same names.

        Raises:
            EmbeddingError: the embedder cannot answer; nothing was changed.
        """
        known = dict(nodes)
        self._texts.add({_node_key(n): f"{n}: {said}" if said else n for n, said in known.items()})
        with self._lock:
            self._nodes |= known

    def add(self, facts: Iterable[tuple[str, str, str]]) -> None:
        """Keep relationships: source, relation, target; nodes not known yet have no description.

        Raises:
            EmbeddingError: the embedder cannot answer; nothing was changed.
        """
        found = {"fact:" + "\0".join(fact): Relationship(*fact) for fact in facts}
        ends = dict.fromkeys(end for fact in found.values() for end in (fact.source, fact.target))
        new = {name: "" for name in ends if name not in self._nodes}
        self._texts.add({_node_key(name): name for name in new}
                        | {key: fact.sentence for key, fact in found.items()})  # fmt: skip
        with self._lock:
            self._nodes = new | self._nodes
            self._facts |= found
            for key, fact in found.items():
                for end in (fact.source, fact.target):
                    self._around.setdefault(end, {})[key] = None

    def retrieve(self, query: str, top_k: int = 5) -> JsonObject:
        """Return `{"nodes": [...], "relationships": [...]}` around what is nearest to `query`.

        That is the nodes and the ends of the relationships among the `top_k` nearest, and every
        relationship of theirs, nearest first; at most 50. Empty lists for an empty graph.
        """
        near = [found.source for found in self._texts.search(query, top_k)]
        with self._lock:
            facts = self._facts_around(near)
            nodes = dict.fromkeys(self._named(near))
            nodes |= dict.fromkeys(end for fact in facts for end in (fact.source, fact.target))
            return {
                "nodes": [{"name": name, "description": self._nodes[name]} for name in nodes],
                "relationships": [
                    {"source": f.source, "relation": f.relation, "target": f.target} for f in facts
                ],
            }

    def _named(self, keys: Iterable[str]) -> Iterator[str]:
        for key in keys:
            if key in self._facts:
                yield from (self._facts[key].source, self._facts[key].target)
            elif (name := key.removeprefix(_node_key(""))) in self._nodes:
                yield name  # else it is being added this very moment

    def _facts_around(self, near: list[str]) -> list[Relationship]:
        keys = dict.fromkeys(key for key in near if key in self._facts)
        for name in dict.fromkeys(self._named(near)):
            keys |= self._around.get(name, {})
        return [self._facts[key] for key in list(keys)[:MAX_RELATIONSHIPS]]

    def operation(self, name: str = "retrieve_knowledge_graph") -> Operation:
        """Return asking this graph as an operation that reads."""
        return replace(
            self._texts.operation(name),
            summary="Find the things and relationships of the knowledge graph that are nearest in "
            "meaning to a query. Gives a graph and no answer.",
            output_schema=_GRAPH,
            call=self._call,
        )

    def _call(self, given: JsonObject) -> Json:
        return self.retrieve(str(given["query"]), top_k(given))

    def __len__(self) -> int:
        """Return how many relationships are kept."""
        return len(self._facts)


_GRAPH: JsonObject = {
    "type": "object",
    "properties": {"nodes": {"type": "array"}, "relationships": {"type": "array"}},
}


def _node_key(name: str) -> str:
    return f"node:{name}"
