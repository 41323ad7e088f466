"""Train the risk model's prior, and test it on each stream with a prior that never saw that stream.

    python benchmarks/train_prior.py STREAM.jsonl ... [--embedders DIR] [--out PRIOR.json]

Each stream is replayed cold, text only and with parameters given. At each lookup every group of
neighbors is bound, so that it is known whether serving it would have been right. Weights are fitted
to these labels, each stream counting the same; how much a weight differs between streams says how
firmly it is believed. Then each stream is replayed with the prior of the others: what was served
there at each score becomes the table from which a cutoff for `max_wrong` is tested.
`--embedders`: a folder of weights that `train_embedder.py` and `build_encoder.py --weights` wrote;
each stream is replayed with weights that were trained without it: nothing learned has seen it.
The streams themselves leave nothing but these weights and counts behind: no word of them is kept.
"""

# ruff: noqa: SLF001 - the trainer binds what a lookup only weighed, which no caller may
import argparse
import contextlib
import json
import math
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from replay import embedder_of, read, weights_without
from scipy.optimize import minimize

from semcache import Hit, Miss, PlanCache
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.lookup.bind_entry import Refused
from semcache.cache.lookup.context import Lookup, bind_candidate
from semcache.cache.query import Query
from semcache.cache.view.view import View
from semcache.errors import InvalidPrompt
from semcache.explore.score import is_right
from semcache.explore.streams import Row
from semcache.matching.decision import WeighedGroup
from semcache.matching.gates import risk_gates
from semcache.matching.model.features import NAMES
from semcache.matching.model.risk import Prior, Step
from semcache.matching.words.content import content
from semcache.ports import Neighbor
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask
from semcache.prompts.tokens import check_prompt

SERVED_FROM = (3.0, 1.5)
"""Scores from which replays serve: first about where a bound of 1 or 2 % does, then for laxer ones.
What is served is not learned from, so that a replay says most of cutoffs near its own."""
BOUND = 3
"""Groups of each lookup that are bound and labeled."""
LOOSER = 5.0
"""Times the variance between these streams that a stranger's weights may vary."""


LookedUp: TypeAlias = tuple[Query, View, tuple[WeighedGroup, ...]]
"""A prompt, what was known when it was asked, and how its neighbors were weighed."""


@dataclass
class Decision:
    """One lookup: its groups, best first, and what serving each would have been."""

    values: list[tuple[float, ...]] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    right: list[bool | None] = field(default_factory=list)
    """None where the plan could not be bound."""
    ranks: list[int] = field(default_factory=list)
    """0 for the best group of a reading of the prompt."""
    tier: str = ""
    """Empty for a miss."""
    was_right: bool = False
    score: float = math.inf
    """Of the group that was served; infinite where risk did not decide."""
    contradicted: bool = False
    """Whether the stream has two plans for what it says: no matcher can know which."""
    ceiling: bool = False


class Recorder(TrainingLabels):
    """Labels that keeps how each reading of a prompt was weighed, and serves from `SERVED_FROM`."""

    readings: tuple[LookedUp, ...] = ()
    """Of the last prompt: the plain one, and then one with what was supposed."""

    def weigh(
        self, view: View, query: Query, neighbors: Sequence[Neighbor]
    ) -> tuple[WeighedGroup, ...]:
        """Weigh, and keep it."""
        found = super().weigh(view, query, neighbors)
        self.readings = (*self.readings, (query, view, found))
        return found


@dataclass(frozen=True)
class Job:
    """One replay."""

    stream: Path
    given: bool
    """Whether the parameters are given."""
    prior: Prior
    limit: int | None
    weights: Path | None
    """Of the embedder; None: the plain ones."""


def collect(job: Job) -> list[Decision]:
    """Replay a stream with a prior; return a decision a row."""
    plans = PlanCache.open(
        embedder=embedder_of(job.weights), ttl_s=None, max_entries=None, max_wrong=0.5
    )
    labels = Recorder(
        plans._context.store, job.prior, max_wrong=0.5, gates=risk_gates(), adapts=False
    )
    plans._context = plans._tiers._context = plans._intake._context = replace(
        plans._context, labels=labels
    )
    decisions = []
    seen: set[str] = set()
    rows = read(job.stream, job.limit)
    unclear = contradictions(rows)
    for row in rows:
        labels.readings = ()
        decision = Decision(ceiling=row.shape is not None and row.shape in seen)
        decision.contradicted = said(row) in unclear
        params = row.values if job.given else None
        try:
            found = plans.lookup(row.text, tenant=row.scope, params=params)
        except InvalidPrompt:
            continue
        if isinstance(found, Hit):
            decision.tier = found.tier
            decision.was_right = is_right(found.plan.to_dict(), row.plan)
        for reading in labels.readings:
            describe(decision, plans, row, reading)
        # A value taken by alignment has a risk of its own, and no group is weighed for it.
        if isinstance(found, Hit) and found.tier == "semantic" and labels.readings:
            decision.score = served_score(found, labels.readings[-1])
        decisions.append(decision)
        if isinstance(found, Miss) and row.plan is not None:
            plans.store(row.text, row.plan, params=row.params, tenant=row.scope)
            seen.add(row.shape or "")
    return decisions


