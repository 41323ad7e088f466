"""Training of the default embedder: prompts of one plan come near, prompts of other plans go far.

Supervised contrast (Khosla et al. 2020) over prompts of one tenant: a step takes two prompts of
each of some plans, and one of another plan that the untrained weights find near. Needs torch and
transformers, the extra `sentence-transformers`: import it where it is used.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from transformers import AutoModel, BertConfig

from semcache.models.difference import DOWN, UP
from semcache.models.minilm import EPSILON, LAYERS
from semcache.models.weights import BaseWeights, Matrix
from semcache.models.wordpiece import WordPiece
from semcache.ports import Vectors

PLANS_A_STEP, TEMPERATURE, WARM_UP, LONGEST = 20, 0.05, 50, 64
HARD, ASKED = 8, 3000
"""Near prompts of other plans that are kept for a prompt, and prompts of a tenant that get them."""
USABLE_PLANS = 6
"""Plans with two prompts or more that a tenant needs to be trained on."""
HEADS = 12
"""`num_attention_heads` of the weights, which no tensor tells."""
# bfloat16 halves the time where the processor has it, and doubles it where it has not.
BRIEF = torch.backends.cpu.get_cpu_capability().startswith("AVX512")

Told: TypeAlias = Callable[[int, int, float], object]
"""Is told after each step: how many were done, of how many, and the loss."""


@dataclass
class PromptSet:
    """The prompts of one tenant, in the order in which they were asked."""

    texts: list[tuple[str, ...]] = field(default_factory=list)
    """Of each prompt, as it may be embedded: as a planner's values mask it, as recognizers do, and
    as it is."""
    plans: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Plan but for its values → its prompts."""
    hard: list[list[int]] = field(default_factory=list)
    """Of each prompt: near ones of other plans; `mine` finds them."""

    def add(self, plan: str, texts: tuple[str, ...]) -> None:
        """Add a prompt."""
        self.plans[plan].append(len(self.texts))
        self.texts.append(texts)

    def repeated(self) -> list[str]:
        """Return the plans with two prompts or more."""
        return [plan for plan, prompts in self.plans.items() if len(prompts) > 1]

    @property
    def usable(self) -> bool:
        """Whether there are plans enough to tell apart."""
        return len(self.repeated()) >= USABLE_PLANS


