"""`vector_search` over a user's own texts: what a program asks when it needs knowledge."""

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

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

    The vectors live in `index`, which must be empty (`stores.faiss.FaissIndex()`) and is this
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