def said(row: Row) -> tuple[str, tuple[str, ...]]:
    """Return the tenant and what a row says, whatever its values are, courtesy aside."""
    text = check_prompt(row.text) if row.text.strip() else "-"
    mentions = find_mentions(text, given=row.params)
    return row.scope, content(mask(text, [m._replace(kind="value") for m in mentions]).text)


def contradictions(rows: Sequence[Row]) -> set[tuple[str, tuple[str, ...]]]:
    """Return what the stream says with more than one plan for it."""
    shapes: dict[tuple[str, tuple[str, ...]], set[str | None]] = {}
    for row in rows:
        shapes.setdefault(said(row), set()).add(row.shape)
    return {text for text, plans in shapes.items() if len(plans) > 1}


def describe(decision: Decision, plans: PlanCache, row: Row, looked_up: LookedUp) -> None:
    """Add what serving each of the first groups would have been."""
    query, view, weighed = looked_up
    lookup = Lookup(plans._context, view, query, change=0)
    for rank, one in enumerate(weighed[:BOUND]):
        entry = lookup.known(one.entry)
        right = None
        if entry is not None:
            with contextlib.suppress(Refused):
                served = bind_candidate(
                    lookup, "semantic", entry, query, score=1.0, entry_id=one.entry
                )
                right = is_right(served.plan.to_dict(), row.plan)
        decision.values.append(one.featured.values)
        decision.scores.append(one.score)
        decision.right.append(right)
        decision.ranks.append(rank)


def served_score(hit: Hit, looked_up: LookedUp) -> float:
    """Return the score of the group that was served."""
    query, view, weighed = looked_up
    group = view.entries[hit.entry].group(given=bool(query.given))
    return next((w.score for w in weighed if w.featured.near.group == group), math.inf)


# Fitting -------------------------------------------------------------------------------------


