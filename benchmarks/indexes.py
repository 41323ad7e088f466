"""Measure ways to find nearest vectors: ours, and FAISS's indexes with exact re-ranking.

    python benchmarks/indexes.py STREAM.jsonl ... [--rows N] [--vectors FILE.npy] [--json OUT]

STREAMs are JSON lines with `text` (and `masked`, if they have it); each different text is embedded
with all-MiniLM-L6-v2, once: `--vectors` keeps the vectors. 400 of them, at random, are asked for
and are not among the rows. Each way is asked for the 16 nearest, as a lookup does, on one thread;
ways take turns, query by query, and times are medians. Recall is the share of the true 16 (and of
the true nearest) that comes back; what is compressed is compared again with the exact vectors of
four times as many. `ours` is `FaissIndex` as it is above `LARGE` rows, whatever their number here:
all rows by codes of 4 bits a number, and the best of them exactly.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import faiss
import numpy as np
from budgets import micro
from curves import write_json
from tqdm import tqdm

from semcache.models.minilm import MiniLMEmbedder
from semcache.models.weights import shipped_weights
from semcache.stores.vectors.faiss_index import FaissIndex

NEAREST = 16
QUERIES = 400
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


def ours(rows: np.ndarray) -> Way:
    """Return our own index."""
    index = FaissIndex(large=1)
    for place, row in enumerate(rows):
        index.add(str(place), row)
    start = time.perf_counter()
    index.search(rows[0], NEAREST)
    took = time.perf_counter() - start

    def search(query: np.ndarray) -> np.ndarray:
        return np.array([int(one.id) for one in index.search(query, NEAREST)])

    return Way("ours", search, took, rows.shape[1] / 2 + 8)


def flat(rows: np.ndarray) -> Way:
    """Return a comparison with all rows."""

    def search(query: np.ndarray) -> np.ndarray:
        return np.asarray(faiss.knn(query[None], rows, NEAREST, faiss.METRIC_INNER_PRODUCT)[1][0])

    return Way("flat", search, 0.0, 0.0)


def ivf(rows: np.ndarray) -> Iterator[Way]:
    """Yield inverted lists, at several numbers of lists that are looked through."""
    lists = int(4 * len(rows) ** 0.5)
    for name, code in ((f"IVF{lists},Flat", "Flat"), (f"IVF{lists},SQ8", "SQ8")):
        start = time.perf_counter()
        index = faiss.index_factory(rows.shape[1], f"IVF{lists},{code}", faiss.METRIC_INNER_PRODUCT)
        index.train(rows[:: max(1, len(rows) // (40 * lists))])
        index.add(rows)
        took = time.perf_counter() - start
        size = rows.shape[1] * (4 if code == "Flat" else 1) + 8
        for probes in (8, 32, 128):
            yield Way(f"{name} nprobe {probes}", probing(index, rows, probes, code), took, size)


def probing(index: faiss.Index, rows: np.ndarray, probes: int, code: str) -> Search:
    """Return the search through so many lists."""

    def search(query: np.ndarray) -> np.ndarray:
        index.nprobe = probes
        if code == "Flat":
            return np.asarray(index.search(query[None], NEAREST)[1][0])
        return exact(rows, query, index.search(query[None], WIDER * NEAREST)[1][0])

    return search


def hnsw(rows: np.ndarray) -> Iterator[Way]:
    """Yield graphs, at several widths of the search."""
    for name, wider in (("HNSW32", 1), ("HNSW32_SQ8", WIDER)):
        start = time.perf_counter()
        index = faiss.index_factory(
            rows.shape[1], name.replace("_", ","), faiss.METRIC_INNER_PRODUCT
        )
        if not index.is_trained:
            index.train(rows)
        index.add(rows)
        took = time.perf_counter() - start
        # Links of the lowest level, and the vectors that an index of graphs has of its own.
        size = 2 * 32 * 4 + rows.shape[1] * (4 if wider == 1 else 1)
        for width in (64, 256, 512):
            yield Way(f"{name} efSearch {width}", walking(index, rows, width, wider), took, size)


def walking(index: faiss.Index, rows: np.ndarray, width: int, wider: int) -> Search:
    """Return the walk of that width through the graph."""

    def search(query: np.ndarray) -> np.ndarray:
        index.hnsw.efSearch = width
        return exact(rows, query, index.search(query[None], wider * NEAREST)[1][0])

    return search


def exact(rows: np.ndarray, query: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the best of the rows at `places`, compared exactly."""
    places = places[places >= 0]
    return places[np.argsort(-(rows[places] @ query))[:NEAREST]]


def measured(ways: Sequence[Way], rows: np.ndarray, queries: np.ndarray) -> list[dict[str, object]]:
    """Return times and recall of all ways, which take turns."""
    took: dict[str, list[float]] = {way.name: [] for way in ways}
    first: dict[str, list[bool]] = {way.name: [] for way in ways}
    share: dict[str, list[float]] = {way.name: [] for way in ways}
    for query in tqdm(queries, desc="asking", file=sys.stderr):
        scores = rows @ query
        last = np.partition(scores, -NEAREST)[-NEAREST]
        for way in ways:
            start = time.perf_counter()
            places = way.search(query)
            took[way.name].append(time.perf_counter() - start)
            # By likeness, not by place: equal vectors are equally near.
            share[way.name].append(float((scores[places] >= last - 1e-6).sum() / NEAREST))
            first[way.name].append(bool(scores[places].max() >= scores.max() - 1e-6))
    return [
        {
            **{name: value for name, value in asdict(way).items() if name != "search"},
            "seconds": median(took[way.name]),
            "recall_16": float(np.mean(share[way.name])),
            "recall_1": float(np.mean(first[way.name])),
        }
        for way in ways
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print a table; return 0."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("streams", nargs="*", type=Path, metavar="STREAM")
    parser.add_argument("--rows", type=int, default=100_000, help="at most so many")
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
    queries = vectors[order[:QUERIES]]
    rows = np.ascontiguousarray(vectors[order[QUERIES : QUERIES + given.rows]])
    ways = [ours(rows), flat(rows), *ivf(rows), *hnsw(rows)]
    figures = measured(ways, rows, queries)
    least = figures[0]["seconds"]
    print(f"{len(rows):,} rows, {len(queries)} queries")
    print("| way | time | of ours | recall of 16 | of the first | build | bytes a row beside |")
    print("|---|---|---|---|---|---|---|")
    for one in figures:
        print(
            f"| {one['name']} | {micro(one['seconds'])} | {one['seconds'] / least:.2f} | "
            f"{one['recall_16']:.4f} | {one['recall_1']:.4f} | {one['build_s']:.1f} s | "
            f"{one['bytes_a_row']:.0f} |"
        )
    if given.json:
        write_json(given.json, {"rows": len(rows), "ways": figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
