"""Measure semcache beside other caches: same prompts, same embedder, same folder, one run.

    python benchmarks/peers.py [--sizes 1000 10000] [--stream FILE ...] [--json OUT] [--plot OUT]

Beside semcache: GPTCache (SQLite and FAISS, its defaults), LangChain's `InMemoryCache` and
`SQLiteCache` (the prompt word for word), vCache's static policy, and a bare diskcache. vCache is on
no package index: its static policy is restated here from its repository (cosine of the nearest
neighbor over a threshold; hnswlib with M 52, ef 400 and 350 at construction). The others come by
`pip install 'semcache-plans[peers]'`; whoever isn't installed is left out of the table.

Each cache is filled with `workload.py`'s templates, a plan each, and asked for

- `again`: prompts word for word as stored;
- `values`: prompts of the same templates with values of their own;
- `paraphrases`: "could you please …?", never asked before, with values of their own.

An answer is right if it is the plan of the prompt that was asked, its values included. Times are
medians over rounds in which the caches take turns, with all-MiniLM-L6-v2 asked each time on one
thread; beside them the same without what the embedder took. Vectors of stored prompts are made once
for all. Throughput, memory and cold start are taken in processes of their own, where vectors are
known beforehand: they say how the cache itself scales. With `--stream`, rows in the format of
`replay.py` are replayed against each cache, cold: a miss stores the row's plan.
"""

import argparse
import importlib.util
import json
import logging
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import psutil
from curves import write_json
from timing import micro
from workload import Shape, fill, polite, scratch, shapes, teach

from semcache import PlanCache
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.testing import HashEmbedder

DIMENSION = 384
ROUNDS = 3
ASKED = 40
"""Prompts of each kind a round."""
TAUGHT = 64
"""Paraphrases whose plans semcache is told: a tenant without labels serves little by meaning."""
MOST = 1_000_000
"""Entries that GPTCache may have: by default it keeps the latest thousand."""
LIKE = 0.95
"""Cosine that vCache's static policy asks for here: semcache's default."""


class Embedder:
    """One embedder for all: knows some vectors beforehand, and adds up the seconds of the rest."""

    def __init__(self, *, real: bool) -> None:
        self._inner = (
            MiniLMEmbedder(shipped_weights(), memo=0) if real else HashEmbedder(dim=DIMENSION)
        )
        self.fingerprint = self._inner.fingerprint
        self.known: dict[str, np.ndarray] = {}
        self.seconds = 0.0

    def learn(self, texts: Sequence[str]) -> None:
        """Know the vectors of these from now on."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self.known]
        if fresh:
            self.known.update(zip(fresh, self._inner.embed(fresh), strict=True))

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one row a text."""
        if all(text in self.known for text in texts):
            return np.stack([self.known[text] for text in texts])
        start = time.perf_counter()
        rows = self._inner.embed(texts)
        self.seconds += time.perf_counter() - start
        return rows


# The caches ----------------------------------------------------------------------------------


class Peer(Protocol):
    """A cache, opened in a folder."""

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan of a prompt."""

    def get(self, prompt: str) -> object:
        """Return the plan that is served for a prompt; None: none is."""

    def close(self) -> None:
        """Write and release what is held."""


class Ours:
    """semcache."""

    kept, needs = True, "semcache"

    def __init__(self, directory: Path, embedder: Embedder) -> None:
        self.cache = PlanCache.open(directory, embedder=embedder, max_entries=None, ttl_s=None)

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan, whose values are found in it."""
        self.cache.store(prompt, dict(plan))

    def get(self, prompt: str) -> object:
        """Return the plan of a hit."""
        found = self.cache.lookup(prompt)
        return found.plan.to_dict() if found else None

    def close(self) -> None:
        """Close it."""
        self.cache.close()


