"""Samples: prompts as they came, whose best candidate proved right or wrong, with its score.

Planned prompts give one for free where a candidate would have been served at a lower score; audits
give those of hits. Nobody chose them for how they turned out, so that they stand for the tenant's
prompts. They are kept in order, for what a tenant asks changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from semcache.canonical import Json, JsonObject

STRETCH = 2048
"""Samples that are kept at most: enough to tell a wrong share of two in a thousand. Then the older
half goes at once, and what is tested with them begins anew."""


class Sample(NamedTuple):
    """One prompt."""

    score: float
    """Of its best candidate, in log odds, as the risk model saw it when the prompt was asked."""
    right: bool
    """Whether the plan made for the prompt is what would have been served, or was."""


@dataclass(slots=True)
class Samples:
    """The last samples of a tenant, oldest first."""

    scale: str = ""
    """What the scores are of, prior and embedder: those of another scale say nothing here."""
    kept: list[Sample] = field(default_factory=list)

    def add(self, scale: str, score: float, *, right: bool) -> None:
        """Take in one more."""
        # Rounded as it is kept in a note: the same follows from it before and after.
        self.merge(Samples(scale, [Sample(round(score, 2), right)]))

    def merge(self, more: "Samples") -> None:
        """Add those of `more`, which are newer; of another scale they take the place of all."""
        if more.scale != self.scale and more.kept:
            self.scale, self.kept = more.scale, []
        self.kept.extend(more.kept)

    def trim(self) -> None:
        """Let the older half go where there are too many."""
        if len(self.kept) > STRETCH:
            del self.kept[: -STRETCH // 2]

    def of(self, scale: str) -> Sequence[Sample]:
        """Return those of that scale."""
        return self.kept if scale == self.scale else ()

    def copy(self) -> "Samples":
        """Return a copy that may be changed."""
        return Samples(self.scale, self.kept.copy())

    def to_json(self) -> JsonObject:
        """Return the samples as JSON."""
        kept: list[Json] = [[sample.score, sample.right] for sample in self.kept]
        return {"scale": self.scale, "kept": kept}
