"""Fit the risk of a plan for equal words, judged on streams that were left out.

    python benchmarks/train_value_risk.py STREAM.jsonl ... [--rows 1600] [--out value_prior.json]

Each stream is replayed through the exact tiers alone, prompts alone and with values given: once
with every hit served, and once with half of them planned all the same, so that plans were made for
one name and for many. A hit where something is in doubt is a row: what `value_change` says of it,
and whether the plan was right. Each stream is judged by the model of the others; what these
judgments, and hits where nothing is in doubt, let through at each risk becomes the table from which
a bound is read; but for other names where the stream contradicts itself, as in `train_prior.py`.
"""

import argparse
import contextlib
import json
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
from replay import read
from scipy.optimize import minimize
from train_prior import contradictions, said

from semcache import Hit, PlanCache
from semcache.cache.lookup import evaluation, lookup
from semcache.errors import SemCacheError
from semcache.explore.score import is_right
from semcache.matching.model.value_risk import (
    NAMES,
    RiskStep,
    ValueChange,
    ValuePrior,
    features,
)
from semcache.testing import HashEmbedder

RISKS = (
    0.002, 0.003, 0.005, 0.006, 0.0075, 0.01, 0.0125, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.045,
    0.05, 0.06, 0.07, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3, 0.5, 1.0,
)  # fmt: skip
RIDGE = 0.3
_SENSE = {name: -1 if "group" in name or name == "seen" else 1 for name in NAMES} | {"words": 0}
"""Which way a feature may count: no stream may teach that contradictions are a good sign."""
_BOUNDS = {1: (0, None), -1: (None, 0), 0: (None, None)}


@dataclass(frozen=True)
class Example:
    """A hit of an exact tier."""

    stream: str
    change: ValueChange
    labels: tuple[float, float]
    """What the tenant's plans had said where the same was in doubt: the same plan, another."""
    right: bool
    contradicted: bool
    """Whether a name changed and the stream has two plans for what is said of any name."""
    audited: bool
    """Whether half of the hits of its replay were planned all the same."""


def replayed(path: Path, limit: int | None) -> Iterator[Example]:
    """Yield the exact hits of a stream."""
    rows = read(path, limit)
    unclear = contradictions(rows)
    for given in (False, True):
        for share in (0.0, 0.5):
            chance = random.Random(7)  # noqa: S311 - which hits are planned, alike in each run
            counts: dict[tuple[str, str], list[int]] = {}
            with exact_tiers_alone() as changes:
                cache = PlanCache.open(embedder=HashEmbedder(), ttl_s=None, max_entries=None)
                for row in rows:
                    changes.clear()
                    with contextlib.suppress(SemCacheError):
                        found = cache.lookup(
                            row.text, tenant=row.scope, params=row.values if given else None
                        )
                        planned = not found
                        if isinstance(found, Hit):
                            right = is_right(found.plan.to_dict(), row.plan)
                            kind = changes[-1].kind
                            count = counts.setdefault((row.scope, kind), [0, 0])
                            same, other = count if kind else (0, 0)
                            labels = (float(same), float(other))
                            unsure = kind == "name" and said(row) in unclear
                            yield Example(path.stem, changes[-1], labels, right, unsure, share > 0)
                            planned = chance.random() < share
                            count[not right] += planned
                        if planned and row.plan is not None:
                            cache.store(row.text, row.plan, params=row.params, tenant=row.scope)


@contextlib.contextmanager
def exact_tiers_alone() -> Iterator[list[ValueChange]]:
    """Serve by equal words alone and whatever the risk; give what hits changed."""
    changes: list[ValueChange] = []
    inner = evaluation.value_change

    def noted(*args: object) -> ValueChange:
        changes.append(inner(*args))  # type: ignore[arg-type]  # handed on as they came
        return changes[-1]

    with (
        patch.object(evaluation, "value_change", noted),
        patch.object(ValuePrior, "bound", lambda *_: 1.0),
        patch.object(lookup, "by_alignment", lambda _: None),
        patch.object(lookup, "by_meaning", lambda _: None),
    ):
        yield changes


def fitted(examples: Sequence[Example]) -> tuple[float, ...]:
    """Return the weights of the model for `examples`."""
    x = np.array([features(each.change) for each in examples])
    y = np.array([float(not each.right) for each in examples])
    mean, spread = x.mean(0), x.std(0)
    mean[0], spread[0] = 0.0, 1.0  # the intercept
    spread[spread < 1e-6] = 1.0
    z = (x - mean) / spread

    def loss(b: np.ndarray) -> tuple[float, np.ndarray]:
        q = z @ b
        p = 1 / (1 + np.exp(-q))
        slope = z.T @ (p - y)
        slope[1:] += 2 * RIDGE * b[1:]
        return float(np.sum(np.logaddexp(0, q) - y * q) + RIDGE * np.sum(b[1:] ** 2)), slope

    bounds = [(None, None), *(_BOUNDS[_SENSE[name]] for name in NAMES[1:])]
    b = minimize(loss, np.zeros(len(bounds)), jac=True, method="L-BFGS-B", bounds=bounds).x / spread
    return (b[0] - float(np.sum((b * mean)[1:])), *map(float, b[1:]))


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(__file__).parents[1] / "semcache/matching/model/value_prior.json",
    )
    args = parser.parse_args()
    hits = [each for path in args.streams for each in replayed(path, args.rows)]
    examples = [each for each in hits if each.change.kind]
    plain = [each.right for each in hits if not each.change.kind]
    share = round((len(plain) - sum(plain) + 0.5) / (len(plain) + 1), 4)
    judged = [(0.0, each.right) for each in hits if each.audited and not each.change.kind]
    for path in args.streams:
        others = [each for each in examples if each.stream != path.stem]
        prior = ValuePrior(share, fitted(others), ())
        judged += [
            (prior.risk(each.change, each.labels), each.right)
            for each in examples
            if each.stream == path.stem and each.audited and not each.contradicted
        ]
    steps = []
    for risk in RISKS:
        within = [right for told, right in judged if told <= risk]
        steps.append(RiskStep(risk, len(within), len(within) - sum(within)))
    final = ValuePrior(share, tuple(round(w, 4) for w in fitted(examples)), tuple(steps))
    args.out.write_text(json.dumps(final.to_json()) + "\n", encoding="utf-8")
    print(dict(zip(NAMES, final.weights, strict=True)))
    print(*(f"{risk:6.4f} {hits:6d} {wrong:4d}" for risk, hits, wrong in steps), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
