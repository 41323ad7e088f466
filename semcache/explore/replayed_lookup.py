"""One lookup of a replay and how it came out, and what is wrong with a wrong hit."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from semcache.cache.result import Candidate, Found, Hit, Miss
from semcache.canonical import Json, JsonObject, leaves, pointer_text
from semcache.explore.score import plan_text
from semcache.explore.streams import Row

SHOWN = 4
"""Differences between two plans that are told."""

Outcome = Literal["right", "wrong", "missed"]
Fault = Literal["", "plan", "values", "must miss"]
"""What is wrong with a hit: another plan; the right plan with wrong values; any plan at all."""


@dataclass(frozen=True, slots=True)
class ReplayedLookup:
    """One lookup of a replay and what it should have been."""

    row: Row
    found: Found | None
    """What the cache said; None if it refused the prompt itself."""
    shape: str | None
    """What the right plan shares with plans for other values; None: no plan may be served."""
    servable: bool
    """Whether a plan of that shape was stored before, so that a perfect matcher could serve it."""
    outcome: Outcome
    fault: Fault = ""
    same: tuple[bool | None, ...] = ()
    """For each candidate of the trace, whether its plan has the right shape; None: not known."""
    refused: str = ""
    """Why the cache refused the prompt; empty if it did not."""

    @property
    def hit(self) -> Hit | None:
        """The hit, if there was one."""
        return self.found if isinstance(self.found, Hit) else None

    @property
    def risk(self) -> float | None:
        """The cache's own chance that serving was wrong, in [0, 1]; None if it says nothing."""
        return None if self.hit is None else self.hit.risk

    @property
    def reason(self) -> str:
        """Why it missed; empty for a hit."""
        return self.found.reason if isinstance(self.found, Miss) else self.refused

    @property
    def considered(self) -> tuple[tuple[Candidate, bool | None], ...]:
        """Each candidate of the trace, and whether its plan has the right shape."""
        if self.found is None:
            return ()
        return tuple(zip(self.found.trace.candidates, self.same, strict=True))

    @property
    def doubt(self) -> float:
        """What hits are ordered by, surest first: the risk, else how far the score is from 1."""
        hit = self.hit
        if hit is None:
            return float("inf")
        return 1 - hit.score if self.risk is None else self.risk


@dataclass(frozen=True, slots=True)
class Mistake:
    """A wrong hit, and what to make of it."""

    row: Row
    hit: Hit
    fault: Fault
    differs: tuple[str, ...]
    """Where the served plan differs from the right one, at most `SHOWN` places."""

    @property
    def sure(self) -> str:
        """How the hit came about and how sure the cache was of it, in a few words."""
        risk = f", risk {self.hit.risk:.2%}"
        return f"{self.hit.tier} {self.hit.score:.3f}{risk}"

    @property
    def reason(self) -> str:
        """Why it was served all the same, in a sentence."""
        template = self.hit.trace.template
        candidate = next((c for c in self.hit.trace.candidates if c.served), None)
        if self.fault == "must miss":
            return "what may not be served is never planned, so that nothing contradicts the plan"
        if self.fault == "values":
            return "the plan is right, and a value of the prompt was read otherwise or not at all"
        if self.hit.tier == "schema":
            return f"the plan was made for a prompt with the same schema, {self.hit.key}"
        if candidate is None or candidate.template == template:
            return "the plan was made for the same words but for values: two plans for one question"
        return f"{template!r} was taken for {candidate.template!r}"

    def to_dict(self) -> JsonObject:
        """Return the mistake as JSON."""
        return {
            "id": self.row.id,
            "tenant": self.row.scope,
            "text": self.row.text,
            "template": self.hit.trace.template,
            "fault": self.fault,
            "reason": self.reason,
            "tier": self.hit.tier,
            "score": round(self.hit.score, 4),
            "risk": self.hit.risk,
            "served_key": self.hit.key,
            "differs": list(self.differs),
            "served": self.hit.plan.to_dict(),
            "wanted": self.row.plan,
        }


def mistake(looked: ReplayedLookup) -> Mistake:
    """Return what to make of a wrong hit."""
    assert looked.hit is not None  # noqa: S101 - only hits are wrong
    served, wanted = looked.hit.plan.to_dict(), looked.row.plan
    differs = () if wanted is None else tuple(_differences(served, wanted))[:SHOWN]
    return Mistake(looked.row, looked.hit, looked.fault, differs)


def _differences(served: JsonObject, wanted: JsonObject) -> Iterator[str]:
    mine = {pointer_text(at): value for at, value in leaves(served)}
    right = {pointer_text(at): value for at, value in leaves(wanted)}
    for at in dict.fromkeys([*right, *mine]):
        said, meant = _told(mine, at), _told(right, at)
        if said != meant:
            yield f"{at}: {said} instead of {meant}"


def _told(values: Mapping[str, Json], at: str) -> str:
    return plan_text(values[at]) if at in values else "nothing"
