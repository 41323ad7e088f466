"""Measure ways to find nearest vectors: ours, and FAISS's indexes with exact re-ranking.

    python benchmarks/indexes.py STREAM.jsonl ... [--rows N] [--nearest N] [--ways NAME ...]
                                 [--vectors FILE.npy] [--json OUT]

STREAMs are JSON lines with `text` (and `masked`, if they have it); each different text is embedded
with all-MiniLM-L6-v2, once: `--vectors` keeps the vectors. Some of them, at random, are asked for
and are not among the rows. Each way is asked for the nearest, on one thread; ways take turns, query
by query, and times are medians of processor time, as is that of building. Recall is the share of
the true nearest (and of the first) that comes back; what is compressed is compared again with the
exact vectors of four times as many. `ours` is `FaissIndex` as it is above `LARGE` rows, whatever
their number here.

Of more rows than there are texts the others are made: a text moved by the difference of two texts
that lie near each other, so that rows lie as close as vectors of so many texts would.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import faiss
import numpy as np
from curves import write_json
from timing import micro
from tqdm import tqdm

from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.stores.vectors.faiss_index import FaissIndex

MOVED = 0.7
"""How far a made row is moved: to a cosine of some .9."""
WIDER = 4
"""Times as many candidates that are compared with exact vectors, where an index is compressed."""

Search = Callable[[np.ndarray], np.ndarray]
"""From a query to the places of the nearest rows."""


@dataclass(frozen=True)
class Way:
    """One way to search, built."""

    name: str
    search: Search
    build_s: float
    bytes_a_row: float
    """Beside the exact vectors, which all of them need: a hit is compared exactly."""


def texts_of(files: Sequence[Path]) -> list[str]:
    """Return each different text of the files."""
    found: dict[str, None] = {}
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                found.update(dict.fromkeys(row[name] for name in ("text", "masked") if name in row))
    return list(found)


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """Return their vectors."""
    embedder = MiniLMEmbedder(shipped_weights(), memo=0)
    starts = tqdm(range(0, len(texts), 1024), desc="embedding", file=sys.stderr)
    return np.concatenate([embedder.embed(texts[i : i + 1024]) for i in starts])


def grown(texts: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return `count` rows: the texts, and texts moved by the difference of two that are near."""
    rng = np.random.default_rng(seed)
    lists = faiss.Kmeans(texts.shape[1], 512, niter=4, spherical=True, seed=seed)
    lists.train(texts)
    home = lists.index.search(texts, 1)[1][:, 0]
    order = np.argsort(home, kind="stable")
    ends = np.searchsorted(home[order], np.arange(513))
    rows = np.empty((count, texts.shape[1]), np.float32)
    rows[: len(texts)] = texts
    for start in range(len(texts), count, 20_000):
        part = rows[start : start + 20_000]
        some, one = rng.integers(len(texts), size=(2, len(part)))
        first, sizes = ends[home[one]], np.diff(ends)[home[one]]
        other = order[first + (rng.random(len(part)) * sizes).astype(np.int64)]
        part[:] = texts[some] + MOVED * (texts[one] - texts[other])
        part /= np.linalg.norm(part, axis=1, keepdims=True)
    return rows[rng.permutation(count)]


def ours(rows: np.ndarray, nearest: int) -> Iterator[Way]:
    """Yield our own index."""
    index = FaissIndex(large=1)
    for place, row in enumerate(rows):
        index.add(str(place), row)
    start = time.process_time()
    index.learn()
    took = time.process_time() - start

    def search(query: np.ndarray) -> np.ndarray:
        return np.array([int(one.id) for one in index.search(query, nearest)])

    yield Way("ours", search, took, rows.shape[1] / 2 + 16)


def flat(rows: np.ndarray, nearest: int) -> Iterator[Way]:
    """Yield a comparison with all rows."""

    def search(query: np.ndarray) -> np.ndarray:
        return np.asarray(faiss.knn(query[None], rows, nearest, faiss.METRIC_INNER_PRODUCT)[1][0])

    yield Way("flat", search, 0.0, 0.0)


