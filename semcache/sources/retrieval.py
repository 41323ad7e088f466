"""Operations that find texts, and what texts tell of things, in an index of the caller."""

import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Operation
from semcache.errors import InvalidInput
from semcache.ports import Embedder, VectorIndex

CHUNK_CHARS = 800
"""Characters of a chunk at most: about the 256 tokens that small embedders read of a text."""
MAX_TOP_K = 100

_INPUT: JsonObject = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What is looked for."},
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": MAX_TOP_K,
            "default": 5,
            "description": "How many results at most.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a text that answers a query."""

    source: str
    """Name of the text."""
    part: int
    """Which part of it, from 0."""
    text: str
    score: float
    """Cosine with the query, in [-1, 1]; higher is nearer."""


class Texts:
    """Texts by name, cut into chunks and searched by meaning.

    The vectors live in `index`, which must be empty (`FaissIndex()`) and is this
    object's from then on. Safe from several threads as far as index and embedder are.
    """

    def __init__(
        self, embedder: Embedder, index: VectorIndex, *, chunk_chars: int = CHUNK_CHARS
    ) -> None:
        """Keep what is needed; nothing is loaded before the first `add`.

        Raises:
            InvalidInput: the index is not empty, or `chunk_chars` is under 1.
        """
        if len(index) or chunk_chars < 1:
            raise InvalidInput(
                f"the index has {len(index)} vectors and chunk_chars is {chunk_chars}; "
                "expected an empty index of its own, and 1 or more"
            )
        self._embedder = embedder
        self._index = index
        self._chunk_chars = chunk_chars
        self._lock = threading.Lock()
        self._chunks: dict[str, tuple[str, int, str]] = {}
        self._parts: dict[str, int] = {}

    def add(self, texts: Mapping[str, str]) -> int:
        """Take `texts` (name → text) in, replacing those of the same names; return the chunks made.

        Raises:
            EmbeddingError: the embedder cannot answer; nothing was changed.
        """
        cut = {name: list(chunks(text, self._chunk_chars)) for name, text in texts.items()}
        rows = [(name, i, part) for name, parts in cut.items() for i, part in enumerate(parts)]
        vectors = self._embedder.embed([part for _, _, part in rows]) if rows else ()
        with self._lock:
            for name, parts in cut.items():
                self._forget(name)
                self._parts[name] = len(parts)
            for row, vector in zip(rows, vectors, strict=True):
                key = _key(row[0], row[1])
                self._chunks[key] = row
                self._index.add(key, vector)
        return len(rows)

    def remove(self, name: str) -> bool:
        """Forget the text of that name; return whether it was there."""
        with self._lock:
            return self._forget(name)

    def _forget(self, name: str) -> bool:
        parts = self._parts.pop(name, None)
        for i in range(parts or 0):
            self._index.remove(_key(name, i))
            del self._chunks[_key(name, i)]
        return parts is not None

    def search(self, query: str, top_k: int = 5) -> list[Chunk]:
        """Return at most `top_k` chunks, nearest first; `[]` if there are no texts."""
        vector = self._embedder.embed([query])[0]
        with self._lock:
            near = self._index.search(vector, top_k)
            return [Chunk(*self._chunks[found.id], found.similarity) for found in near]

    def operation(self, name: str = "vector_search") -> Operation:
        """Return searching these texts as an operation that reads."""
        return Operation(
            name,
            "Find the passages of the stored texts that are nearest in meaning to a query.",
            _INPUT,
            output_schema=_CHUNKS,
            effect="read",
            call=self._call,
        )

    def _call(self, given: JsonObject) -> list[Json]:
        found = self.search(str(given["query"]), top_k(given))
        return [
            {"source": c.source, "part": c.part, "text": c.text, "score": round(c.score, 4)}
            for c in found
        ]

    def __len__(self) -> int:
        """Return how many texts are kept."""
        return len(self._parts)


_CHUNKS: JsonObject = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "source": {"type": "string"},
            "part": {"type": "integer"},
            "text": {"type": "string"},
            "score": {"type": "number"},
        },
    },
}


def top_k(given: JsonObject) -> int:
    """Return how many results an input asks for."""
    wanted = given.get("top_k", 5)
    return wanted if isinstance(wanted, int) else 5


def _key(name: str, part: int) -> str:
    return f"{part}:{name}"


_BREAKS = (re.compile(r"\n\s*\n"), re.compile(r"(?<=[.!?])\s+"), re.compile(r"\s+"))


def chunks(text: str, max_chars: int = CHUNK_CHARS) -> Iterator[str]:
    """Yield `text` in parts of at most `max_chars` characters, without white space around them.

    It is cut at the last end of a paragraph that fits, else of a sentence, else of a word.
    """
    start = 0
    while start < len(text):
        end = _end(text, start, max_chars)
        part = text[start:end].strip()
        if part:
            yield part
        start = end


def _end(text: str, start: int, max_chars: int) -> int:
    limit = start + max_chars
    if limit >= len(text):
        return len(text)
    # Not in the first quarter: many tiny chunks say less than a cut paragraph.
    first = start + max_chars // 4
    for pattern in _BREAKS:
        ends = [found.end() for found in pattern.finditer(text, first, limit)]
        if ends:
            return ends[-1]
    return limit


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

    The vectors live in `index`, which must be empty (`FaissIndex()`) and is this
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
