"""Measure every budget of the design as a ratio, both sides of it in this one run.

    python benchmarks/budgets.py [--quick | --large] [--json OUT] [--seed N] [--directory DIR]

The workload is made, not recorded: prompts such as "rank the margin of refunds in 2024 by region
for suppliers top 5". Each template has its own plan in the routes format (400 bytes of JSON) and
two values; prompts asked have other values than those stored, all templates equally often.
Caches are on `--directory` (default: tmpfs, if there is one). Times are medians, of the best of a
few rounds; the sides of a ratio take turns, so that a busy machine slows both.

Vectors come from a stand-in of 384 dimensions (a hash of each word), so that filling a cache does
not take minutes; its seconds are taken off where "without embedding" is said. One real embedding
is timed with all-MiniLM-L6-v2, one thread, no text twice.

`--quick`: 1,000 entries instead of 10,000, to see that it runs. `--large`: also 100,000 entries.
GPTCache is measured only where `gptcache` can be imported; it is no dependency of ours.
"""

import argparse
import gc
import importlib.util
import json
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import diskcache
import numpy as np
from tqdm import tqdm

from semcache import Hit, Parameter, PlanCache, __version__
from semcache.errors import EmbeddingError
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.stores.disk.store import DiskStore
from semcache.stores.records import encode
from semcache.testing import HashEmbedder

TENANT = "default"
DIMENSION = 384
HEAVY = ("torch", "sentence_transformers", "faiss", "openai")
ROUNDS = 5
NEVER_COMPILED = "PYTHONDONTWRITEBYTECODE"
"""Set, each process would compile all modules anew, which no installed program does."""
TAUGHT = 64
"""Prompts that a tenant is told the plans of before its hits by meaning are measured."""


@dataclass(frozen=True)
class Line:
    """One budget, its bound, and what was measured."""

    budget: str
    bound: str
    measured: str
    met: bool | None
    """None: not measured here."""
    details: str = ""


# Workload ------------------------------------------------------------------------------------

VERBS = "compare rank chart average sum plot export audit forecast split".split()
MEASURES = "revenue margin discount quantity weight price delay rating cost tax".split()
ENTITIES = (
    "orders invoices shipments returns payments products tickets visits refunds claims".split()
)
GROUPS = "category region channel state city month store brand segment warehouse".split()
PARTIES = "suppliers partners members guests agents dealers tenants owners pilots nurses".split()


@dataclass(frozen=True)
class Shape:
    """One template of the workload."""

    verb: str
    measure: str
    entity: str
    group: str
    party: str

    def prompt(self, year: int, limit: int) -> str:
        """Return the prompt for these values."""
        return (
            f"{self.verb} the {self.measure} of {self.entity} in {year} by {self.group} "
            f"for {self.party} top {limit}"
        )

    def plan(self, year: int, limit: int) -> dict[str, Any]:
        """Return the plan for these values."""
        query = {
            "table": self.entity,
            "measure": self.measure,
            "how": self.verb,
            "group_by": [self.group],
            "filters": [
                {"field": "year", "operator": "equals", "value": year},
                {"field": "party", "operator": "equals", "value": self.party},
            ],
            "order_by": [{"field": self.measure, "direction": "desc"}],
            "limit": limit,
        }
        return {
            "start_node": {"route": "query"},
            "query": {"operation": "query_sales", "input": query, "route": "done"},
            "done": {"completed": True, "vars": {"answer": "$.query.data"}},
        }


