"""Measure every budget of the design as a ratio, both sides of it in this one run.

    python benchmarks/budgets.py [--quick | --large] [--only PART...] [--json OUT] [--seed N]
                                 [--directory DIR]

Prompts asked have other values than those stored, all templates equally often (`workload.py`).
Caches are on `--directory` (default: tmpfs, if there is one). Times are medians, of the best of a
few rounds; the sides of a ratio take turns, so that a busy machine slows both.

Parts: `imports` (imports and commands), `embedding` (the shipped embedder, each prompt embedded
for real: `embedding_budgets.py`), `entries` (hits, memory, opening), `sharing` (processes, tenants:
`sharing_budgets.py`). In `entries` vectors come from a stand-in of 384 dimensions (a hash of each
word), so that filling a cache does not take minutes; its seconds are taken off where "without"
embedding is said.

`--quick`: 1,000 entries instead of 10,000, to see that it runs. `--large`: also 100,000 entries.
GPTCache is measured only where `gptcache` can be imported; it is no dependency of ours.
"""

import argparse
import gc
import importlib.util
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import diskcache
from embedding_budgets import embeddings, hits_by_meaning, one_embedding, sentence_transformer
from sharing_budgets import bounded_stores, processes, threads, waiting
from timing import NOTHING, ROUNDS, Line, each, micro, ratio, spent, table, without_embedding
from tqdm import tqdm
from workload import (
    DIMENSION,
    TAUGHT,
    TENANT,
    Shape,
    Timed,
    asked,
    expect,
    fill,
    machine,
    opened,
    polite,
    scratch,
    shapes,
    teach,
)

from semcache import Hit, PlanCache, __version__
from semcache.stores.disk.store import DiskStore
from semcache.stores.records import encode

HEAVY = ("torch", "sentence_transformers", "faiss", "openai")
PARTS = ("imports", "embedding", "entries", "sharing")
"""Of this script; each may be measured without the others."""

# Budgets -------------------------------------------------------------------------------------


def importing() -> Iterator[Line]:
    """Measure imports in fresh processes."""
    probe = (
        "import sys, time; start = time.perf_counter(); {0}; took = time.perf_counter() - start; "
        "print(took, *(name for name in " + repr(HEAVY) + " if name in sys.modules))"
    )
    sides = {
        "semcache": "import semcache",
        "PlanCache": "from semcache import PlanCache",
        "pydantic": "import pydantic",
    }
    best: dict[str, float] = dict.fromkeys(sides, float("inf"))
    loaded: set[str] = set()
    for _ in range(ROUNDS + 1):
        for name, statement in sides.items():
            command = [sys.executable, "-c", probe.format(statement)]
            took, *heavy = subprocess.run(  # noqa: S603 - our own words, no shell
                command, capture_output=True, text=True, check=True
            ).stdout.split()
            best[name] = min(best[name], float(took))
            loaded.update(heavy)
    found = ", ".join(sorted(loaded)) or "none"
    yield Line("`import semcache` loads a heavy package", "none", found, not loaded)
    yield ratio(
        "import semcache / import pydantic",
        3,
        best["semcache"] / best["pydantic"],
        f"{micro(best['semcache'])} / {micro(best['pydantic'])}; "
        f"with its PlanCache {micro(best['PlanCache'])}",
    )


def commands(directory: Path) -> Iterator[Line]:
    """Measure the processor time of whole commands, each in a process of its own."""
    with scratch(directory) as work:
        ask = ["ask", "--demo", "--directory", str(work / "cache")]
        first = "Show me total sales in 2024 by category"
        spent("-m", "semcache", *ask, first)  # which plans, and compiles modules
        for shown, bound, command in (
            ("--version", 0.15, ["--version"]),
            ("--help", 0.15, ["--help"]),
            ("ask, a template hit", 1.0, [*ask, "Show me total sales in 2021 by category"]),
            ("warm-up: the embedder too", 1.0, ["warm-up", "--directory", str(work / "cache")]),
        ):
            took = min(spent("-m", "semcache", *command)[0] for _ in range(ROUNDS))
            measured = f"{took:.2f} s"
            yield Line(f"`semcache {shown}`", f"< {bound:g} s of processor", measured, took < bound)


