"""Resolving by meaning: vectors of operations beside the words that they share with a step."""

from collections import OrderedDict
from threading import Lock

import numpy as np

from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.catalog.shape import verb_and_noun
from semcache.planners.intents import SubIntent
from semcache.planners.operation_index import Indexes, Known
from semcache.planners.resolution import Asked, Resolved
from semcache.planners.resolve import (
    AMBIGUOUS,
    CANDIDATES,
    Candidate,
    Said,
    WordResolver,
    chosen,
    none,
)
from semcache.planners.synonyms import GENERAL, Synonyms
from semcache.ports import Embedder, Vectors

ENOUGH = 0.5
"""Blended scores below are no resolution."""
SHARE = 0.5
"""What the cosine counts in a blended score, in [0, 1]; the rest is the evidence of the words."""
MAX_CATALOGS = 4
"""Catalogs whose vectors are kept as one matrix."""


class SemanticResolver:
    """Resolves by the nearness of a step to what operations say of themselves.

    The vectors of a catalog are made at its first use, one for each operation, and kept by the
    operation's fingerprint: a changed operation is embedded again, and no other. Satisfies
    `Resolver`.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        enough: float = ENOUGH,
        ambiguous: float = AMBIGUOUS,
        synonyms: Synonyms = GENERAL,
        indexes: Indexes | None = None,
    ) -> None:
        """Keep what is asked for; nothing is embedded yet.

        Args:
            embedder: Gives the vectors.
            enough: Blended score in [0, 1] from which an operation is taken.
            ambiguous: Difference of scores up to which two operations are one too many.
            synonyms: Names of inputs that mean the same.
            indexes: Shared by resolvers of one planner; None: own ones.
        """
        self._embedder = embedder
        self._enough = enough
        self._ambiguous = ambiguous
        self._indexes = indexes or Indexes()
        self._words = WordResolver(synonyms=synonyms, indexes=self._indexes)
        self._vectors: dict[str, Vectors] = {}
        self._matrices: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the operation that is nearest in meaning and words; see `Resolver`.

        Raises:
            EmbeddingError: the embedder cannot answer.
        """
        index = self._indexes.of(asked.catalog)
        if not index.known:
            return none(intent, "the catalog has no operations")
        matrix = self.vectors(asked.catalog)
        cosines = matrix @ self._embedder.embed([intent.goal])[0]
        nearest = np.argsort(-cosines, kind="stable")[:CANDIDATES].tolist()
        near: list[Known] = [index.known[place] for place in nearest]
        cosine = {index.known[place].operation.name: float(cosines[place]) for place in nearest}
        found, unfit = self._words.candidates(
            intent, Said.of(intent, asked.catalog, asked.params), near, asked, index
        )
        blended = [self._blended(one, cosine[one.fit.known.operation.name]) for one in found]
        blended.sort(key=lambda one: (-one.score, one.fit.known.operation.name))
        return chosen(
            intent,
            blended,
            [(score * (1 - SHARE), one) for score, one in unfit],
            source="semantic",
            enough=self._enough,
            ambiguous=self._ambiguous,
        )

    def vectors(self, catalog: Catalog) -> Vectors:
        """Return one row an operation, in the catalog's order; embeds those not seen before.

        Raises:
            EmbeddingError: the embedder cannot answer.
        """
        key = f"{self._embedder.fingerprint}/{catalog.fingerprint}"
        with self._lock:
            if key not in self._matrices:
                self._matrices[key] = self._embedded(catalog)
            self._matrices.move_to_end(key)
            while len(self._matrices) > MAX_CATALOGS:
                self._matrices.popitem(last=False)
            return self._matrices[key]

    def _embedded(self, catalog: Catalog) -> Vectors:
        names = {one.name: catalog.fingerprints[one.name] for one in catalog}
        new = [one for one in catalog if names[one.name] not in self._vectors]
        if new:
            rows = self._embedder.embed([described(one) for one in new])
            for one, row in zip(new, rows, strict=True):
                self._vectors[names[one.name]] = row
        return np.stack([self._vectors[fingerprint] for fingerprint in names.values()])

    @staticmethod
    def _blended(one: Candidate, cosine: float) -> Candidate:
        score = SHARE * max(cosine, 0.0) + (1 - SHARE) * one.score
        return Candidate(one.fit, score, f"{one.why}, meaning {cosine:.2f}")


def described(operation: Operation) -> str:
    """Return the text by which an operation is found: its name in words, and its summary."""
    verb, noun = verb_and_noun(operation.name)
    return f"{verb} {noun.replace('_', ' ')}. {operation.summary[:400]}"