class GptCache:
    """GPTCache with SQLite and FAISS, threshold and evaluation by default."""

    kept, needs = True, "gptcache"

    def __init__(self, directory: Path, embedder: Embedder) -> None:
        from gptcache import Cache, Config  # noqa: PLC0415 - an extra
        from gptcache.adapter.api import get, put  # noqa: PLC0415 - an extra
        from gptcache.manager import CacheBase, VectorBase, get_data_manager  # noqa: PLC0415
        from gptcache.processor.pre import get_prompt  # noqa: PLC0415 - an extra
        from gptcache.similarity_evaluation.distance import (  # noqa: PLC0415 - an extra
            SearchDistanceEvaluation,
        )

        # At exit it writes once more, into a folder that is gone by then, and tells so.
        logging.getLogger(f"gptcache:{version('gptcache')}").setLevel(logging.CRITICAL)
        directory.mkdir(parents=True, exist_ok=True)
        self._get, self._put, self._cache = get, put, Cache()
        self._cache.init(
            pre_embedding_func=get_prompt,
            embedding_func=lambda text, **_: embedder.embed([text])[0],
            data_manager=get_data_manager(
                CacheBase("sqlite", sql_url=f"sqlite:///{directory}/sqlite.db"),
                VectorBase("faiss", dimension=DIMENSION, index_path=str(directory / "faiss")),
                max_size=MOST,
            ),
            similarity_evaluation=SearchDistanceEvaluation(),
            config=Config(similarity_threshold=0.8),
        )

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan as text."""
        self._put(prompt, json.dumps(plan), cache_obj=self._cache)

    def get(self, prompt: str) -> object:
        """Return the plan that it holds for near enough."""
        text = self._get(prompt, cache_obj=self._cache)
        return None if text is None else json.loads(text)

    def close(self) -> None:
        """Write the index."""
        self._cache.flush()


class StaticThreshold:
    """vCache's static policy, restated: the nearest neighbor, if its cosine is over a threshold."""

    kept, needs = False, "hnswlib"

    def __init__(self, directory: Path, embedder: Embedder) -> None:  # noqa: ARG002 - in memory
        import hnswlib  # noqa: PLC0415 - an extra

        self._embedder, self._plans = embedder, list[str]()
        self._lock = threading.Lock()  # as its cache holds one around each call
        self._index = hnswlib.Index(space="cosine", dim=DIMENSION)
        self._index.init_index(max_elements=200_000, ef_construction=350, M=52)
        self._index.set_ef(400)

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan as text."""
        with self._lock:
            self._index.add_items(self._embedder.embed([prompt]), [len(self._plans)])
            self._plans.append(json.dumps(plan))

    def get(self, prompt: str) -> object:
        """Return the plan of the nearest prompt."""
        vector = self._embedder.embed([prompt])
        with self._lock:
            if not self._plans:
                return None
            (ids,), (distances,) = self._index.knn_query(vector, k=1)
        return json.loads(self._plans[int(ids[0])]) if 1 - distances[0] > LIKE else None

    def close(self) -> None:
        """Do nothing: it is in memory."""


class LangChain:
    """A cache of LangChain, by the prompt word for word."""

    needs = "langchain_community"

    def __init__(self, directory: Path, *, kept: bool) -> None:
        from langchain_community.cache import InMemoryCache, SQLiteCache  # noqa: PLC0415 - an extra
        from langchain_core.outputs import Generation  # noqa: PLC0415 - an extra

        directory.mkdir(parents=True, exist_ok=True)
        self._generation = Generation
        self._cache = SQLiteCache(str(directory / "langchain.db")) if kept else InMemoryCache()

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan as the answer of a model."""
        self._cache.update(prompt, "model", [self._generation(text=json.dumps(plan))])

    def get(self, prompt: str) -> object:
        """Return the plan of the very prompt."""
        found = self._cache.lookup(prompt, "model")
        return json.loads(found[0].text) if found else None

    def close(self) -> None:
        """Do nothing: each call writes."""


class LangChainMemory(LangChain):
    """LangChain's `InMemoryCache`."""

    kept = False

    def __init__(self, directory: Path, embedder: Embedder) -> None:  # noqa: ARG002 - by words
        super().__init__(directory, kept=False)


class LangChainSqlite(LangChain):
    """LangChain's `SQLiteCache`."""

    kept = True

    def __init__(self, directory: Path, embedder: Embedder) -> None:  # noqa: ARG002 - by words
        super().__init__(directory, kept=True)


class DiskCache:
    """A bare diskcache: one record by its key, as text."""

    kept, needs = True, "diskcache"

    def __init__(self, directory: Path, embedder: Embedder) -> None:  # noqa: ARG002 - by words
        import diskcache  # noqa: PLC0415 - beside the other peers

        self._cache = diskcache.Cache(str(directory))

    def put(self, prompt: str, plan: Mapping[str, Any]) -> None:
        """Keep the plan as text."""
        self._cache.set(prompt, json.dumps(plan))

    def get(self, prompt: str) -> object:
        """Return the plan of the very prompt."""
        text = self._cache.get(prompt)
        return None if text is None else json.loads(text)

    def close(self) -> None:
        """Close it."""
        self._cache.close()


