"""Find the cosine of trained weights that is as strict as 0.95 of all-MiniLM-L6-v2.

    python benchmarks/strict_cosine.py STREAM.jsonl ... --embedders DIR [--rows 800]

Training moves the vectors of other plans apart, and those of one plan too: over a cosine of 0.95
are fewer pairs than before, and more of them are right. A threshold is told in the unit of
all-MiniLM-L6-v2, so that its meaning stays when weights change. For each prompt the nearest earlier
one of its tenant is looked up, values masked; the cosine is wanted over which it has the prompt's
plan as often as over 0.95 with the plain weights. Each stream is embedded with weights that were
trained without it (`--embedders`, as for `replay.py`). Printed are that cosine over all streams and
without each of them; `build_encoder.py --strict-cosine` writes the strictest beside the weights.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from replay import read, weights_without

from semcache.matching.gates import STRICT
from semcache.matching.words.content import embedded_text
from semcache.models.minilm import MiniLMEmbedder
from semcache.ports import Embedder
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask

GRID = np.round(np.arange(0.70, 0.96, 0.005), 3)


class Nearest(NamedTuple):
    """The nearest earlier prompts of a stream."""

    cosines: np.ndarray
    """float32, one a prompt."""
    right: np.ndarray
    """bool, whether the plan is the same."""


def nearest(embedder: Embedder, path: Path, limit: int) -> Nearest:
    """Return how near the nearest earlier prompt with other words is, and whether it is right."""
    rows = [row for row in read(path, limit) if row.shape is not None and row.text.strip()]
    masked = (mask(row.text, [*find_mentions(row.text, given=row.params)]) for row in rows)
    texts = [embedded_text(text) for text in masked]
    known = {text: at for at, text in enumerate(dict.fromkeys(texts))}
    at = np.array([known[text] for text in texts])
    vectors = embedder.embed([*known])[at]
    tenants = np.array([row.scope for row in rows])
    earlier = np.tril(np.ones((len(rows), len(rows)), dtype=bool), -1)
    comparable = earlier & (tenants[:, None] == tenants) & (at[:, None] != at)
    cosines = np.where(comparable, vectors @ vectors.T, -1.0)
    shapes = np.array([row.shape for row in rows])
    best = cosines.argmax(axis=1)
    return Nearest(cosines.max(axis=1), shapes[best] == shapes)


def precision(found: Sequence[Nearest], above: float) -> float:
    """Return the share of nearest prompts over a cosine that have the same plan, in [0, 1]."""
    over = [each.right[each.cosines > above] for each in found]
    return float(np.concatenate(over).mean())


def as_strict(plain: Sequence[Nearest], trained: Sequence[Nearest]) -> float:
    """Return the lowest cosine of `GRID` over which trained vectors are right as often."""
    wanted = precision(plain, STRICT)
    return float(next(at for at in GRID if precision(trained, at) >= wanted))


def main(argv: Sequence[str]) -> int:
    """Print the cosine; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path)
    parser.add_argument("--embedders", type=Path, required=True, metavar="DIR")
    parser.add_argument("--rows", type=int, default=800)
    given = parser.parse_args(argv)
    base = MiniLMEmbedder(memo=0)
    plain, trained = [], []
    for path in given.streams:
        weights = MiniLMEmbedder(weights_without(path, given.embedders), memo=0)
        plain.append(nearest(base, path, given.rows))
        trained.append(nearest(weights, path, given.rows))
    print(f"over {STRICT}: {precision(plain, STRICT):.3f} of the nearest are right, plain weights")
    for above in (0.95, 0.9, 0.88, 0.85, 0.8):
        print(f"over {above}: {precision(trained, above):.3f}, trained weights")
    print(f"as strict as {STRICT}: {as_strict(plain, trained)}")
    for at, path in enumerate(given.streams):
        others = [part[:at] + part[at + 1 :] for part in (plain, trained)]
        print(f"without {path.stem}: {as_strict(*others)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
