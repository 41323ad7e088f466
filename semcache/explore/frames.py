"""Frames: what a replay or a cache holds, as pandas data frames. Needs the extra `explore`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Candidate, Found
from semcache.errors import MissingExtra
from semcache.explore.replayed_lookup import ReplayedLookup
from semcache.explore.report import Report
from semcache.matching.evidence import Evidence

if TYPE_CHECKING:
    from pandas import DataFrame


def lookups(report: Report) -> "DataFrame":
    """Return one row a lookup: prompt, what came of it, tier, score, risk, reason of a miss.

    `servable` says whether a perfect matcher could have served it; `risk` is missing where the
    cache tells none, `score` where nothing was considered.
    """
    return _frame(map(_lookup, report.lookups), _LOOKUP)


def candidates(report: Report) -> "DataFrame":
    """Return one row an entry that was considered: its score, its verdicts, and what it was.

    `same_plan` says whether its plan is the right one but for values; missing where that is not
    known. `gate` is the gate that refused it, empty if it was served.
    """
    rows = (
        (looked.row.id, looked.row.scope, same, *_candidate(candidate))
        for looked in report.lookups
        for candidate, same in looked.considered
    )
    return _frame(rows, ("id", "tenant", "same_plan", *_CANDIDATE))


def gates(report: Report) -> "DataFrame":
    """Return one row a gate, in the order asked: what it refused, rightly and wrongly.

    A refusal is right if the candidate's plan was another. `let_through` counts candidates that
    passed it and were asked further or served.
    """
    counts: dict[str, Counter[str]] = {}
    for looked in report.lookups:
        for candidate, same in looked.considered:
            _count_verdicts(counts, candidate, same=same)
    rows = ((gate, *(said[column] for column in _GATE)) for gate, said in counts.items())
    return _frame(rows, ("gate", *_GATE))


def entries(cache: PlanCache, *, tenant: str = "default") -> "DataFrame":
    """Return one row an entry of the tenant, oldest first.

    Raises:
        StoreUnavailable: the store cannot be read.
    """
    rows = (
        (
            entry.id,
            entry.label,
            entry.template.text,
            entry.prompt,
            len(entry.template.slots),
            ", ".join(entry.operations),
            ", ".join(pin.param for pin in entry.plan.pinned),
            len(entry.examples),
            entry.planner,
            entry.created_s,
        )
        for entry in cache.entries(tenant=tenant)
    )
    return _frame(rows, _ENTRY)


def curve(report: Report) -> "DataFrame":
    """Return one row a degree of doubt: hits and wrong hits up to it, hit ratio and precision."""
    rows = ([getattr(point, name) for name in _CURVE] for point in report.curve())
    return _frame(rows, _CURVE)


def neighbors(found: Found) -> "DataFrame":
    """Return one row an entry that this lookup considered, with the verdict that decided.

    For a what-if that nobody counts: `neighbors(cache.lookup("…", what_if=True))`.
    """
    return _frame(map(_candidate, found.trace.candidates), _CANDIDATE)


def words(evidence: Evidence) -> "DataFrame":
    """Return what a tenant's labels say of words, word pairs and families, most seen first.

    `same` counts differences in that word (or exchanges of that pair) where the plan was the same,
    `other` where it was another; `harmless` is the share of `same`. Rows of kind `caution` count
    differences that must be proven harmless, by kind and word, where the risk was low.
    """
    tallies = {
        "word": evidence.words,
        "pair": evidence.pairs,
        "family": evidence.families,
        "caution": evidence.doubted,
    }
    rows = [
        (kind, key, same, other, same / (same + other) if same + other else None, same + other)
        for kind, tally in tallies.items()
        for key in sorted({*tally.same, *tally.other})
        for same, other in (tally.of(key),)
    ]
    frame = _frame(rows, ("kind", "key", "same", "other", "harmless", "seen"))
    return frame.sort_values(["kind", "seen"], ascending=[True, False])


_LOOKUP = (
    "id", "tenant", "text", "template", "outcome", "fault", "servable", "tier", "score", "risk",
    "reason", "shape",
)  # fmt: skip
_CURVE = ("doubt", "hits", "wrong", "hit_ratio", "precision")
_CANDIDATE = ("entry", "template", "tier", "score", "served", "gate", "reason")
_ENTRY = (
    "id", "key", "template", "prompt", "slots", "operations", "pinned", "examples", "planner",
    "created_s",
)  # fmt: skip


def _frame(rows: Iterable[Sequence[object]], columns: Sequence[str]) -> "DataFrame":
    pandas: Any = optional("pandas")
    return pandas.DataFrame(list(rows), columns=list(columns))


def optional(name: str) -> Any:  # noqa: ANN401 - a module that may not be there
    """Return the module `name` of the extra `explore`.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtra(
            f"{name!r} is not installed; `pip install 'semcache-plans[explore]'` brings it"
        ) from error


def _lookup(looked: ReplayedLookup) -> Sequence[object]:
    hit, found = looked.hit, looked.found
    nearest = getattr(found, "nearest", None)
    return (
        looked.row.id,
        looked.row.scope,
        looked.row.text,
        found.trace.template if found is not None else "",
        looked.outcome,
        looked.fault,
        looked.servable,
        hit.tier if hit else "",
        hit.score if hit else nearest.score if nearest else None,
        looked.risk,
        looked.reason,
        looked.shape,
    )


def _candidate(candidate: Candidate) -> Sequence[object]:
    refused = None if candidate.served else candidate.verdicts[-1]
    return (
        candidate.entry,
        candidate.template,
        candidate.tier,
        candidate.score,
        candidate.served,
        refused.gate if refused else "",
        refused.reason if refused else "",
    )


_VERDICTS = {True: "wrongly", False: "rightly", None: "unknown"}
_GATE = ("rightly", "wrongly", "unknown", "let_through")


def _count_verdicts(
    counts: dict[str, Counter[str]], candidate: Candidate, *, same: bool | None
) -> None:
    for verdict in candidate.verdicts:
        column = "let_through" if verdict.passed else _VERDICTS[same]
        counts.setdefault(verdict.gate, Counter())[column] += 1
