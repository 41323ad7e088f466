"""Resolving by meaning: how near operations are to a step, beside the words that they share."""

from semcache.planners.arguments.operation_index import Indexes, known_as
from semcache.planners.arguments.synonyms import GENERAL, Synonyms
from semcache.planners.arguments.word_evidence import Said
from semcache.planners.model.relevant import Relevant
from semcache.planners.steps.choosing import Candidate, chosen, none
from semcache.planners.steps.intents import SubIntent
from semcache.planners.steps.resolution import Asked, Resolved
from semcache.planners.steps.resolve import AMBIGUOUS, CANDIDATES, WordResolver
from semcache.ports import Embedder

ENOUGH = 0.5
"""Blended scores below are no resolution."""
SHARE = 0.5
"""What the cosine counts in a blended score, in [0, 1]; the rest is the evidence of the words."""


class SemanticResolver:
    """Resolves by the nearness of a step to what operations say of themselves.

    The likeliest operations by words and meaning are looked at; each is embedded once, as long as
    its fingerprint is the same. Where the embedder fails there is no resolution, and a warning.
    Satisfies `Resolver`.
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
        self._enough = enough
        self._ambiguous = ambiguous
        self._indexes = indexes or Indexes()
        self._relevant = Relevant(embedder, indexes=self._indexes)
        self._words = WordResolver(synonyms=synonyms, indexes=self._indexes)

    def resolve(self, intent: SubIntent, asked: Asked) -> Resolved:
        """Return the operation that is nearest in meaning and words; see `Resolver`."""
        ranked = self._relevant.ranked(intent.goal, asked.catalog)[:CANDIDATES]
        cosines = self._relevant.cosines(intent.goal, ranked)
        if not cosines:
            return none(intent, f"nothing is near {intent.goal!r} in meaning")
        cosine = {one.name: near for one, near in zip(ranked, cosines, strict=True)}
        found, unfit = self._words.candidates(
            intent,
            Said.of(intent, asked.catalog, asked.params),
            [known_as(one) for one in ranked],
            asked,
            self._indexes.of(asked.catalog),
        )
        blended = [_blended(one, cosine[one.fit.known.operation.name]) for one in found]
        blended.sort(key=lambda one: (-one.score, one.fit.known.operation.name))
        lacking = [(_blend(score, cosine[one.known.operation.name]), one) for score, one in unfit]
        return chosen(
            intent,
            blended,
            sorted(lacking, key=lambda pair: -pair[0]),
            source="semantic",
            enough=self._enough,
            ambiguous=self._ambiguous,
        )


def _blend(words: float, cosine: float) -> float:
    return SHARE * max(cosine, 0.0) + (1 - SHARE) * words


def _blended(one: Candidate, cosine: float) -> Candidate:
    return Candidate(one.fit, _blend(one.score, cosine), f"{one.why}, meaning {cosine:.2f}")
