"""Which operations of a large catalog a text is about: words and meaning, two rankings in one."""

import logging
import math
import re
import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from semcache.canonical import Json
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.errors import EmbeddingError, InvalidSettings
from semcache.ports import Embedder, Vector
from semcache.prompts.words import FUNCTION_WORDS, POLITENESS, singular, tokens

log = logging.getLogger(__name__)

KEPT_VECTORS = 10_000
"""Operations whose vectors are remembered."""
KEPT_WORDS = 8
"""Catalogs whose words are remembered."""
EMBEDDED = 400
"""Operations that are embedded at most, those with the likeliest words; embedding 5,000 of them
would take half a minute."""
FUSION = 60
"""The constant of reciprocal rank fusion, as its authors give it."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_IDLE = FUNCTION_WORDS | POLITENESS


def wording(operation: Operation) -> str:
    """Return what an operation says of itself in plain words: name, summary, names of inputs."""
    properties = operation.input_schema.get("properties")
    inputs = ", ".join(properties) if isinstance(properties, dict) else ""
    said = f"{operation.name}: {operation.summary} ({inputs})"
    return " ".join(_CAMEL.sub(" ", said).replace("_", " ").replace(".", " ").split())


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a catalog, for BM25 (Robertson and Zaragoza 2009)."""

    counts: tuple[Counter[str], ...]
    """For each operation, in the order of the catalog."""
    rarity: dict[str, float]
    """Word → its inverse document frequency."""
    length: float
    """Mean number of words."""

    @classmethod
    def of(cls, operations: Sequence[Operation]) -> "_Words":
        """Count the words of `operations`."""
        counts = tuple(Counter(_content(_told(operation))) for operation in operations)
        spread = Counter(word for counted in counts for word in counted)
        total = len(operations)
        rarity = {
            word: math.log(1 + (total - count + 0.5) / (count + 0.5))
            for word, count in spread.items()
        }
        return cls(counts, rarity, sum(c.total() for c in counts) / max(total, 1) or 1.0)

    def scores(self, words: Iterable[str]) -> list[float]:
        """Return how well each operation matches `words`; 0 shares none with them."""
        asked = {word: self.rarity[word] for word in words if word in self.rarity}
        return [
            sum(
                rarity * counted[word] * 2.2 / (counted[word] + 1.2 * self._norm(counted))
                for word, rarity in asked.items()
                if word in counted
            )
            for counted in self.counts
        ]

    def _norm(self, counted: Counter[str]) -> float:
        return 0.25 + 0.75 * counted.total() / self.length


class Relevant:
    """Finds the operations that a text is likely about. Safe from several threads.

    Two rankings, by BM25 over words and by cosine of embeddings, become one by reciprocal rank
    fusion (Cormack, Clarke and Büttcher 2009). Only operations with the likeliest words are
    embedded, each once; an embedder that fails leaves the ranking by words.
    """

    def __init__(self, embedder: Embedder | None = None, *, most: int = 40) -> None:
        """Keep what is asked for.

        Args:
            embedder: Compares meanings; None: words decide alone.
            most: Operations at most, at least 1; a catalog that has no more is taken whole.

        Raises:
            InvalidSettings: `most` is under 1.
        """
        if most < 1:
            raise InvalidSettings(f"most is {most!r}; expected 1 or more operations")
        self.most = most
        """Operations at most."""
        self._embedder = embedder
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._words: OrderedDict[str, _Words] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, text: str, catalog: Catalog, *, widened: int = 1) -> tuple[Operation, ...]:
        """Return the operations of `catalog` that `text` is likely about, in the catalog's order.

        `widened`: how many times `most` they may be. A catalog that has no more comes back whole.
        """
        operations = tuple(catalog)
        most = self.most * widened
        if len(operations) <= most:
            return operations
        chosen = {operation.name for operation in self.ranked(text, catalog)[:most]}
        return tuple(one for one in operations if one.name in chosen)

    def ranked(self, text: str, catalog: Catalog) -> list[Operation]:
        """Return all operations of `catalog`, the likeliest for `text` first, ties by name."""
        operations = tuple(catalog)
        by_words = self._known_words(catalog, operations).scores(set(_content(text)))
        first = sorted(range(len(operations)), key=lambda at: (-by_words[at], at))
        near = self._by_meaning(text, [operations[at] for at in first[: max(EMBEDDED, self.most)]])
        score = {at: 1 / (FUSION + rank) for rank, at in enumerate(first) if by_words[at] > 0}
        for rank, place in enumerate(near):
            at = first[place]
            score[at] = score.get(at, 0.0) + 1 / (FUSION + rank)
        order = sorted(range(len(operations)), key=lambda at: (-score.get(at, 0.0), at))
        return [operations[at] for at in order]

    def cosines(self, text: str, operations: Sequence[Operation]) -> list[float]:
        """Return how near `text` is to each operation in meaning, in [-1, 1]; higher is nearer.

        `[]` without an embedder, or where it fails (which is logged). Each operation is embedded
        once, as long as its fingerprint is the same.
        """
        if self._embedder is None or not operations:
            return []
        try:
            asked = self._embedder.embed([text])[0]
            rows = self._embedded(self._embedder, operations)
        except EmbeddingError as error:
            log.warning("operations are ranked by their words alone: %s", error)
            return []
        return [float(cosine) for cosine in rows @ asked]

    def _known_words(self, catalog: Catalog, operations: Sequence[Operation]) -> _Words:
        with self._lock:
            if catalog.fingerprint in self._words:
                self._words.move_to_end(catalog.fingerprint)
                return self._words[catalog.fingerprint]
        words = _Words.of(operations)
        with self._lock:
            self._words[catalog.fingerprint] = words
            while len(self._words) > KEPT_WORDS:
                self._words.popitem(last=False)
        return words

    def _by_meaning(self, text: str, operations: Sequence[Operation]) -> list[int]:
        """Return places of `operations`, the nearest to `text` first; `[]` if nothing can tell."""
        near = self.cosines(text, operations)
        return sorted(range(len(near)), key=lambda at: (-near[at], at))

    def _embedded(self, embedder: Embedder, operations: Sequence[Operation]) -> np.ndarray:
        with self._lock:
            kept = dict(self._vectors)
        prints = [operation.fingerprint for operation in operations]
        missing = {p: o for p, o in zip(prints, operations, strict=True) if p not in kept}
        if missing:
            rows = embedder.embed([wording(operation) for operation in missing.values()])
            kept.update(zip(missing, rows, strict=True))
        with self._lock:
            for print_ in prints:
                self._vectors[print_] = kept[print_]
                self._vectors.move_to_end(print_)
            while len(self._vectors) > KEPT_VECTORS:
                self._vectors.popitem(last=False)
        return np.stack([kept[print_] for print_ in prints])


def _content(text: str) -> list[str]:
    return [singular(word) for word in tokens(text) if word not in _IDLE]


def _told(operation: Operation) -> str:
    """Return the words of an operation, those of its inputs' descriptions and enums among them."""
    properties = operation.input_schema.get("properties")
    inner: list[str] = []
    for schema in properties.values() if isinstance(properties, dict) else ():
        if isinstance(schema, dict):
            inner += [str(schema.get("description", "")), *_choices(schema.get("enum"))]
    return " ".join((wording(operation), *inner))


def _choices(listed: Json) -> list[str]:
    return [one for one in listed if isinstance(one, str)] if isinstance(listed, list) else []
