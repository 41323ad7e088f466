"""Replay streams with one part of matching left out at a time: what each part gives.

    python benchmarks/ablation.py STREAM.jsonl ... [--rows 800] [--mode text] [--max-wrong 0.01]

Each line is semcache without that part: mean share of what could be served, wrong hits of all hits,
over the streams. Parts are taken out from outside, as no setting may, in a fresh cache each.
"""

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

from replay import Score, Semcache, Timed, pooled, read
from replay import replay as replayed
from train_prior import first

from semcache.binding import codecs
from semcache.cache import context
from semcache.cache.entries import writer
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.lookup import tiers
from semcache.cache.view.view import View
from semcache.matching import decision
from semcache.matching.gates import Gates, held, risk_gates
from semcache.matching.model import risk
from semcache.matching.words import content
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.prompts.template import TemplateText

Without = Callable[[contextlib.ExitStack], None]


def _text(template: TemplateText) -> str:
    return template.text


def _embedding(stack: contextlib.ExitStack) -> None:
    for module in (tiers, writer):
        stack.enter_context(patch.object(module, "embedded_text", _text))


def _order_of_dates(stack: contextlib.ExitStack) -> None:
    stack.enter_context(patch.object(codecs, "in_order_of", lambda *_, **__: None))


PARTS: dict[str, Without] = {
    "nothing (all parts)": lambda _: None,
    "must-be-proven words": lambda s: s.enter_context(
        patch.object(decision, "unproven", lambda *_: ())
    ),
    "record of kinds of differences": lambda s: s.enter_context(
        patch.object(decision, "is_cleared", lambda *_: False)
    ),
    "evidence of planned misses": lambda s: s.enter_context(
        patch.object(TrainingLabels, "planned", lambda *_: None)
    ),
    "weights of single words": lambda s: s.enter_context(
        patch.object(risk.RiskModel, "_leaning", lambda *_: 0.0)
    ),
    "classes of words in evidence": lambda s: s.enter_context(
        patch.object(decision, "_is_habit", lambda *_: False)
    ),
    "trained prior (plain sense instead)": lambda s: s.enter_context(
        patch.object(context, "shipped", plain_sense)
    ),
    "plans made for other words passed over": lambda s: s.enter_context(
        patch.object(context, "risk_gates", _without_held)
    ),
    "order of day and month": _order_of_dates,
    "contested entries refused": lambda s: s.enter_context(
        patch.object(View, "contested", lambda *_, **__: False)
    ),
    "embedding of content words only": _embedding,
    "yes-or-no questions told apart": lambda s: s.enter_context(
        patch.object(content, "is_polar", lambda _: False)
    ),
    "phrases that say the same": lambda s: s.enter_context(
        patch.object(content, "_FOLDING", frozenset())
    ),
    "phrases that change places": lambda s: s.enter_context(
        patch.object(content, "_arranged", list)
    ),
    "alignment of unseen values": lambda s: s.enter_context(
        patch.object(tiers, "by_alignment", lambda _: None)
    ),
    "supposed values behind other words refused": lambda s: s.enter_context(
        patch.object(decision, "misplaced_values", lambda *_: ())
    ),
    "unheard words taken for values": lambda s: s.enter_context(
        patch.object(tiers, "by_supposing", lambda _: None)
    ),
}
"""What is left out → how."""


def _without_held() -> Gates:
    return Gates(tuple(gate for gate in risk_gates().gates if gate is not held))


def plain_sense() -> object:
    """Return the prior that training starts from, with the table of the one that ships."""
    return replace(first(), steps=_STEPS)


_STEPS = context.shipped().steps


def run(args: argparse.Namespace, embedder: Timed, without: Without) -> Sequence[Score]:
    """Return the scores of the streams without a part."""
    scores = []
    with contextlib.ExitStack() as stack:
        without(stack)
        content.content.cache_clear()
        for path in args.streams:
            given = args.mode == "params"
            cache = Semcache(embedder, max_wrong=args.max_wrong)
            score = Score(stream=path.stem, cache="semcache", given=given)
            scores.append(replayed(cache, read(path, args.rows), score, bar=False))
    content.content.cache_clear()
    return scores


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path, metavar="STREAM.jsonl")
    parser.add_argument("--rows", type=int, default=800)
    parser.add_argument("--mode", choices=("text", "params"), default="text")
    parser.add_argument("--max-wrong", type=float)
    args = parser.parse_args()
    embedder = Timed(MiniLMEmbedder(shipped_weights()))
    print(f"{'without':44s} right  wrong / hits")
    for name, without in PARTS.items():
        total = pooled([score.summary() for score in run(args, embedder, without)])[0]
        wrong = f"{total['wrong']} / {total['hits']} = {total['wrong_share']:.4f}"
        print(f"{name:44s} {total['right_of_ceiling']:.3f}  {wrong}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