PEERS: dict[str, Any] = {
    "semcache": Ours,
    "GPTCache": GptCache,
    "vCache static (restated)": StaticThreshold,
    "LangChain InMemoryCache": LangChainMemory,
    "LangChain SQLiteCache": LangChainSqlite,
    "diskcache": DiskCache,
}


def installed() -> list[str]:
    """Return the caches that can be imported here."""
    return [name for name, kind in PEERS.items() if importlib.util.find_spec(kind.needs)]


# Prompts -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A prompt and the plan that is right for it."""

    prompt: str
    plan: Mapping[str, Any]


def questions(
    kind: str, templates: Sequence[Shape], count: int, rng: random.Random
) -> list[Question]:
    """Return prompts of one kind, all of different templates."""
    asked = []
    for shape in rng.sample(templates, count):
        year, limit = (2024, 5) if kind == "again" else (rng.randrange(1990, 2020), 7)
        prompt = shape.prompt(year, limit)
        if kind == "paraphrases":
            (prompt,) = polite([prompt])
        asked.append(Question(prompt, shape.plan(year, limit)))
    return asked


KINDS = ("again", "values", "paraphrases")


# Measures ------------------------------------------------------------------------------------


@dataclass
class Asked:
    """What came of one kind of prompts."""

    whole: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def figures(self) -> dict[str, Any]:
        """Return medians and counts."""
        return {
            "seconds": statistics.median(self.whole),
            "seconds_without_embedding": statistics.median(self.bare),
            "right": self.right,
            "wrong": self.wrong,
            "missed": self.missed,
        }


def ask(peer: Peer, one: Question, embedder: Embedder, into: Asked) -> None:
    """Ask one prompt and take down what came of it."""
    before, start = embedder.seconds, time.perf_counter()
    plan = peer.get(one.prompt)
    took = time.perf_counter() - start
    into.whole.append(took)
    into.bare.append(took - (embedder.seconds - before))
    into.missed += plan is None
    into.right += plan == one.plan
    into.wrong += plan is not None and plan != one.plan


def latencies(
    peers: Mapping[str, Peer], templates: Sequence[Shape], embedder: Embedder, seed: int
) -> dict[str, dict[str, Any]]:
    """Return for each cache and kind of prompts its times and its right and wrong answers."""
    rng = random.Random(seed)  # noqa: S311 - a workload, not a secret
    taken = {name: {kind: Asked() for kind in KINDS} for name in peers}
    for _ in range(ROUNDS):
        for kind in KINDS:
            asked = questions(kind, templates, ASKED, rng)
            for name, peer in peers.items():
                peer.get(asked[0].prompt)  # what a round finds cold isn't the cache
                for one in asked[1:]:
                    ask(peer, one, embedder, taken[name][kind])
    return {name: {k: one.figures() for k, one in kinds.items()} for name, kinds in taken.items()}


def throughput(
    peer: Peer, templates: Sequence[Shape], threads: int, *, seconds: float = 2.0
) -> float:
    """Return answers a second of stored prompts, by so many threads."""
    prompts = [shape.prompt(2024, 5) for shape in templates]
    done, ready = [0] * threads, threading.Barrier(threads + 1)
    end = [0.0]

    def work(mine: int) -> None:
        share = prompts[mine::threads]
        peer.get(share[0])
        ready.wait()
        while time.perf_counter() < end[0] or not end[0]:
            peer.get(share[done[mine] % len(share)])
            done[mine] += 1

    running = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
    for thread in running:
        thread.start()
    start = time.perf_counter()
    end[0] = start + seconds
    ready.wait()
    for thread in running:
        thread.join()
    return sum(done) / (time.perf_counter() - start)