def ivf(rows: np.ndarray, nearest: int) -> Iterator[Way]:
    """Yield inverted lists, at several numbers of lists that are looked through."""
    lists = int(4 * len(rows) ** 0.5)
    for name, code in ((f"IVF{lists},Flat", "Flat"), (f"IVF{lists},SQ8", "SQ8")):
        start = time.process_time()
        index = faiss.index_factory(rows.shape[1], f"IVF{lists},{code}", faiss.METRIC_INNER_PRODUCT)
        index.train(rows[:: max(1, len(rows) // (40 * lists))])
        index.add(rows)
        took = time.process_time() - start
        size = rows.shape[1] * (4 if code == "Flat" else 1) + 8
        for probes in (8, 32, 128):
            search = probing(index, rows, nearest, probes, code)
            yield Way(f"{name} nprobe {probes}", search, took, size)


def probing(index: faiss.Index, rows: np.ndarray, nearest: int, probes: int, code: str) -> Search:
    """Return the search through so many lists."""

    def search(query: np.ndarray) -> np.ndarray:
        index.nprobe = probes
        if code == "Flat":
            return np.asarray(index.search(query[None], nearest)[1][0])
        return exact(rows, query, index.search(query[None], WIDER * nearest)[1][0], nearest)

    return search


def hnsw(rows: np.ndarray, nearest: int) -> Iterator[Way]:
    """Yield graphs, at several widths of the search."""
    for name, wider in (("HNSW32", 1), ("HNSW32_SQ8", WIDER)):
        start = time.process_time()
        index = faiss.index_factory(
            rows.shape[1], name.replace("_", ","), faiss.METRIC_INNER_PRODUCT
        )
        if not index.is_trained:
            index.train(rows)
        index.add(rows)
        took = time.process_time() - start
        # Links of the lowest level, and the vectors that an index of graphs has of its own.
        size = 2 * 32 * 4 + rows.shape[1] * (4 if wider == 1 else 1)
        for width in (64, 256, 512):
            search = walking(index, rows, wider * nearest, nearest, width)
            yield Way(f"{name} efSearch {width}", search, took, size)


def walking(index: faiss.Index, rows: np.ndarray, wanted: int, nearest: int, width: int) -> Search:
    """Return the walk of that width through the graph."""

    def search(query: np.ndarray) -> np.ndarray:
        index.hnsw.efSearch = width
        return exact(rows, query, index.search(query[None], wanted)[1][0], nearest)

    return search


def exact(rows: np.ndarray, query: np.ndarray, places: np.ndarray, nearest: int) -> np.ndarray:
    """Return the best of the rows at `places`, compared exactly."""
    places = places[places >= 0]
    return places[np.argsort(-(rows[places] @ query))[:nearest]]


WAYS = {"ours": ours, "flat": flat, "ivf": ivf, "hnsw": hnsw}


def measured(
    ways: Sequence[Way], rows: np.ndarray, queries: np.ndarray, nearest: int
) -> list[dict[str, object]]:
    """Return times and recall of all ways, which take turns."""
    took: dict[str, list[float]] = {way.name: [] for way in ways}
    first: dict[str, list[bool]] = {way.name: [] for way in ways}
    share: dict[str, list[float]] = {way.name: [] for way in ways}
    for query in tqdm(queries, desc="asking", file=sys.stderr):
        scores = rows @ query
        last = np.partition(scores, -nearest)[-nearest]
        for way in ways:
            start = time.thread_time()
            places = way.search(query)
            took[way.name].append(time.thread_time() - start)
            # By likeness, not by place: equal vectors are equally near.
            share[way.name].append(float((scores[places] >= last - 1e-6).sum() / nearest))
            first[way.name].append(bool(scores[places].max() >= scores.max() - 1e-6))
    return [
        {
            **{name: value for name, value in asdict(way).items() if name != "search"},
            "seconds": median(took[way.name]),
            "recall": float(np.mean(share[way.name])),
            "recall_1": float(np.mean(first[way.name])),
        }
        for way in ways
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="*", type=Path, metavar="STREAM")
    parser.add_argument("--rows", type=int, default=100_000, help="at most so many")
    parser.add_argument("--grown", type=int, default=0, metavar="N", help="make the rows so many")
    parser.add_argument("--queries", type=int, default=400)
    parser.add_argument("--nearest", type=int, default=64, help="as many as a lookup asks for")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=[*WAYS])
    parser.add_argument("--vectors", type=Path, metavar="FILE", help="kept there, or taken")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--json", type=Path, metavar="OUT")
    given = parser.parse_args(arguments)
    faiss.omp_set_num_threads(1)
    if given.vectors is not None and given.vectors.is_file():
        vectors = np.load(given.vectors)
    else:
        vectors = vectors_of(texts_of(given.streams))
        if given.vectors is not None:
            np.save(given.vectors, vectors)
    order = np.random.default_rng(given.seed).permutation(len(vectors))
    queries = vectors[order[: given.queries]]
    rows = np.ascontiguousarray(vectors[order[given.queries : given.queries + given.rows]])
    if given.grown > len(rows):
        rows = grown(rows, given.grown, given.seed)
    ways = [way for name in given.ways for way in WAYS[name](rows, given.nearest)]
    figures = measured(ways, rows, queries, given.nearest)
    least = figures[0]["seconds"]
    load = os.getloadavg()[0]
    print(f"{len(rows):,} rows, {len(queries)} queries, load {load:.0f}")
    print(
        f"| way | time | of the first | recall of {given.nearest} | of the nearest | build "
        "| bytes a row beside |"
    )
    print("|---|---|---|---|---|---|---|")
    for one in figures:
        print(
            f"| {one['name']} | {micro(one['seconds'])} | {one['seconds'] / least:.2f} | "
            f"{one['recall']:.4f} | {one['recall_1']:.4f} | {one['build_s']:.1f} s | "
            f"{one['bytes_a_row']:.0f} |"
        )
    if given.json:
        write_json(given.json, {"rows": len(rows), "nearest": given.nearest, "ways": figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