def template_hits(
    cache: PlanCache, templates: Sequence[Shape], work: Path, rng: random.Random
) -> Iterator[Line]:
    """Measure hits of the template tier against one diskcache get of the same records.

    Each round asks for the same 2,000 templates: by prompts that were never asked before, which is
    the budget, and by the same prompts once more, which need not be read again.
    """
    picked = [rng.choice(templates) for _ in range(2000)]
    expect(cache, asked(picked, 2000, rng)[:50], "template")
    store = DiskStore.open(work / "cache")
    records = store.scan(TENANT)
    with diskcache.Cache(str(work / "plain")) as plain:
        for record in records:
            plain[record.id] = encode(record)
        ids = [rng.choice(records).id for _ in picked]
        each(cache.lookup, [shape.prompt(1989, 5) for shape in picked])  # served once, as usual
        new, again, get = (float("inf"),) * 3
        for _ in range(ROUNDS):
            prompts = [s.prompt(rng.randrange(1990, 2030), rng.randrange(2, 99)) for s in picked]
            new = min(new, statistics.median(each(cache.lookup, prompts)))
            again = min(again, statistics.median(each(cache.lookup, prompts)))
            get = min(get, statistics.median(each(plain.get, ids)))
        size = statistics.median(len(plain[id_]) for id_ in ids[:100])
    store.close()
    entries = f"{len(templates):,} entries"
    yield ratio(
        f"template-tier hit / diskcache get, {entries}",
        8,
        new / get,
        f"{micro(new)} / {micro(get)}; record {size:,.0f} bytes",
    )
    yield ratio(
        f"the same, of prompts asked before, {entries}",
        4,
        again / get,
        f"{micro(again)} / {micro(get)}",
    )


def beside_embedding(
    cache: PlanCache,
    templates: Sequence[Shape],
    embedder: Timed,
    embedding: float,
    rng: random.Random,
) -> Iterator[Line]:
    """Measure what a hit of the semantic tier takes beside its embedding; no budget.

    Templates never asked for in these words before, and then the same with other values, which are
    neither searched nor weighed again while nothing is stored.
    """
    rounds = [polite(asked(templates, 300, rng)) for _ in range(ROUNDS)]
    expect(cache, polite(asked(templates, 20, rng)), "semantic")
    new = without_embedding(cache.lookup, rounds, embedder)
    picked = [rng.choice(templates) for _ in range(200)]
    others = [polite([s.prompt(y, y - 1985) for s in picked]) for y in range(1990, 1991 + ROUNDS)]
    again = without_embedding(cache.lookup, others, embedder)
    size = f"{len(templates):,} entries"
    for what, seconds in (
        ("semantic hit without its embedding / one embedding", new),
        ("the same, asked before with other values", again),
    ):
        details = f"{micro(seconds)} / {micro(embedding)}"
        yield Line(f"{what}, {size}", "", f"{seconds / embedding:.1%}", None, details)


def weighing(
    cache: PlanCache, templates: Sequence[Shape], embedding: float, rng: random.Random
) -> Iterator[Line]:
    """Measure gates, features and risk of the neighbors of a prompt, and learning from its plan.

    A prompt that hit is labeled as if it had missed and its plan were the one that was served.
    """
    labels = cache._context.labels  # noqa: SLF001 - a store does a good deal beside
    gates, learn = [float("inf")] * 2
    worst = 0.0
    for _ in range(ROUNDS):
        prompts = polite(asked(templates, 128, rng))
        found = [cache.lookup(prompt) for prompt in prompts]
        gates = min(gates, statistics.median(one.trace.seconds["gates"] for one in found))
        entries = cache._context.views.current(TENANT).entries  # noqa: SLF001 - as above
        planned = [(h.trace.prompt, {entries[h.entry].said}) for h in found if isinstance(h, Hit)]
        took = each(lambda one: labels.planned(TENANT, *one), planned)
        learn, worst = min(learn, statistics.median(took)), max(worst, *took)
    size = f"{len(templates):,} entries"
    for what, bound, seconds, more in (
        ("gates, features and risk of a lookup", 0.6e-3, gates, ""),
        ("learning from a planned miss", 2e-3, learn, f"; slowest, written down: {micro(worst)}"),
    ):
        yield Line(
            f"{what}, {size}",
            f"< {bound * 1e3:g} ms",
            f"{seconds * 1e3:.2f} ms",
            seconds < bound,
            f"{seconds / embedding:.1%} of one embedding{more}",
        )