def worker(given: argparse.Namespace) -> dict[str, float]:
    """Open a filled cache in this process, fresh; return its cold start, memory and throughput."""
    templates = shapes(given.sizes[0], random.Random(given.seed))  # noqa: S311 - a workload
    embedder = Embedder(real=False)
    asked = templates[:200]
    embedder.learn([shape.prompt(2024, 5) for shape in asked])
    process = psutil.Process()
    memory, start, used = process.memory_info().rss, time.perf_counter(), time.process_time()
    peer = PEERS[given.worker](given.directory, embedder)
    if not PEERS[given.worker].kept:
        for shape in templates:
            peer.put(shape.prompt(2024, 5), shape.plan(2024, 5))
    found = peer.get(asked[0].prompt(2024, 5))
    figures = {
        "cold_start_s": time.perf_counter() - start,
        "cold_start_processor_s": time.process_time() - used,
        "hit": found is not None,
        "memory_bytes": (process.memory_info().rss - memory) / len(templates),
    }
    for threads in (1, 8):
        figures[f"per_second_{threads}_threads"] = throughput(peer, asked, threads)
    return figures


def workers(name: str, count: int, directory: Path, seed: int, processes: int) -> list[Any]:
    """Return what so many processes at once say of the cache in `directory`."""
    command = [sys.executable, "-W", "ignore", __file__, "--worker", name]
    command += ["--directory", str(directory)]
    command += ["--sizes", str(count), "--seed", str(seed)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(processes)]  # noqa: S603 - our own words
    said = [one.communicate()[0] for one in running]
    if any(one.returncode for one in running):
        raise SystemExit(f"a process of {name} failed")
    return [json.loads(text) for text in said]


def kept_bytes(directory: Path) -> int:
    """Return the bytes of all files below `directory`."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


def measured(count: int, directory: Path, seed: int) -> dict[str, Any]:
    """Return everything about caches of `count` entries."""
    templates = shapes(count, random.Random(seed))  # noqa: S311 - a workload, not a secret
    out: dict[str, Any] = {name: {} for name in installed()}
    for real in (True, False):
        embedder, work = Embedder(real=real), directory / ("real" if real else "known")
        embedder.learn([shape.prompt(2024, 5) for shape in templates])
        peers: dict[str, Peer] = {}
        for name, figures in out.items():
            if not (real or PEERS[name].kept):
                continue
            print(f"{count:,}: storing in {name}", file=sys.stderr, flush=True)
            start = time.perf_counter()
            peers[name] = PEERS[name](work / name, embedder)
            stored(peers[name], templates)
            figures["store_s"] = (time.perf_counter() - start) / count
        if real:
            forget(embedder)
            out = {
                n: out[n] | f for n, f in latencies(peers, templates, embedder, seed + 1).items()
            }
        for name, peer in peers.items():
            peer.close()
            out[name]["disk_bytes"] = kept_bytes(work / name) / count
    for name, figures in out.items():
        kept = directory / "known" / name
        (figures["process"],) = workers(name, count, kept, seed, 1)
        if PEERS[name].kept:
            both = workers(name, count, kept, seed, 2)
            figures["per_second_2_processes"] = sum(one["per_second_1_threads"] for one in both)
    return out


def forget(embedder: Embedder) -> None:
    """Embed from now on."""
    embedder.known.clear()
    embedder.seconds = 0.0


def stored(peer: Peer, templates: Sequence[Shape]) -> None:
    """Fill a cache; semcache as its users do, with the values given, and labels of paraphrases."""
    if isinstance(peer, Ours):
        fill(peer.cache, templates)
        teach(peer.cache, [s.prompt(1999, 7) for s in templates[:TAUGHT]], "could you please ", "?")
        return
    for shape in templates:
        peer.put(shape.prompt(2024, 5), shape.plan(2024, 5))


# Streams -------------------------------------------------------------------------------------


def replayed(file: Path, rows: int, directory: Path) -> dict[str, dict[str, int]]:
    """Return how many rows of a stream each cache served right and wrong, beginning cold.

    The caches have no tenants but ours: each scope of the stream has a cache of its own.
    """
    with file.open(encoding="utf-8") as lines:
        taken = [json.loads(line) for line, _ in zip(lines, range(rows), strict=False)]
    embedder = Embedder(real=True)
    embedder.learn([row["text"] for row in taken])
    out = {}
    for name in installed():
        opened: dict[str, Peer] = {}
        tally = {"rows": len(taken), "right": 0, "wrong": 0}
        for row in taken:
            scope = row["scope"]
            if scope not in opened:
                opened[scope] = PEERS[name](directory / name / str(len(opened)), embedder)
            plan = opened[scope].get(row["text"])
            if plan is not None:
                tally["right" if plan == row["plan"] else "wrong"] += 1
            elif row["plan"] is not None:
                keep(opened[scope], row)
        for peer in opened.values():
            peer.close()
        out[name] = tally
    return out


def keep(peer: Peer, row: Mapping[str, Any]) -> None:
    """Store the plan of a row; for semcache with its values, as a planner tells them."""
    if not isinstance(peer, Ours):
        peer.put(row["text"], row["plan"])
        return
    from semcache import Parameter  # noqa: PLC0415 - of this branch

    params = [Parameter(p["name"], p["value"], mention=p["text"]) for p in row["params"]]
    peer.cache.store(row["text"], row["plan"], params=params)


# The run -------------------------------------------------------------------------------------


def table(count: int, figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a Markdown table."""
    yield (
        f"| {count:,} entries | "
        + " | ".join(f"{kind}: whole, bare, right/wrong/missed" for kind in KINDS)
        + " | a second: 1 thread, 8, 2 processes | memory, disk an entry | cold start, processor |"
    )
    yield "|---" * (len(KINDS) + 4) + "|"
    for name, one in figures.items():
        cells = [
            f"{micro(k['seconds'])}, {micro(k['seconds_without_embedding'])}, "
            f"{k['right']}/{k['wrong']}/{k['missed']}"
            for k in (one[kind] for kind in KINDS)
        ]
        process, two = one["process"], one.get("per_second_2_processes")
        speeds = [process["per_second_1_threads"], process["per_second_8_threads"], two]
        cells.append(", ".join("-" if speed is None else f"{speed:,.0f}" for speed in speeds))
        disk = f"{one['disk_bytes'] / 1024:.1f}" if "disk_bytes" in one else "-"
        cells.append(f"{process['memory_bytes'] / 1024:.1f} KB, {disk} KB")
        cells.append(f"{process['cold_start_processor_s']:.2f} s")
        yield f"| {name} | " + " | ".join(cells) + " |"