def shapes(count: int, rng: random.Random) -> list[Shape]:
    """Return `count` different templates, at most 100,000."""
    numbers = rng.sample(range(100_000), count)
    return [
        Shape(
            VERBS[n % 10],
            MEASURES[n // 10 % 10],
            ENTITIES[n // 100 % 10],
            GROUPS[n // 1000 % 10],
            PARTIES[n // 10_000],
        )
        for n in numbers
    ]


def asked(templates: Sequence[Shape], count: int, rng: random.Random) -> list[str]:
    """Return prompts of these templates with values of their own."""
    return [
        rng.choice(templates).prompt(rng.randrange(1990, 2030), rng.randrange(2, 99))
        for _ in range(count)
    ]


class Timed:
    """The stand-in embedder, adding up the seconds that it takes."""

    def __init__(self) -> None:
        self._inner = HashEmbedder(dim=DIMENSION)
        self.fingerprint = self._inner.fingerprint
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row a text."""
        start = time.perf_counter()
        rows = self._inner.embed(texts)
        self.seconds += time.perf_counter() - start
        return rows


def opened(directory: Path, embedder: Timed) -> PlanCache:
    """Return the cache in `directory`."""
    return PlanCache.open(directory, embedder=embedder, max_entries=None, ttl_s=None)


def fill(cache: PlanCache, templates: Sequence[Shape]) -> None:
    """Store a plan for each template."""
    for shape in tqdm(templates, desc=f"storing {len(templates):,}", leave=False, file=sys.stderr):
        params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]
        stored = cache.store(shape.prompt(2024, 5), shape.plan(2024, 5), params=params)
        if not stored or stored.reason:
            raise SystemExit(f"the workload cannot be stored: {stored.reason}")


def teach(
    cache: PlanCache, prompts: Sequence[str], lead: str, tail: str = "", *, tenant: str = TENANT
) -> None:
    """Label prompts between `lead` and `tail` as the planned misses of stored templates would be.

    A tenant without labels serves little.
    """
    entries = cache._context.views.current(tenant).entries  # noqa: SLF001 - labels without their stores
    for prompt in prompts:
        stored, asked = cache.lookup(prompt, tenant=tenant), f"{lead}{prompt}{tail}"
        cache.lookup(asked, tenant=tenant)
        if isinstance(stored, Hit):
            family = entries[stored.entry].said
            cache._context.labels.planned(tenant, asked, {family})  # noqa: SLF001 - as above


# Timing --------------------------------------------------------------------------------------


def each(call: Callable[[Any], object], items: Sequence[Any]) -> list[float]:
    """Return the seconds of `call` for each of `items`."""
    took = []
    for item in items:
        start = time.perf_counter()
        call(item)
        took.append(time.perf_counter() - start)
    return took


def medians(*sides: tuple[Callable[[Any], object], Sequence[Any]]) -> list[float]:
    """Return for each side its median seconds in the best of the rounds; sides take turns."""
    best = [float("inf")] * len(sides)
    for _ in range(ROUNDS):
        for i, (call, items) in enumerate(sides):
            best[i] = min(best[i], statistics.median(each(call, items)))
    return best


def micro(seconds: float) -> str:
    """Return `seconds` as microseconds, or as milliseconds where there are many."""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def ratio(name: str, bound: float, value: float, details: str, *, unit: str = "x") -> Line:
    """Return the line of a ratio that must stay under `bound`."""
    scale, sign = (100, " %") if unit == "%" else (1, " x")
    shown = f"{value * scale:.1f}{sign}"
    return Line(name, f"< {bound * scale:g}{sign}", shown, value < bound, details)


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
        spent(*ask, "Show me total sales in 2024 by category")  # which plans, and compiles modules
        for shown, bound, command in (
            ("--version", 0.15, ["--version"]),
            ("--help", 0.15, ["--help"]),
            ("ask, a template hit", 1.0, [*ask, "Show me total sales in 2021 by category"]),
            ("warm-up: the embedder too", 1.0, ["warm-up", "--directory", str(work / "cache")]),
        ):
            took = min(spent(*command) for _ in range(ROUNDS))
            measured = f"{took:.2f} s"
            yield Line(f"`semcache {shown}`", f"< {bound:g} s of processor", measured, took < bound)


def spent(*arguments: str) -> float:
    """Return the seconds of processor time of a command; modules stay compiled in a folder."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    compiled = str(Path(tempfile.gettempdir()) / "semcache-budgets-compiled")
    environ = {name: value for name, value in os.environ.items() if name != NEVER_COMPILED}
    subprocess.run(  # noqa: S603 - our own words, no shell
        [sys.executable, "-m", "semcache", *arguments],
        env={**environ, "PYTHONPYCACHEPREFIX": compiled},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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


def semantic_hits(
    cache: PlanCache,
    templates: Sequence[Shape],
    embedder: Timed,
    embedding: float | None,
    rng: random.Random,
) -> Iterator[Line]:
    """Measure hits of the semantic tier, their embedding taken off, against one real embedding.

    Templates never asked for in these words before, and then the same with other values, which are
    neither searched nor weighed again while nothing is stored.
    """
    rounds = [polite(asked(templates, 300, rng)) for _ in range(ROUNDS)]
    expect(cache, polite(asked(templates, 20, rng)), "semantic")
    best = without_embedding(cache.lookup, rounds, embedder)
    picked = [rng.choice(templates) for _ in range(200)]
    others = [polite([s.prompt(y, y - 1985) for s in picked]) for y in range(1990, 1991 + ROUNDS)]
    again = without_embedding(cache.lookup, others, embedder)
    bound = 0.10 if len(templates) <= 10_000 else 0.25
    name = f"semantic hit without embedding / one embedding, {len(templates):,} entries"
    if embedding is None:
        yield Line(name, f"< {bound:.0%}", micro(best), None, "the embedder cannot be loaded here")
        return
    details = f"{micro(best)} / {micro(embedding)}"
    yield ratio(name, bound, best / embedding, details, unit="%")
    details = f"{micro(again)} / {micro(embedding)}"
    yield Line(
        f"the same, asked before with other values, {len(templates):,} entries",
        "-",
        f"{again / embedding:.1%}",
        None,
        details,
    )


def polite(prompts: Sequence[str]) -> list[str]:
    """Return a paraphrase of each prompt."""
    return [f"could you please {prompt}?" for prompt in prompts]


def weighing(
    cache: PlanCache, templates: Sequence[Shape], embedding: float | None, rng: random.Random
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
        share = "" if embedding is None else f"{seconds / embedding:.1%} of one embedding"
        yield Line(
            f"{what}, {size}",
            f"< {bound * 1e3:g} ms",
            f"{seconds * 1e3:.2f} ms",
            seconds < bound,
            share + more,
        )


def one_embedding(rng: random.Random) -> float | None:
    """Return the median seconds of one real embedding of a prompt; None if there is no model."""
    embedder = MiniLMEmbedder(shipped_weights(), memo=0)
    prompts = asked(shapes(200, rng), 200, rng)
    try:
        embedder.embed(prompts[:5])
    except EmbeddingError:
        return None
    return statistics.median(each(lambda text: embedder.embed([text]), prompts))


def threads(cache: PlanCache, templates: Sequence[Shape], rng: random.Random) -> Iterator[Line]:
    """Measure hits a second of eight threads against one, in pairs of rounds."""
    prompts = asked(templates, 4000, rng)
    ratios, speeds = [], []
    for _ in range(ROUNDS):
        one, eight = (hits_a_second(cache, prompts, count) for count in (1, 8))
        ratios.append(eight / one)
        speeds.append((one, eight))
    best = max(range(ROUNDS), key=ratios.__getitem__)
    one, eight = speeds[best]
    measured = f"{statistics.median(ratios):.2f} x"
    yield Line(
        "template-tier hits a second, 8 threads / 1 thread",
        ">= 1 x",
        measured,
        statistics.median(ratios) >= 1,
        f"median of {ROUNDS} pairs; best {eight:,.0f} / {one:,.0f} a second",
    )


def hits_a_second(cache: PlanCache, prompts: Sequence[str], count: int) -> float:
    """Return hits a second of `count` threads that share out `prompts`; each has connected."""
    ready = threading.Barrier(count + 1)

    def work(share: Sequence[str]) -> None:
        cache.lookup(share[0])
        ready.wait()
        for prompt in share:
            cache.lookup(prompt)

    running = [threading.Thread(target=work, args=(prompts[i::count],)) for i in range(count)]
    for thread in running:
        thread.start()
    ready.wait()
    start = time.perf_counter()
    for thread in running:
        thread.join()
    return len(prompts) / (time.perf_counter() - start)


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
        yield Line(name, "> 20 x", "-", None, f"not installed: {', '.join(missing)}")
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


def without_embedding(
    call: Callable[[str], object], rounds: Sequence[Sequence[str]], embedder: Timed
) -> float:
    """Return the median seconds of a call in the best round, what the embedder took taken off."""
    best = float("inf")
    for prompts in rounds:
        took = []
        for prompt in prompts:
            before, start = embedder.seconds, time.perf_counter()
            call(prompt)
            took.append(time.perf_counter() - start - (embedder.seconds - before))
        best = min(best, statistics.median(took))
    return best


# The run -------------------------------------------------------------------------------------


@contextmanager
def scratch(directory: Path) -> Iterator[Path]:
    """Give a folder that is removed afterwards."""
    with tempfile.TemporaryDirectory(dir=directory, prefix="semcache-budgets-") as name:
        yield Path(name)


def expect(cache: PlanCache, prompts: Sequence[str], tier: str) -> None:
    """End the run unless each of `prompts` hits in `tier`: else something else would be timed."""
    for prompt in prompts:
        found = cache.lookup(prompt)
        if not isinstance(found, Hit) or found.tier != tier:
            raise SystemExit(f"expected a hit of the {tier} tier:\n{found.explain()}")


def measure(
    count: int, embedding: float | None, directory: Path, rng: random.Random
) -> Iterator[Line]:
    """Yield the lines that depend on how many entries there are."""
    templates = shapes(count, rng)
    embedder = Timed()
    with scratch(directory) as work:
        with opened(work / "cache", embedder) as cache:
            fill(cache, templates)
            taught = [shape.prompt(1999, 7) for shape in rng.choices(templates, k=TAUGHT)]
            teach(cache, taught, "could you please ", "?")
            yield from template_hits(cache, templates, work, rng)
            yield from semantic_hits(cache, templates, embedder, embedding, rng)
            if count <= 10_000:
                yield from threads(cache, templates, rng)
                yield from gptcache(work / "gptcache", cache, templates, embedder)
            yield from weighing(cache, templates, embedding, rng)
        yield from reopening(work / "cache", templates)
        if count <= 10_000:
            yield from memory(work / "cache", templates)


def table(lines: Sequence[Line]) -> str:
    """Return the lines as a table for a terminal."""
    verdicts = {True: "met", False: "NOT MET", None: "not measured"}
    rows = [("budget", "bound", "measured", "")]
    rows += [(line.budget, line.bound, line.measured, verdicts[line.met]) for line in lines]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    out = []
    for row, details in zip(rows, ["", *(line.details for line in lines)], strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        out.append("  ".join([*cells, details]).rstrip())
    return "\n".join(out)


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    packages = ("numpy", "faiss-cpu", "diskcache", "pydantic")
    return {
        "semcache": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: version(name) for name in packages},
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, and return 0 if no budget was exceeded."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="1,000 entries, to see that it runs")
    size.add_argument("--large", action="store_true", help="also 100,000 entries; takes minutes")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures as JSON")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where the caches are made")
    given = parser.parse_args(arguments)
    tmpfs = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    directory = given.directory or (tmpfs if tmpfs.is_dir() else Path(tempfile.gettempdir()))
    rng = random.Random(given.seed)  # noqa: S311 - a workload, not a secret
    lines = [*importing(), *commands(directory)]
    embedding = one_embedding(rng)
    for count in [1_000] if given.quick else [10_000, 100_000] if given.large else [10_000]:
        lines += measure(count, embedding, directory, rng)
    print(f"semcache {__version__}, seed {given.seed}, caches in {directory}\n")
    print(table(lines))
    if given.json:
        report = {
            "machine": machine(),
            "seed": given.seed,
            "lines": [asdict(line) for line in lines],
        }
        given.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    return int(any(line.met is False for line in lines))


if __name__ == "__main__":
    sys.exit(main())
