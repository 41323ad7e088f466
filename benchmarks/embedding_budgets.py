"""The budgets of the shipped embedder: one embedding, hits that embed, the first of a process.

The other side is `SentenceTransformer.encode` with the very same weights, on one thread of torch.
Where sentence-transformers or the package with its configuration is missing, that is said.

Templates are embedded for real when they are stored, and prompts when they are asked: nothing
remembers a vector. What is encoded beside a hit is the prompt that hits.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from timing import NOTHING, ROUNDS, Line, medians, micro, ratio, spent
from workload import TAUGHT, Shape, Timed, asked, fill, opened, polite, scratch, shapes, teach

from semcache import Hit, PlanCache
from semcache.errors import WeightsUnavailable
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import BaseWeights, packaged_weights, shipped_weights

Encode = Callable[[str], np.ndarray]
"""What returns the vector of one text."""

EMBEDDED = 60
"""Texts a round."""
NEAR = 1e-5
"""How much a number of a vector may differ between the two that compute it."""
LEAST_HITS = 0.8
"""Share of the paraphrases that must hit by meaning for their time to say something."""
FIRST_HIT = """
import sys
from semcache import PlanCache
with PlanCache.open(sys.argv[1], max_entries=None, ttl_s=None) as cache:
    found = cache.lookup(sys.argv[2])
print(getattr(found, "tier", "no hit"), *{"torch"} & {*sys.modules})
"""


def shipped(*, memo: int = 0) -> MiniLMEmbedder:
    """Return the embedder that caches have by default; it remembers no vector."""
    return MiniLMEmbedder(shipped_weights(), memo=memo)


def sentence_transformer() -> Encode | None:
    """Return `SentenceTransformer.encode` with the shipped weights; None if it is not installed."""
    try:
        import torch  # noqa: PLC0415 - takes seconds, and need not be installed
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415 - as above

        model = SentenceTransformer(str(packaged_weights()), device="cpu", local_files_only=True)
    except (ImportError, WeightsUnavailable):
        return None
    torch.set_num_threads(1)
    _, tensors = BaseWeights.of(shipped_weights()).read()
    bert = model[0].auto_model
    names = [name for name in bert.state_dict() if name in tensors]
    bert.load_state_dict({name: torch.tensor(tensors[name]) for name in names}, strict=False)

    def encode(text: str) -> np.ndarray:
        row: np.ndarray = model.encode(text, normalize_embeddings=True, show_progress_bar=False)
        return row

    return encode


def fifteen_words(count: int, rng: random.Random) -> list[str]:
    """Return prompts of 15 words, no two alike."""
    return [f"now please {prompt}" for prompt in asked(shapes(count, rng), count, rng)]


def one_embedding(rng: random.Random) -> float:
    """Return the median seconds of one embedding of 15 words by the shipped embedder."""
    embedder = shipped()
    rounds = [fifteen_words(EMBEDDED, rng) for _ in range(ROUNDS)]
    (seconds,) = medians((lambda text: embedder.embed([text]), rounds))
    return seconds


def embeddings(encode: Encode | None, rng: random.Random) -> Iterator[Line]:
    """Measure one embedding against that of sentence-transformers, and compare their vectors."""
    name = "one embedding of 15 words / SentenceTransformer.encode"
    if encode is None:
        yield Line(name, "< 0.5 x", NOTHING, None, "sentence-transformers is not installed")
        return
    embedder = shipped()
    rounds = [fifteen_words(EMBEDDED, rng) for _ in range(ROUNDS)]
    ours, theirs = medians((lambda text: embedder.embed([text]), rounds), (encode, rounds))
    yield ratio(name, 0.5, ours / theirs, f"{micro(ours)} / {micro(theirs)}; same weights")
    texts = [text for one in rounds for text in one]
    differences = [np.abs(embedder.embed([text])[0] - encode(text)).max() for text in texts]
    most = float(max(differences))
    yield Line(
        "largest difference of a number of their vectors",
        f"< {NEAR:g}",
        f"{most:.1e}",
        most < NEAR,
        f"{len(texts)} prompts",
    )


def hits_by_meaning(
    directory: Path, count: int, encode: Encode | None, rng: random.Random
) -> Iterator[Line]:
    """Measure hits that embed their prompt, and the first one of a fresh process."""
    templates = shapes(count, rng)
    with scratch(directory) as work:
        with opened(work / "cache", Timed(shipped())) as cache:
            fill(cache, templates)
            taught = [shape.prompt(1999, 7) for shape in rng.choices(templates, k=TAUGHT)]
            teach(cache, taught, "could you please ", "?")
            prompts = those_that_hit(cache, templates, rng)
            yield semantic_hit(cache, templates, encode, rng)
        yield first_hit(work / "cache", prompts, count)


def those_that_hit(cache: PlanCache, templates: Sequence[Shape], rng: random.Random) -> list[str]:
    """Return paraphrases that hit by meaning; end the run where most do not."""
    prompts = polite(asked(templates, 50, rng))
    hits = [p for p in prompts if getattr(cache.lookup(p), "tier", "") == "semantic"]
    if len(hits) < LEAST_HITS * len(prompts):
        raise SystemExit(f"{len(hits)} of {len(prompts)} paraphrases hit by meaning")
    return hits


def semantic_hit(
    cache: PlanCache, templates: Sequence[Shape], encode: Encode | None, rng: random.Random
) -> Line:
    """Measure hits of templates never asked for in these words, beside encoding the same."""
    name = (
        f"semantic hit with its embedding / SentenceTransformer.encode, {len(templates):,} entries"
    )
    rounds = [polite(asked(templates, EMBEDDED, rng)) for _ in range(ROUNDS)]
    if encode is None:
        return Line(name, "< 0.6 x", NOTHING, None, "sentence-transformers is not installed")
    found: list[bool] = []

    def lookup(prompt: str) -> None:
        found.append(isinstance(cache.lookup(prompt), Hit))

    ours, theirs = medians((lookup, rounds), (encode, rounds))
    details = f"{micro(ours)} / {micro(theirs)}; {sum(found) / len(found):.0%} hit"
    return ratio(name, 0.6, ours / theirs, details)


def first_hit(directory: Path, prompts: Sequence[str], count: int) -> Line:
    """Measure the processor time of processes that open a directory and ask once by meaning."""
    name = f"a fresh process and its first hit by meaning, {count:,} entries on disk"
    bound = "< 1 s of processor, no torch"
    best = float("inf")
    for number in range(ROUNDS + 1):  # the first compiles modules
        took, said = spent("-c", FIRST_HIT, str(directory), prompts[number])
        if said.split() != ["semantic"]:
            return Line(name, bound, said.strip(), met=False)
        best = min(best, took)
    return Line(name, bound, f"{best:.2f} s", best < 1, "best of a few processes")