def plotted(path: Path, count: int, figures: Mapping[str, Any]) -> None:
    """Draw how long an answer takes, and how many were right, a panel a kind of prompts."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second

    mpl.use("agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415 - takes a second

    # The same picture for the same figures, with text as text.
    mpl.rcParams.update({"svg.hashsalt": "semcache", "svg.fonttype": "none"})
    figure, axes = plt.subplots(1, len(KINDS), figsize=(12, 3), sharey=True, squeeze=False)
    names = [*reversed(PEERS)]
    for axis, kind in zip(axes[0], KINDS, strict=True):
        for name in [known for known in names if known in figures]:
            one = figures[name][kind]
            whole, bare = one["seconds"] * 1e3, one["seconds_without_embedding"] * 1e3
            axis.barh(name, whole, color="#c6dbef", label="embedding included")
            axis.barh(name, bare, color="#3182bd", label="without")
            asked = one["right"] + one["wrong"] + one["missed"]
            said = f" {one['right'] / asked:.0%} right, {one['wrong'] / asked:.0%} wrong"
            axis.text(max(whole, bare), name, said, va="center", fontsize="x-small")
        axis.set(title=f"{kind}, {count:,} entries", xlabel="ms a prompt", xscale="log")
        axis.set_xlim(right=axis.get_xlim()[1] * 60)
        axis.spines[["top", "right"]].set_visible(False)
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles[:2], labels[:2], loc="lower left", fontsize="x-small", frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=80, metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print tables; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--stream", type=Path, nargs="*", default=[], metavar="FILE")
    parser.add_argument("--rows", type=int, default=500, help="rows of each stream")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--plot", type=Path, metavar="OUT", help="as PNG or SVG")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--directory", type=Path, help="where the caches are made")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.worker:
        print(json.dumps(worker(given)))
        return 0
    tmpfs = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    directory = given.directory or (tmpfs if tmpfs.is_dir() else Path(tempfile.gettempdir()))
    out: dict[str, Any] = {"sizes": {}, "streams": {}}
    for count in given.sizes:
        with scratch(directory) as work:
            out["sizes"][str(count)] = measured(count, work, given.seed)
        print("\n".join(table(count, out["sizes"][str(count)])), flush=True)
    for file in given.stream:
        with scratch(directory) as work:
            out["streams"][file.stem] = replayed(file, given.rows, work)
        print(file.stem, json.dumps(out["streams"][file.stem]), flush=True)
    out["load"] = psutil.getloadavg()
    if given.json:
        write_json(given.json, out)
    if given.plot:
        largest = max(given.sizes)
        plotted(given.plot, largest, out["sizes"][str(largest)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