class Encoder:
    """Weights of all-MiniLM-L6-v2's form in torch, their tokenizer, and what of them is trained."""

    def __init__(self, weights: BaseWeights) -> None:
        """Load the weights; nothing of them is trained yet.

        Raises:
            WeightsUnavailable: they cannot be read.
        """
        self.folder: Path
        self.folder, tensors = weights.read()
        self._tokenizer = WordPiece.read(self.folder / "tokenizer.json")
        # Without dropout, and attention as plain products, a step takes two thirds of the time.
        self.model = AutoModel.from_config(
            _config(tensors), attn_implementation="eager", add_pooling_layer=False
        )
        known = self.model.state_dict()
        self.model.load_state_dict(
            {name: torch.tensor(tensors[name]) for name in known if name in tensors}, strict=False
        )
        self.model.requires_grad_(requires_grad=False)
        self._factors: dict[str, torch.Tensor] = {}

    @property
    def trained(self) -> list[torch.Tensor]:
        """What is trained."""
        return [p for p in [*self.model.parameters(), *self._factors.values()] if p.requires_grad]

    def train_layers(self) -> None:
        """Let the weights of the layers be trained; embeddings of tokens stay as they are."""
        self.model.encoder.requires_grad_(requires_grad=True)

    def train_difference(self, rank: int, *, seed: int) -> None:
        """Let a difference of that rank be trained for each matrix of the layers, from 0 on."""
        generator = torch.Generator().manual_seed(seed)
        for name, linear in self.model.encoder.named_modules():
            if isinstance(linear, torch.nn.Linear):
                down = torch.randn(rank, linear.in_features, generator=generator)
                down = (down / linear.in_features**0.5).requires_grad_(requires_grad=True)
                up = torch.zeros(linear.out_features, rank, requires_grad=True)
                self._factors[f"encoder.{name}.weight{DOWN}"] = down
                self._factors[f"encoder.{name}.weight{UP}"] = up
                linear.register_forward_hook(_adding(down, up))

    def factors(self) -> dict[str, Matrix]:
        """Return what `train_difference` added, as `LowRankDifference.of` takes it."""
        return {name: factor.detach().numpy() for name, factor in self._factors.items()}

    def weights(self) -> dict[str, Matrix]:
        """Return the weights by the names that their file has for them, without any difference."""
        return {name: tensor.detach().numpy() for name, tensor in self.model.state_dict().items()}

    def vectors(self, texts: Sequence[str]) -> torch.Tensor:
        """Return one normalized row a text."""
        ids, seen = map(torch.from_numpy, self._tokenizer.encode(texts, LONGEST))
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=BRIEF):
            hidden = self.model(input_ids=ids, attention_mask=seen).last_hidden_state
        hidden = hidden.float() * seen[:, :, None]
        return torch.nn.functional.normalize(hidden.sum(1) / seen.sum(1, keepdim=True), dim=1)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one normalized row a text, without gradients; shape `(len(texts), 384)`."""
        order = sorted(range(len(texts)), key=lambda i: len(texts[i]))
        rows = np.empty((len(texts), self.model.config.hidden_size), np.float32)
        with torch.no_grad():
            for start in range(0, len(order), 128):
                part = order[start : start + 128]
                rows[part] = self.vectors([texts[i] for i in part]).numpy()
        return rows


def _config(tensors: Mapping[str, Matrix]) -> BertConfig:
    words = tensors["embeddings.word_embeddings.weight"]
    return BertConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=tensors["encoder.layer.0.intermediate.dense.weight"].shape[0],
        max_position_embeddings=tensors["embeddings.position_embeddings.weight"].shape[0],
        layer_norm_eps=EPSILON,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )


def _adding(down: torch.Tensor, up: torch.Tensor) -> Callable[..., torch.Tensor]:
    def hook(_: object, inputs: tuple[torch.Tensor, ...], out: torch.Tensor) -> torch.Tensor:
        linear = torch.nn.functional.linear
        return out + linear(linear(inputs[0], down), up)

    return hook


def mine(prompts: PromptSet, encoder: Encoder, chance: random.Random) -> None:
    """Keep for the prompts of a tenant which ones of other plans are near."""
    vectors = encoder.embed([texts[0] for texts in prompts.texts])
    plan = np.empty(len(prompts.texts), int)
    for number, same in enumerate(prompts.plans.values()):
        plan[same] = number
    prompts.hard = [[] for _ in prompts.texts]
    every = range(len(prompts.texts))
    for i in chance.sample(every, min(len(every), ASKED)):
        near = vectors @ vectors[i]
        near[plan == plan[i]] = -2
        prompts.hard[i] = [int(j) for j in np.argsort(-near)[:HARD] if near[j] > -1]


def contrast(vectors: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the loss of a step: each pair of one plan against all of other plans."""
    own = torch.eye(len(labels), dtype=torch.bool)
    same = (labels[:, None] == labels[None, :]) & ~own
    near = (vectors @ vectors.T / TEMPERATURE).masked_fill(own, -1e9)
    others = torch.logsumexp(near.masked_fill(same, -1e9), 1, keepdim=True)
    return torch.nn.functional.softplus(others - near)[same].mean()


def batch(prompts: PromptSet, chance: random.Random) -> tuple[list[str], torch.Tensor]:
    """Return the texts of a step and a number for the plan of each."""
    repeated = prompts.repeated()
    number = {plan: n for n, plan in enumerate(prompts.plans)}
    plan_of = {i: number[plan] for plan, same in prompts.plans.items() for i in same}
    chosen: list[int] = []
    for plan in chance.sample(repeated, min(PLANS_A_STEP, len(repeated))):
        pair = chance.sample(prompts.plans[plan], 2)
        chosen += pair
        if prompts.hard[pair[0]]:
            chosen.append(chance.choice(prompts.hard[pair[0]]))
    # Mostly one form for the whole step; sometimes each prompt its own, as a prompt is looked up
    # before its values are known and stored after.
    form = chance.choice((0, 0, 1, 2, None))
    texts = [prompts.texts[i][chance.randrange(3) if form is None else form] for i in chosen]
    return texts, torch.tensor([plan_of[i] for i in chosen])


def train(
    encoder: Encoder,
    sets: Mapping[str, Sequence[PromptSet]],
    *,
    steps: int,
    rate: float,
    seed: int = 0,
    told: Told | None = None,
) -> None:
    """Train what of the encoder is to be trained.

    `sets`: name → the usable tenants of a source; a source counts by the root of its prompts.
    `rate`: of AdamW, reached after `WARM_UP` steps, falling to a twentieth.
    """
    chance = random.Random(seed)  # noqa: S311 - a seeded draw, no secret
    for prompts in (one for tenants in sets.values() for one in tenants):
        mine(prompts, encoder, chance)
    trained = encoder.trained
    optimizer = torch.optim.AdamW(trained, lr=rate, weight_decay=0.01)
    names = list(sets)
    shares = [sum(len(one.texts) for one in sets[name]) ** 0.5 for name in names]
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / WARM_UP) * max(0.05, 1 - step / steps)
        tenants = sets[chance.choices(names, shares)[0]]
        prompts = chance.choices(tenants, [len(one.repeated()) for one in tenants])[0]
        texts, labels = batch(prompts, chance)
        loss = contrast(encoder.vectors(texts), labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        if told is not None:
            told(step + 1, steps, loss.item())