def labeled(decisions: Sequence[Decision]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features, labels and weights of what could be bound; weights sum to 1."""
    rows = [
        (values, right, 1.0 if rank == 0 else 0.3)
        for d in decisions
        for values, right, rank in zip(d.values, d.right, d.ranks, strict=True)
        if right is not None
    ]
    weights = np.array([w for *_, w in rows])
    return (
        np.array([v for v, *_ in rows]),
        np.array([float(r) for _, r, _ in rows]),
        weights / weights.sum(),
    )


def penalized(
    x: np.ndarray, y: np.ndarray, w: np.ndarray, center: np.ndarray, *, ridge: float, signed: bool
) -> np.ndarray:
    """Return logistic weights pulled to `center`; `signed`: none against its plain sense."""

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ b
        p = 1 / (1 + np.exp(-np.clip(z, -30, 30)))
        pull = ridge * (b - center)
        pull[-1] = 0.0
        value = np.sum(w * (np.logaddexp(0, -z) * y + np.logaddexp(0, z) * (1 - y)))
        return value + np.sum(pull * (b - center)) / 2, x.T @ (w * (p - y)) + pull

    bounds = [_BOUNDS[_SENSE[name] if signed else 0] for name in NAMES]
    return minimize(loss, center, jac=True, method="L-BFGS-B", bounds=[*bounds, _BOUNDS[0]]).x


_BOUNDS: dict[int, tuple[float | None, float | None]] = {
    1: (0, None),
    -1: (None, 0),
    0: (None, None),
}
_AGAINST = frozenset(
    "rival_support rival_near_support clean_rivals single doubt extra_open missing_open "
    "extra_meaning missing_meaning unproven_meaning extra_light missing_light extra_role "
    "missing_role alike worst_word all_words exchanged moved contexts unheard novel required "
    "noise supposed supposed_doubt supposed_record".split()
)
_SENSE = {name: 0 if name == "slots" else -1 if name in _AGAINST else 1 for name in NAMES}
"""Which way a feature may count: no stream may teach that an unknown word is a good sign."""


def fit(streams: Sequence[Sequence[Sequence[Decision]]]) -> Prior:
    """Return the prior of these streams' replays, without a table."""
    parts = [[labeled(replay) for replay in replays] for replays in streams]
    flat = [part for stream in parts for part in stream]
    x = np.concatenate([values for values, *_ in flat])
    spread = x.std(0)
    spread[spread < 1e-6] = 1.0
    ones = np.ones(len(NAMES) + 1)
    plain = first()
    bare = Prior(x.mean(0), spread, ones, ones, ())
    center = np.append(
        plain.weights[:-1] * spread, plain.weights[-1] + plain.weights[:-1] @ bare.center
    )
    mean = penalized(*_joined(bare, flat), center, ridge=0.1, signed=True)
    own = [penalized(*_joined(bare, part), mean, ridge=0.02, signed=False) for part in parts]
    variance = np.mean((np.array(own) - mean) ** 2, axis=0) + 1e-4
    return Prior(bare.center, spread, mean, 1 / (LOOSER * variance), plain.steps)


def _joined(
    prior: Prior, parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return standardized features, labels and weights of replays that each count the same."""
    x = np.concatenate([[prior.standard(v) for v in values] for values, *_ in parts])
    weights = np.concatenate([w for *_, w in parts])
    return x, np.concatenate([y for _, y, _ in parts]), weights / weights.sum()


Hits: TypeAlias = list[tuple[float, bool]]
"""The score of each hit that risk let through, and whether it was right."""


def told(replays: Sequence[Sequence[Decision]]) -> Hits:
    """Return the hits by meaning where the stream agrees with itself."""
    return [
        (d.score, d.was_right)
        for replay in replays
        for d in replay
        if d.tier == "semantic" and not d.contradicted
    ]


def handicap(text: Hits, given: Hits) -> float:
    """Return how much higher a score must be where values are given to be wrong as seldom.

    By a logistic calibration of hits on their score and on how they were asked (Platt 1999).
    """
    x = np.array([(1.0, z, float(n)) for n, hits in enumerate((text, given)) for z, _ in hits])
    wrong = np.array([float(not right) for hits in (text, given) for _, right in hits])

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        z = x @ b
        p = 1 / (1 + np.exp(-z))
        return float(np.mean(np.logaddexp(0, z) - wrong * z)), x.T @ (p - wrong) / len(x)

    _, slope, shift = minimize(loss, np.array([0.0, -1.0, 0.0]), jac=True, method="BFGS").x
    return float(-shift / slope)


def handicapped(prior: Prior, by: float) -> Prior:
    """Return the prior with scores that are lower `by` so much where values are given."""
    weights, at = prior.weights.copy(), NAMES.index("given")
    weights[at] -= by * prior.spread[at]
    weights[-1] -= by * prior.center[at]
    return replace(prior, weights=weights)


def table(hits: Hits, *, highest: float = 6.0, lowest: float) -> tuple[Step, ...]:
    """Return what was served at each score or over, from the `highest` down to the `lowest`."""
    steps = []
    for sixteenth in range(int(highest * 16), math.ceil(lowest * 16) - 1, -1):
        score = sixteenth / 16
        over = [right for z, right in hits if z >= score]
        steps.append(Step(score, len(over), len(over) - sum(over)))
    return tuple(steps)


# The command ---------------------------------------------------------------------------------


COLD = 1000
"""First rows of a stream, over which what is served from a cold start is told apart."""


class Share(NamedTuple):
    """What a cutoff would have served of a replay."""

    right: int
    hits: int
    ceiling: int

    def __str__(self) -> str:
        return f"{self.of_ceiling:.3f} of ceiling, wrong {self.hits - self.right}/{self.hits}"

    @property
    def of_ceiling(self) -> float:
        """Right hits of what could be served, in [0, 1]."""
        return self.right / max(1, self.ceiling)


def share(decisions: Sequence[Decision], cut: float) -> Share:
    """Return what a cutoff would have served of these rows."""
    hits = [d.was_right for d in decisions if d.tier and d.score >= cut]
    return Share(sum(hits), len(hits), sum(d.ceiling for d in decisions))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--embedders", type=Path, metavar="DIR", help="weights, each without some")
    parser.add_argument("--start", type=Path, help="prior to collect the first labels with")
    parser.add_argument(
        "--out", type=Path, default=Path(__file__).parents[1] / "semcache/matching/model/prior.json"
    )
    args = parser.parse_args()
    start = first()
    if args.start is not None:
        start = Prior.from_json(json.loads(args.start.read_text(encoding="utf-8")))
    priors = dict.fromkeys(args.streams, start)
    with ProcessPoolExecutor(args.workers) as pool:
        for number in range(args.rounds + 1):
            replays = replayed(pool, priors, args.rows, args.embedders)
            show(f"round {number}", replays, SERVED_FROM[0])
            if number < args.rounds:
                priors = {
                    s: fit([replays[t] for t in args.streams if t != s]) for s in args.streams
                }
        by_floor = [hits(replays)]
        for floor in SERVED_FROM[1:]:
            lower = {s: replace(p, steps=serving_from(floor)) for s, p in priors.items()}
            lowered = replayed(pool, lower, args.rows, args.embedders)
            show(f"served from {floor}", lowered, floor)
            by_floor.append(hits(lowered))
    less = handicap(*by_floor[0])
    print(f"scores where values are given are {less:.2f} too high")
    both, *alone = tables(by_floor, less)
    final = replace(handicapped(fit([*replays.values()]), less), steps=both)
    args.out.write_text(json.dumps(final.to_json()) + "\n", encoding="utf-8")
    for name, steps in zip(("both", "text", "params"), (both, *alone), strict=True):
        print(f"{name}: score, hits and wrong ones at it or over")
        print(*(f"{step.score:6.3f} {step.hits:6d} {step.wrong:4d}" for step in steps), sep="\n")
    return 0


Replays: TypeAlias = dict[Path, list[list[Decision]]]
"""Stream → its replay text only, and with parameters given."""


def replayed(
    pool: ProcessPoolExecutor,
    priors: Mapping[Path, Prior],
    limit: int | None,
    embedders: Path | None,
) -> Replays:
    """Replay each stream with its prior, both ways."""
    jobs = {
        stream: [
            pool.submit(
                collect, Job(stream, given, prior, limit, weights_without(stream, embedders))
            )
            for given in (False, True)
        ]
        for stream, prior in priors.items()
        for weights in (weights_without(stream, embedders),)
    }
    return {stream: [job.result() for job in both] for stream, both in jobs.items()}


def hits(replays: Replays) -> tuple[Hits, Hits]:
    """Return the hits of all streams, text only and with parameters given."""
    text, given = zip(*replays.values(), strict=True)
    return told(text), told(given)


def show(name: str, replays: Replays, served_from: float) -> None:
    """Print what some cutoffs would have served, on each stream, and over all from a cold start."""
    for cut in np.arange(served_from, 5.0, 0.5):
        print(f"{name}, cutoff {cut}:")
        for stream, both in replays.items():
            text, given = (share(decisions, cut) for decisions in both)
            print(f"{stream.stem:12s} text {text!s:38s} params {given}")
        for rows, limit in ((f"first {COLD} rows", COLD), ("all rows", None)):
            pooled = []
            for way in range(2):
                each = [share(both[way][:limit], cut) for both in replays.values()]
                mean = np.mean([one.of_ceiling for one in each])
                wrong, served = sum(s.hits - s.right for s in each), sum(s.hits for s in each)
                pooled.append(f"{mean:.3f} in the mean, wrong {wrong}/{served}")
            print(f"{rows}: text {pooled[0]}; params {pooled[1]}", flush=True)


def serving_from(score: float) -> tuple[Step, ...]:
    """Return a table that lets everything from `score` on be served."""
    return (Step(score, 10**6, 0),)


def tables(by_floor: Sequence[tuple[Hits, Hits]], less: float) -> tuple[tuple[Step, ...], ...]:
    """Return the tables of both ways of asking together, text only, and with parameters.

    `by_floor`: for each of `SERVED_FROM` the hits of both; `less`: what is taken off the scores of
    those where values are given. Each step is of the highest of these replays that served all of
    it, both ways.
    """
    found: list[tuple[Step, ...]] = [(), (), ()]
    highest = 6.0
    for floor, (text, given) in zip(SERVED_FROM, by_floor, strict=True):
        shifted = [(score - less, right) for score, right in given]
        lowest = math.ceil((floor + max(0.0, -less)) * 16) / 16
        for i, hits in enumerate(([*text, *shifted], text, shifted)):
            found[i] += table(hits, highest=highest, lowest=lowest)
        highest = lowest - 1 / 16
    return tuple(found)


def first() -> Prior:
    """Return a prior of plain sense, to collect the first labels with."""
    weights = {
        "cosine": 1.0,
        "margin": 0.5,
        "support": 1.0,
        "rival_support": -1.0,
        "worst_word": -1.0,
        "clean": 0.5,
        "unheard": -0.7,
        "noise": -0.3,
    }
    size = len(NAMES)
    return Prior(
        np.zeros(size),
        np.ones(size),
        np.array([*(weights.get(name, 0.0) for name in NAMES), 1.5]),
        np.full(size + 1, 1e9),
        serving_from(SERVED_FROM[0]),
    )


if __name__ == "__main__":
    sys.exit(main())
