"""The result of a lookup: a hit or a miss, each with the way it came about."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

from semcache.canonical import Json, JsonObject
from semcache.events import Phase, Tier
from semcache.matching.gates import Verdict
from semcache.plans.document import ExecutionPlan

Reason = Literal[
    "empty",
    "no_candidate",
    "threshold",
    "parameters",
    "slots",
    "signs",
    "words",
    "catalog",
    "grounding",
    "pinned",
    "binding",
    "check",
    "vetoed",
    "contested",
    "risk",
    "writes",
    "explored",
    "schema",
    "too_slow",
    "store_failed",
    "embedder_failed",
    "failed",
]
"""Why a prompt missed: the verdict that the nearest candidate failed on, or what was not there."""


_CELL = "text-align:left;padding:2px 8px"  # Style of a table cell in a notebook.


class Candidate(NamedTuple):  # each hit makes one: a third of the time of a frozen dataclass
    """An entry that was considered."""

    entry: str
    """Id of the entry."""
    key: str
    """Readable key of the entry."""
    template: str
    """Template text of the entry."""
    tier: Tier
    score: float
    """Cosine of the template texts, in [-1, 1], in the unit of all-MiniLM-L6-v2; 1 where they are
    equal."""
    verdicts: tuple[Verdict, ...]
    """What the gates said, in order, up to the first refusal."""

    @property
    def served(self) -> bool:
        """Whether every verdict passed."""
        return all(verdict.passed for verdict in self.verdicts)

    def cleaned(self, clean: Callable[[str], str]) -> "Candidate":
        """Return the candidate with the reasons of its verdicts as `clean` leaves them."""
        if not any(verdict.reason for verdict in self.verdicts):
            return self
        verdicts = tuple(replace(v, reason=clean(v.reason)) for v in self.verdicts)
        return self._replace(verdicts=verdicts)

    def to_dict(self) -> JsonObject:
        """Return the candidate as JSON."""
        return {
            "entry": self.entry,
            "key": self.key,
            "template": self.template,
            "tier": self.tier,
            "score": round(self.score, 4),
            "verdicts": [
                {"gate": v.gate, "passed": v.passed, "reason": v.reason} for v in self.verdicts
            ],
        }

    def html(self) -> str:
        """Return the candidate as a row of an HTML table; every text is escaped."""
        refused = next((v for v in self.verdicts if not v.passed), None)
        verdict = f"{refused.gate}: {refused.reason}" if refused else "passed"
        cells = (f"{self.score:.3f}", self.tier, self.template, verdict)
        inner = "".join(f"<td style='{_CELL}'>{escape(cell)}</td>" for cell in cells)
        return f"<tr>{inner}</tr>"


class Trace(NamedTuple):  # as `Candidate`
    """How a lookup went."""

    prompt: str
    tenant: str
    template: str
    """Template text of the prompt; empty if the prompt was never read."""
    key: str = ""
    """Prompt Schema Key of the prompt; empty without a schema."""
    unexplained: tuple[str, ...] = ()
    """Words that kept the schema from being complete."""
    tiers: tuple[tuple[Tier, str], ...] = ()
    """Each tier that was asked, and what it said."""
    candidates: tuple[Candidate, ...] = ()
    """Entries considered, in the order of consideration."""
    seconds: Mapping[Phase, float] = MappingProxyType({})
    """Phase → seconds."""
    catalog: str = ""
    """Fingerprint of what its plan may call; empty if nobody said."""
    change: int = 0
    """Number of the last change of the store that the lookup knew of; 0 if it knew of none."""

    def to_dict(self) -> JsonObject:
        """Return the trace as JSON."""
        return {
            "prompt": self.prompt,
            "tenant": self.tenant,
            "template": self.template,
            "key": self.key,
            "unexplained": list(self.unexplained),
            "tiers": dict[str, Json](self.tiers),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "milliseconds": {str(k): round(v * 1000, 3) for k, v in self.seconds.items()},
        }

    def lines(self) -> list[str]:
        """Return the trace as lines for a person."""
        out = [f"prompt    {self.prompt}", f"template  {self.template}"]
        if self.key:
            partial = f"  (partial: {', '.join(self.unexplained)})" if self.unexplained else ""
            out.append(f"key       {self.key}{partial}")
        out += [f"tier {tier:9s} {said}" for tier, said in self.tiers]
        for candidate in self.candidates:
            out.append(f"  {candidate.score:+.3f} {candidate.tier:9s} {candidate.template}")
            out += [
                f"         {'pass' if v.passed else 'FAIL'} {v.gate}"
                + (f": {v.reason}" if v.reason else "")
                for v in candidate.verdicts
            ]
        return out

    def html(self, head: str) -> str:
        """Return the trace as HTML for a notebook below `head`; every text is escaped."""
        template = f"template text: <code>{escape(self.template)}</code>"
        parts = [f"<b>{escape(head)}</b> {escape(self.prompt)}<br><small>{template}</small>"]
        parts += [f"<br><small>{tier} tier: {escape(said)}</small>" for tier, said in self.tiers]
        if self.candidates:
            heads = ("score", "tier", "template text", "verdict")
            top = "".join(f"<th style='{_CELL}'>{name}</th>" for name in heads)
            rows = "".join(candidate.html() for candidate in self.candidates)
            parts.append(f"<table><tr>{top}</tr>{rows}</table>")
        return f"<div>{''.join(parts)}</div>"


@dataclass(frozen=True, slots=True)
class Hit:
    """A cached plan with this prompt's own values."""

    plan: ExecutionPlan
    """The bound plan."""
    tier: Tier
    score: float
    """Cosine of the template texts, in [-1, 1], in the unit of all-MiniLM-L6-v2; 1 for the template
    and schema tiers."""
    params: Mapping[str, Json]
    """Parameter name → this prompt's own value."""
    entry: str
    """Id of the entry that was served."""
    key: str
    """Readable key of the entry: its Prompt Schema Key, else its template text."""
    trace: Trace = field(repr=False)
    risk: float = 0.0
    """Estimated chance that the plan is wrong, in [0, 1]."""

    def __bool__(self) -> Literal[True]:  # so that `if found:` tells a type checker which it is
        return True

    def explain(self) -> str:
        """Return, for a person, each tier and gate with its verdict."""
        head = f"HIT {self.tier} {self.score:.3f} {self.key}"
        risk = f"risk      {self.risk:.2%} that the plan is wrong"
        return "\n".join([head, risk, *self.trace.lines()])

    def to_dict(self) -> JsonObject:
        """Return the hit as JSON, plan included."""
        return {
            "hit": True,
            "tier": self.tier,
            "score": self.score,
            "risk": self.risk,
            "entry": self.entry,
            "key": self.key,
            "params": dict(self.params),
            "plan": self.plan.to_dict(),
            "trace": self.trace.to_dict(),
        }

    def _repr_html_(self) -> str:
        head = f"HIT {self.tier} {self.score:.3f}, risk {self.risk:.2%}"
        if self.params:
            head += f" ({', '.join(f'{name} = {value!r}' for name, value in self.params.items())})"
        return self.trace.html(head)


@dataclass(frozen=True, slots=True)
class Miss:
    """No plan could be served, and why. A miss is false."""

    reason: Reason
    """What the nearest candidate failed on, or what was not there."""
    nearest: Candidate | None
    """The candidate that came nearest; None if there was none."""
    trace: Trace = field(repr=False)

    def __bool__(self) -> Literal[False]:
        return False

    def explain(self) -> str:
        """Return, for a person, each tier and gate with its verdict, and the near misses."""
        return "\n".join([f"MISS {self.reason}", *self.trace.lines()])

    def to_dict(self) -> JsonObject:
        """Return the miss as JSON."""
        return {
            "hit": False,
            "reason": self.reason,
            "nearest": self.nearest.to_dict() if self.nearest else None,
            "trace": self.trace.to_dict(),
        }

    def _repr_html_(self) -> str:
        return self.trace.html(f"MISS {self.reason}")


Found: TypeAlias = Hit | Miss
"""What a lookup gives."""
