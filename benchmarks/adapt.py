"""What `semcache train` gives: a log's first prompts are trained on, all later ones are judged.

    python benchmarks/adapt.py STREAM.jsonl ... [--log 500] [--rows N] [--embedders DIR]

The first `--log` rows of a stream are the log, as `semcache train LOG` takes it: three quarters are
trained on, the rest decides whether the difference is taken. Then the rows after the log, which
training never saw, are looked up: how often the nearest earlier prompt has the right plan, of the
prompts whose plan is there, and what a replay of the whole stream serves to them, rightly and
wrongly, with the plain embedder and with the trained one. That begins with the plain
all-MiniLM-L6-v2, as the weights that ship have seen the public streams; `--embedders` is as for
`replay.py`.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from replay import read, weights_without

from semcache.explore.streams import Row
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import BaseWeights
from semcache.ports import Embedder
from semcache.upkeep.adaptation import STEPS, adapt, first_places, prompt_sets, replay


def judged(rows: Sequence[Row], embedder: Embedder, since: int) -> str:
    """Return first places, right and wrong hits of the rows after the log, as columns."""
    known = {name: len(one.texts) for name, one in prompt_sets(rows[:since]).items()}
    first, ceiling = first_places(embedder.embed, prompt_sets(rows), since=known)
    served = replay(rows, embedder, since=since)
    return f"{first / ceiling:.3f} | {served.right} | {served.wrong}"


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path)
    parser.add_argument("--log", type=int, default=500, help="rows that are the log; default: 500")
    parser.add_argument("--rows", type=int, help="rows of each stream; default: all")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--embedders", type=Path, metavar="DIR", help="of train_embedder.py")
    args = parser.parse_args(argv)
    served = "first | right | wrong"
    print(f"| stream | rows after | taken | {served} | -> {served} | s CPU |")
    print("|---" * 10 + "|")
    for path in args.streams:
        rows = read(path, args.rows)
        folder = args.embedders and weights_without(path, args.embedders)
        start = time.process_time()
        done = adapt(
            rows[: args.log], replay=replay, weights=BaseWeights.of(folder), steps=args.steps
        )
        seconds = time.process_time() - start
        trained = MiniLMEmbedder(folder, difference=done.difference)
        before = judged(rows, MiniLMEmbedder(folder), args.log)
        after = judged(rows, trained, args.log)
        taken = "no: " + done.refusal if done.refusal else "yes"
        name, later = path.stem, len(rows) - args.log
        print(f"| {name} | {later} | {taken} | {before} | {after} | {seconds:.0f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