def reopening(directory: Path, templates: Sequence[Shape]) -> Iterator[Line]:
    """Measure the time from opening a filled directory to its first hit."""
    embedder = Timed()
    prompt = templates[0].prompt(2001, 7)
    start, used = time.perf_counter(), time.process_time()
    cache = opened(directory, embedder)
    found = cache.lookup(prompt)
    took, used = time.perf_counter() - start, time.process_time() - used
    cache.close()
    if not found:
        raise SystemExit(f"a reopened cache missed: {found.explain()}")
    large = len(templates) >= 100_000
    yield Line(
        f"reopening {len(templates):,} entries, to the first hit",
        "< 2 s, 0 embeddings" if large else "(2 s at 100,000)",
        f"{took:.2f} s, {int(embedder.seconds > 0)} embeddings",
        took < 2 and not embedder.seconds if large else None,
        f"{used:.2f} s of processor time",
    )


def memory(directory: Path, templates: Sequence[Shape]) -> Iterator[Line]:
    """Measure the Python memory that an entry takes in a reopened cache, its plan taken off."""
    prompts = [shape.prompt(2001, 7) for shape in templates]
    tracemalloc.start()
    start = allocated()
    plans = [json.loads(json.dumps(shape.plan(2024, 5))) for shape in templates]
    plan = (allocated() - start) / len(plans)
    del plans
    start = allocated()
    cache = opened(directory, Timed())
    cache.lookup(prompts[0])
    idle = (allocated() - start) / len(prompts)
    for prompt in prompts:
        cache.lookup(prompt)
    served = (allocated() - start) / len(prompts)
    cache.close()
    tracemalloc.stop()
    name = f"memory an entry beside its plan, {len(templates):,} entries"
    for when, size in (("reopened", idle), ("each served once", served - plan)):
        details = f"vector {4 * DIMENSION:,} B included; the plan itself is {plan:,.0f} B"
        yield Line(f"{name}, {when}", "< 4,096 B", f"{size:,.0f} B", size < 4096, details)


