"""Train the default embedder so that prompts of one plan are near, and of other plans far.

    python benchmarks/train_embedder.py STREAM.jsonl ... [--pairs FILE.jsonl ...] --out FOLDER
    python benchmarks/train_embedder.py STREAM.jsonl ... --judge STREAM.jsonl ... --out FOLDER

The weights of all-MiniLM-L6-v2 are trained further by supervised contrast (Khosla et al. 2020) over
prompts of one tenant: a step takes two prompts of each of some plans, and a prompt of another plan
that the untrained weights find near. Prompts are seen as the cache embeds them: courtesy left out,
values masked as recognized, masked as a planner tells them, or not at all. Token embeddings stay as
they are. OUT becomes a folder with the fp32 weights that `build_encoder.py --weights --source OUT`
takes. 2,000 steps take 12 minutes on one core with bfloat16 (AVX-512), thrice that without.

Streams are as for `replay.py`; a file of pairs has `{"scope", "plan", "text", "masked"}` a line.
`--judge` prints, for streams that were left out, how often the nearest earlier prompt has the right
plan, of the prompts whose plan was there, for the packaged weights and for the trained ones.
"""

import argparse
import json
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from replay import read
from safetensors.numpy import load_file, save_file

from semcache.matching.words.content import embedded_text
from semcache.models.training import Encoder, PromptSet, train
from semcache.models.weights import BaseWeights
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask
from semcache.upkeep.adaptation import RAW, STORED, first_places, prompt_sets

RATE = 4e-5


def prompts_of_pairs(path: Path) -> dict[str, PromptSet]:
    """Return the tenants of a file of pairs."""
    tenants: dict[str, PromptSet] = defaultdict(PromptSet)
    for line in path.open(encoding="utf-8"):
        row = json.loads(line)
        raw, masked = (embedded_text(mask(row[name], [])) for name in ("text", "masked"))
        recognized = embedded_text(mask(row["text"], list(find_mentions(row["text"]))))
        tenants[row["scope"]].add(row["plan"], (masked, recognized, raw))
    return tenants


def save(encoder: Encoder, out: Path) -> None:
    """Write the weights, as `model.safetensors` names them, beside the tokenizer."""
    out.mkdir(parents=True, exist_ok=True)
    weights = load_file(encoder.folder / "model.safetensors")
    trained = encoder.weights()
    save_file(
        {name: trained.get(name, weights[name]) for name in weights}, out / "model.safetensors"
    )
    for name in ("tokenizer.json", "config.json"):
        shutil.copyfile(encoder.folder / name, out / name)


def printed() -> Callable[[int, int, float], None]:
    """Return what prints the mean loss of each hundred steps."""
    start, losses = time.monotonic(), list[float]()

    def told(step: int, _: int, loss: float) -> None:
        losses.append(loss)
        if step % 100 == 0:
            mean, seconds = np.mean(losses[-100:]), time.monotonic() - start
            print(f"step {step}: loss {mean:.3f}, {seconds:.0f} s", flush=True)

    return told


def main(argv: Sequence[str]) -> int:
    """Run the command; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="+", type=Path)
    parser.add_argument("--pairs", nargs="*", type=Path, default=[])
    parser.add_argument("--judge", nargs="*", type=Path, default=[], help="streams left out")
    parser.add_argument("--rows", type=int, help="rows of each judged stream; default: 1000")
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--out", type=Path, required=True)
    args: Any = parser.parse_args(argv)
    torch.set_num_threads(args.threads)
    left_out = {path.resolve() for path in args.judge}
    sets = {
        path.stem: prompt_sets(read(path, None))
        for path in args.streams
        if path.resolve() not in left_out
    }
    sets |= {f"pairs of {path.stem}": prompts_of_pairs(path) for path in args.pairs}
    usable = {
        name: [one for one in tenants.values() if one.usable] for name, tenants in sets.items()
    }
    usable = {name: tenants for name, tenants in usable.items() if tenants}
    for name, tenants in usable.items():
        print(f"{name}: {len(tenants)} tenants, {sum(len(one.texts) for one in tenants)} prompts")
    packaged = BaseWeights.of(None)
    encoder, plain = Encoder(packaged), Encoder(packaged)
    encoder.train_layers()
    train(encoder, usable, steps=args.steps, rate=RATE, seed=args.seed, told=printed())
    save(encoder, args.out)
    training = {
        "streams": sorted(path.stem for path in args.streams if path.resolve() not in left_out),
        "pairs": sorted(path.stem for path in args.pairs),
        "left_out": sorted(path.stem for path in args.judge),
        "steps": args.steps,
        "seed": args.seed,
    }
    (args.out / "training.json").write_text(json.dumps(training, indent=1) + "\n", encoding="utf-8")
    for path in args.judge:
        tenants = prompt_sets(read(path, args.rows or 1000))
        for form, name in ((STORED, "masked"), (RAW, "raw")):
            before, ceiling = first_places(plain.embed, tenants, asked=form, stored=form)
            after, _ = first_places(encoder.embed, tenants, asked=form, stored=form)
            print(
                f"{path.stem} {name}: {before / ceiling:.3f} -> {after / ceiling:.3f} of {ceiling}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
