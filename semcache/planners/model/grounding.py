"""Which grounding is in force for a prompt: the use case that is nearest, if one is near enough."""

from collections.abc import Mapping, Sequence

import numpy as np

from semcache.catalog.grounding import Grounded, Grounding, UseCase
from semcache.errors import InvalidSettings
from semcache.ports import Embedder, Vectors
from semcache.process.memo import Lru, TextKeeper
from semcache.prompts.mentions import find_mentions

MEMO = 10_000  # wordings whose match is remembered, so that a hit costs no embedding


class Groundings(TextKeeper):
    """The groundings of a service. Safe from several threads; embeds nothing before a prompt.

    Prompts are compared without their values and use cases without their variables, so prompts of
    one template have one match. No match is not a failure: there is just nothing to show.
    """

    def __init__(
        self,
        groundings: Sequence[Grounding],
        embedder: Embedder,
        *,
        threshold: float = 0.90,
    ) -> None:
        """Keep what is asked for.

        Args:
            groundings: In order of preference where use cases are equally near.
            embedder: Compares wordings.
            threshold: Cosine that a match must exceed, in [-1, 1].

        Raises:
            InvalidSettings: the threshold is out of range, or two groundings have one name.
        """
        if not -1 <= threshold <= 1:
            raise InvalidSettings(f"threshold is {threshold!r}; expected a cosine in [-1, 1]")
        names = [grounding.name for grounding in groundings]
        if len(set(names)) < len(names):
            raise InvalidSettings(f"two groundings have one name; the names are {names}")
        super().__init__()
        self._cases = [(one, case) for one in groundings for case in one.use_cases]
        self._embedder = embedder
        self._threshold = threshold
        self._vectors: Vectors | None = None
        self._memo: Lru[str, tuple[Grounded | None]] = Lru(MEMO)

    def match(
        self, prompt: str, *, closed: Mapping[str, Sequence[str]] | None = None
    ) -> Grounded | None:
        """Return the use case nearest to `prompt`, or None if none is nearer than the threshold.

        `closed`: field → its values, words that are values of a prompt wherever they stand.

        Raises:
            EmbeddingError: the embedder cannot answer. It is not taken for no match: a plan made
                without the constraints of its domain could break them.
        """
        wording = _without_values(prompt, closed or {})
        known = self._memo.use(wording)
        if known is None:
            known = (self._nearest(wording) if self._cases and wording else None,)
            self._memo.put(wording, known)
        return known[0]

    def forget_texts(self) -> None:
        """Forget the wordings of prompts."""
        self._memo.clear()

    def _nearest(self, wording: str) -> Grounded | None:
        similar = self._known() @ self._embedder.embed([wording])[0]
        best = int(np.argmax(similar))
        if similar[best] <= self._threshold:
            return None
        grounding, case = self._cases[best]
        return Grounded(grounding, case, float(similar[best]))

    def _known(self) -> Vectors:
        """Return the vectors of the use cases, embedded once."""
        if self._vectors is None:
            self._vectors = self._embedder.embed([_wording(case) for _, case in self._cases])
        return self._vectors


def _wording(case: UseCase) -> str:
    return case.wording.strip(" .?!#")


def _without_values(prompt: str, closed: Mapping[str, Sequence[str]]) -> str:
    """Return the prompt without the values that stand in it."""
    kept, end = [], 0
    for mention in find_mentions(prompt, closed=closed):
        kept.append(prompt[end : mention.start])
        end = mention.end
    return " ".join(" ".join([*kept, prompt[end:]]).split()).strip(" .?!#")