def allocated() -> int:
    """Return the bytes that are allocated now, garbage collected."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def gptcache(
    directory: Path, cache: PlanCache, templates: Sequence[Shape], embedder: Timed
) -> Iterator[Line]:
    """Measure hits of GPTCache (SQLite and FAISS) against ours, same stand-in, same prompts."""
    name = f"GPTCache hit / ours, both without embedding, {len(templates):,} entries"
    missing = [n for n in ("gptcache", "sqlalchemy") if importlib.util.find_spec(n) is None]
    if missing:  # it would install what it lacks by itself
        yield Line(name, "> 20 x", NOTHING, None, f"not installed: {', '.join(missing)}")
        return
    from gptcache import Cache, Config  # noqa: PLC0415 - measured only where it is installed
    from gptcache.adapter.api import get, put  # noqa: PLC0415 - as above
    from gptcache.manager import CacheBase, VectorBase, get_data_manager  # noqa: PLC0415 - as above
    from gptcache.processor.pre import get_prompt  # noqa: PLC0415 - as above
    from gptcache.similarity_evaluation.distance import (  # noqa: PLC0415 - as above
        SearchDistanceEvaluation,
    )

    directory.mkdir()
    other = Cache()
    other.init(
        pre_embedding_func=get_prompt,
        embedding_func=lambda text, **_: embedder.embed([text])[0],
        data_manager=get_data_manager(
            CacheBase("sqlite", sql_url=f"sqlite:///{directory}/sqlite.db"),
            VectorBase("faiss", dimension=DIMENSION, index_path=str(directory / "faiss.index")),
            max_size=10 * len(templates),  # by default it keeps the latest thousand
        ),
        similarity_evaluation=SearchDistanceEvaluation(),
        config=Config(similarity_threshold=0.8),
    )
    for shape in tqdm(templates, desc="storing, GPTCache", leave=False, file=sys.stderr):
        put(shape.prompt(2024, 5), json.dumps(shape.plan(2024, 5)), cache_obj=other)
    prompts = [shape.prompt(2024, 5) for shape in templates]
    again, rest = prompts[:100], prompts[100 : 100 * (ROUNDS + 1)]
    for what, bound, rounds in (
        ("stored prompts again", 20, [again] * ROUNDS),
        (
            "paraphrases never asked before",
            5,
            [polite(rest[i::ROUNDS]) for i in range(ROUNDS)],
        ),
        ("the same paraphrases again", 20, [polite(again)] * ROUNDS),
    ):
        theirs = without_embedding(lambda text: get(text, cache_obj=other), rounds[:2], embedder)
        ours = without_embedding(cache.lookup, rounds, embedder)
        yield Line(
            f"{name}, {what}",
            f"> {bound} x",
            f"{theirs / ours:.1f} x",
            theirs > bound * ours,
            f"{micro(theirs)} / {micro(ours)}; gptcache {version('gptcache')}",
        )


# The run -------------------------------------------------------------------------------------


def measure(count: int, embedding: float, directory: Path, rng: random.Random) -> Iterator[Line]:
    """Yield the lines that depend on how many entries there are."""
    templates = shapes(count, rng)
    embedder = Timed()
    with scratch(directory) as work:
        with opened(work / "cache", embedder) as cache:
            fill(cache, templates)
            taught = [shape.prompt(1999, 7) for shape in rng.choices(templates, k=TAUGHT)]
            teach(cache, taught, "could you please ", "?")
            yield from template_hits(cache, templates, work, rng)
            yield from beside_embedding(cache, templates, embedder, embedding, rng)
            if count <= 10_000:
                yield from threads(cache, templates, rng)
                yield from gptcache(work / "gptcache", cache, templates, embedder)
            yield from weighing(cache, templates, embedding, rng)
        yield from reopening(work / "cache", templates)
        if count <= 10_000:
            yield from memory(work / "cache", templates)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return 0 if no budget was exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="1,000 entries, to see that it runs")
    size.add_argument("--large", action="store_true", help="also 100,000 entries; takes minutes")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where the caches are made")
    given = parser.parse_args(arguments)
    lines = []
    for line in measured(given):
        lines.append(line)
        print(f"{line.budget}: {line.measured}", file=sys.stderr)
    print(f"semcache {__version__}, seed {given.seed}, caches in {place(given.directory)}\n")
    print(table(lines))
    if given.json:
        report = {
            "machine": machine(),
            "seed": given.seed,
            "lines": [asdict(line) for line in lines],
        }
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return int(any(line.met is False for line in lines))


def place(directory: Path | None) -> Path:
    """Return where caches are made."""
    tmpfs = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    return directory or (tmpfs if tmpfs.is_dir() else Path(tempfile.gettempdir()))


def measured(given: argparse.Namespace) -> Iterator[Line]:
    """Yield the lines of the parts that were asked for."""
    rng = random.Random(given.seed)  # noqa: S311 - a workload, not a secret
    directory, count = place(given.directory), 1_000 if given.quick else 10_000
    if "imports" in given.only:
        yield from importing()
        yield from commands(directory)
    if "embedding" in given.only:
        encode = sentence_transformer()
        yield from embeddings(encode, rng)
        yield from hits_by_meaning(directory, count, encode, rng)
    if "entries" in given.only:
        embedding = one_embedding(rng)
        for entries in [count, 100_000] if given.large else [count]:
            yield from measure(entries, embedding, directory, rng)
    if "sharing" in given.only:
        yield from processes(directory, count, given.seed)
        yield from bounded_stores(directory, rng)
        yield from waiting(directory, rng)


if __name__ == "__main__":
    sys.exit(main())
