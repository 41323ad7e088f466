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
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from replay import read
from safetensors.numpy import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModel, BertConfig

from semcache.errors import InvalidPrompt
from semcache.explore.streams import Row
from semcache.matching.words.content import embedded_text
from semcache.models.weights import packaged_weights
from semcache.prompts.mentions import find_mentions
from semcache.prompts.template import mask
from semcache.prompts.tokens import check_prompt

PLANS_A_STEP, TEMPERATURE, RATE, WARM_UP, LONGEST = 20, 0.05, 4e-5, 50, 64
HARD, ASKED = 8, 3000
"""Near prompts of other plans that are kept for a prompt, and prompts of a tenant that get them."""
USABLE_PLANS = 6
"""Plans with two prompts or more that a tenant needs to be trained on."""


@dataclass
class Scope:
    """The prompts of one tenant."""

    texts: list[tuple[str, ...]] = field(default_factory=list)
    """Of each prompt: as a planner's values mask it, as recognizers do, and as it is."""
    plans: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Plan but for its values → its prompts."""
    hard: list[list[int]] = field(default_factory=list)
    """Of each prompt: near ones of other plans."""

    def add(self, plan: str, texts: tuple[str, ...]) -> None:
        """Add a prompt."""
        self.plans[plan].append(len(self.texts))
        self.texts.append(texts)

    def repeated(self) -> list[str]:
        """Return the plans with two prompts or more."""
        return [plan for plan, prompts in self.plans.items() if len(prompts) > 1]


def forms(row: Row) -> tuple[str, ...]:
    """Return a prompt's texts as the cache would embed them."""
    text = check_prompt(row.text)
    found = (find_mentions(text, given=row.params), find_mentions(text), ())
    return tuple(embedded_text(mask(text, list(mentions))) for mentions in found)


def prompts_of(rows: Sequence[Row]) -> dict[str, Scope]:
    """Return the tenants of a stream."""
    scopes: dict[str, Scope] = defaultdict(Scope)
    for row in rows:
        if row.shape is not None:
            try:
                scopes[row.scope].add(row.shape, forms(row))
            except InvalidPrompt:
                continue
    return scopes


def prompts_of_pairs(path: Path) -> dict[str, Scope]:
    """Return the tenants of a file of pairs."""
    scopes: dict[str, Scope] = defaultdict(Scope)
    for line in path.open(encoding="utf-8"):
        row = json.loads(line)
        raw, masked = (embedded_text(mask(row[name], [])) for name in ("text", "masked"))
        recognized = embedded_text(mask(row["text"], list(find_mentions(row["text"]))))
        scopes[row["scope"]].add(row["plan"], (masked, recognized, raw))
    return scopes


class Encoder:
    """The weights, their tokenizer, and how a text becomes a vector."""

    def __init__(self, source: Path) -> None:
        self.source = source
        self.tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
        self.tokenizer.enable_truncation(LONGEST)
        self.tokenizer.enable_padding()
        config = BertConfig.from_json_file(str(source / "config.json"))
        # Without dropout, and attention as plain products, a step takes two thirds of the time.
        config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
        self.model = AutoModel.from_config(
            config, attn_implementation="eager", add_pooling_layer=False
        )
        weights = load_file(source / "model.safetensors")
        known = self.model.state_dict()
        self.model.load_state_dict(
            {name: torch.from_numpy(weights[name]) for name in known if name in weights},
            strict=False,
        )

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Return one normalized row a text."""
        encoded = self.tokenizer.encode_batch(list(texts))
        ids = torch.tensor([one.ids for one in encoded])
        seen = torch.tensor([one.attention_mask for one in encoded])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            hidden = self.model(input_ids=ids, attention_mask=seen).last_hidden_state
        hidden = hidden.float() * seen[:, :, None]
        return torch.nn.functional.normalize(hidden.sum(1) / seen.sum(1, keepdim=True), dim=1)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one normalized row a text, without gradients; shape `(len(texts), 384)`."""
        self.model.eval()
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = np.empty((len(texts), self.model.config.hidden_size), np.float32)
        with torch.no_grad():
            for start in range(0, len(order), 128):
                part = order[start : start + 128]
                rows[part] = self.vectors([texts[i] for i in part]).numpy()
        return rows

    def save(self, out: Path) -> None:
        """Write the weights, as `model.safetensors` names them, beside the tokenizer."""
        out.mkdir(parents=True, exist_ok=True)
        weights = load_file(self.source / "model.safetensors")
        for name, tensor in self.model.state_dict().items():
            if name in weights:
                weights[name] = tensor.detach().numpy()
        save_file(weights, out / "model.safetensors")
        for name in ("tokenizer.json", "config.json"):
            shutil.copyfile(self.source / name, out / name)


def mine(scope: Scope, encoder: Encoder, chance: random.Random) -> None:
    """Keep for the prompts of a tenant which ones of other plans are near."""
    vectors = encoder.embed([texts[0] for texts in scope.texts])
    plan = np.empty(len(scope.texts), int)
    for number, prompts in enumerate(scope.plans.values()):
        plan[prompts] = number
    scope.hard = [[] for _ in scope.texts]
    for i in chance.sample(range(len(scope.texts)), min(len(scope.texts), ASKED)):
        near = vectors @ vectors[i]
        near[plan == plan[i]] = -2
        scope.hard[i] = [int(j) for j in np.argsort(-near)[:HARD] if near[j] > -1]


def contrast(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the loss of a step: each pair of one plan against all of other plans."""
    own = torch.eye(len(labels), dtype=torch.bool)
    same = (labels[:, None] == labels[None, :]) & ~own
    near = (vectors @ vectors.T / TEMPERATURE).masked_fill(own, -1e9)
    others = torch.logsumexp(near.masked_fill(same, -1e9), 1, keepdim=True)
    return torch.nn.functional.softplus(others - near)[same].mean()


def batch(scope: Scope, chance: random.Random) -> tuple[list[str], torch.Tensor]:
    """Return the texts of a step and a number for the plan of each."""
    repeated = scope.repeated()
    number = {plan: n for n, plan in enumerate(scope.plans)}
    plan_of = {i: number[plan] for plan, prompts in scope.plans.items() for i in prompts}
    chosen: list[int] = []
    for plan in chance.sample(repeated, min(PLANS_A_STEP, len(repeated))):
        pair = chance.sample(scope.plans[plan], 2)
        chosen += pair
        if scope.hard[pair[0]]:
            chosen.append(chance.choice(scope.hard[pair[0]]))
    # Mostly one form for the whole step; sometimes each prompt its own, as a prompt is looked up
    # before its values are known and stored after.
    form = chance.choice((0, 0, 1, 2, None))
    texts = [scope.texts[i][chance.randrange(3) if form is None else form] for i in chosen]
    return texts, torch.tensor([plan_of[i] for i in chosen])


def train(encoder: Encoder, sets: dict[str, list[Scope]], *, steps: int, seed: int) -> None:
    """Train the layers of the encoder; a set of tenants counts by the root of its prompts."""
    chance = random.Random(seed)  # noqa: S311 - a seeded draw, no secret
    for scope in (scope for scopes in sets.values() for scope in scopes):
        mine(scope, encoder, chance)
    for name, parameter in encoder.model.named_parameters():
        parameter.requires_grad = not name.startswith("embeddings.")
    trained = [p for p in encoder.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=RATE, weight_decay=0.01)
    names = list(sets)
    shares = [sum(len(s.texts) for s in sets[name]) ** 0.5 for name in names]
    encoder.model.train()
    start, losses = time.monotonic(), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, (step + 1) / WARM_UP) * max(0.05, 1 - step / steps)
        scopes = sets[chance.choices(names, shares)[0]]
        scope = chance.choices(scopes, [len(s.repeated()) for s in scopes])[0]
        texts, labels = batch(scope, chance)
        loss = contrast(encoder.vectors(texts), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch does not type it
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        losses.append(loss.item())
        if (step + 1) % 100 == 0:
            mean, seconds = np.mean(losses[-100:]), time.monotonic() - start
            print(f"step {step + 1}: loss {mean:.3f}, {seconds:.0f} s", flush=True)


def first_places(encoder: Encoder, scopes: dict[str, Scope], form: int) -> tuple[int, int]:
    """Return how often the nearest earlier prompt has the right plan, and how often one had."""
    right = ceiling = 0
    for scope in scopes.values():
        vectors = encoder.embed([texts[form] for texts in scope.texts])
        plan = {i: p for p, prompts in scope.plans.items() for i in prompts}
        near = vectors @ vectors.T
        seen: set[str] = set()
        for i in range(len(scope.texts)):
            if plan[i] in seen:
                ceiling += 1
                right += plan[int(np.argmax(near[i, :i]))] == plan[i]
            seen.add(plan[i])
    return right, ceiling


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
    torch.manual_seed(args.seed)
    left_out = {path.resolve() for path in args.judge}
    sets = {
        path.stem: prompts_of(read(path, None))
        for path in args.streams
        if path.resolve() not in left_out
    }
    sets |= {f"pairs of {path.stem}": prompts_of_pairs(path) for path in args.pairs}
    usable = {
        name: [s for s in scopes.values() if len(s.repeated()) >= USABLE_PLANS]
        for name, scopes in sets.items()
    }
    usable = {name: scopes for name, scopes in usable.items() if scopes}
    for name, scopes in usable.items():
        print(f"{name}: {len(scopes)} tenants, {sum(len(s.texts) for s in scopes)} prompts")
    encoder, plain = Encoder(packaged_weights()), Encoder(packaged_weights())
    train(encoder, usable, steps=args.steps, seed=args.seed)
    encoder.save(args.out)
    training = {
        "streams": sorted(path.stem for path in args.streams if path.resolve() not in left_out),
        "pairs": sorted(path.stem for path in args.pairs),
        "left_out": sorted(path.stem for path in args.judge),
        "steps": args.steps,
        "seed": args.seed,
    }
    (args.out / "training.json").write_text(json.dumps(training, indent=1) + "\n", encoding="utf-8")
    for path in args.judge:
        scopes = prompts_of(read(path, args.rows or 1000))
        for form, name in ((0, "masked"), (2, "raw")):
            before, ceiling = first_places(plain, scopes, form)
            after, _ = first_places(encoder, scopes, form)
            print(
                f"{path.stem} {name}: {before / ceiling:.3f} -> {after / ceiling:.3f} of {ceiling}"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
