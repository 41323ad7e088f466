"""Hits from a cache in PostgreSQL: latency and hits a second, by tier, search mode and clients.

    python benchmarks/postgres.py [--entries N] [--seconds S] [--rounds N] [--database DSN]
                                  [--json OUT]

The workload is `scale.py`'s, written in bulk; prompts asked have other values than those stored.
Template-tier prompts are in the stored words; semantic ones say "could you please" before, so that
they are embedded and searched for. Vectors come from a stand-in of 384 dimensions (a hash of each
word) whose time is taken off nothing: it is given as `embed_ms`.

Each client is a process of its own with its own cache, opened before the clock starts; all begin
together and ask one after the other for `--seconds`. Latencies are of all clients together.
`open_s` is how long one client takes to open and answer its first prompt, `memory_mb` what that
added to its resident memory. Clients that search themselves (`replica`) have a directory with a
snapshot, which the first of them left: `derive_s` are its seconds of processor time without one.
Where the server searches, its index is waited for before the clock starts.
Every hit is checked for its own value. Only hits are timed: a tenant without labels serves little,
so that each is told the plans of 64 prompts before.

Without `--database` a server is started by `pgserver` (extra `test`), on this machine, over a
socket: a network adds its round trip to what asks the server (the semantic tier by `server`; with
`replica` nothing waits for the network as long as nothing changes).
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path

import bulk
import psycopg
from curves import Workload
from psycopg.conninfo import make_conninfo
from workload import DIMENSION, TAUGHT, TENANT, teach

from semcache import Hit, PlanCache, __version__
from semcache.stores.postgres.store import PostgresStore
from semcache.stores.postgres.vectors import PostgresIndex
from semcache.testing import HashEmbedder

LEADS = {"template": "", "semantic": "could you please "}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement."""

    search: str
    tier: str
    clients: int
    hits_per_s: float
    p50_ms: float
    p99_ms: float
    open_s: float
    memory_mb: float
    hit_share: float
    """Share of the lookups that hit in this tier; others are refused for their risk."""


@contextmanager
def server(dsn: str) -> Iterator[str]:
    """Give the connection string of a database to measure in."""
    if dsn:
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="semcache-", ignore_cleanup_errors=True) as folder:
        os.environ["XDG_RUNTIME_DIR"] = folder
        import pgserver  # noqa: PLC0415 - an extra, and only here

        running = pgserver.get_server(Path(folder) / "data")
        try:
            yield running.get_uri()
        finally:
            running.cleanup()


def fill(dsn: str, work: Workload) -> float | None:
    """Store all templates; return how many a second the database took in.

    None if an earlier run has left them there.
    """
    # No wait for the disk: how fast that is says nothing about what is measured here.
    fast = make_conninfo(dsn, options="-c synchronous_commit=off")
    with closing(PostgresStore.open(fast)) as store:
        missing = work.count - store.count(TENANT)
        start = time.perf_counter()
        deque(bulk.fill(store, work, 0, 0), maxlen=0)
        return missing / (time.perf_counter() - start) if missing else None


def client(
    job: tuple[str, str, str, Workload, int, float, Path], together: Barrier
) -> tuple[list[float], float, float, int]:
    """Ask for `seconds`; return those of each hit, to open, the memory added in MB, and misses.

    Before the semantic tier is timed the tenant is told the plans of a few of its prompts.
    """
    dsn, search, tier, work, seed, seconds, directory = job
    before = memory_mb()
    start = time.perf_counter()
    took: list[float] = []
    with opened(dsn, search, directory) as cache:
        ask(cache, work, "template", seed, 2001)
        open_s = time.perf_counter() - start
        memory = memory_mb() - before
        if LEADS[tier]:
            numbers = [(seed + 7919 * n) % work.count for n in range(TAUGHT)]
            teach(cache, [work.prompt(number, 2001, 7) for number in numbers], LEADS[tier])
            ask(cache, work, tier, seed, 2001)
            index = cache._context.views.current(TENANT).index  # noqa: SLF001 - nothing public waits
            if isinstance(index, PostgresIndex):
                index.wait()
        misses = 0
        together.wait()
        # Behind the prompts that were told: those are near what is known already.
        end, number = time.perf_counter() + seconds, seed + 7919 * TAUGHT
        while time.perf_counter() < end:
            number = (number + 7919) % work.count
            start = time.perf_counter()
            if ask(cache, work, tier, number, 1990 + number % 30):
                took.append(time.perf_counter() - start)
            else:
                misses += 1
    return took, open_s, memory, misses


def opened(dsn: str, search: str, directory: Path) -> PlanCache:
    """Return the cache; what searches in the server keeps no snapshot."""
    return PlanCache.open(
        directory,
        database=dsn,
        database_search=search,  # type: ignore[arg-type]  # one of the two
        embedder=HashEmbedder(DIMENSION),
        max_entries=None,
        ttl_s=None,
    )


def derive(dsn: str, work: Workload, directory: Path) -> float:
    """Open the cache without a snapshot, which leaves one; return the seconds of processor time."""
    start = time.process_time()
    with opened(dsn, "replica", directory) as cache:
        ask(cache, work, "template", 0, 2001)
        return time.process_time() - start


def memory_mb() -> float:
    """Return the resident memory of this process; its maximum would be its parent's."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask(cache: PlanCache, work: Workload, tier: str, number: int, year: int) -> bool:
    """Ask for template `number`; return whether it hit. End the benchmark if that is not right."""
    found = cache.lookup(LEADS[tier] + work.prompt(number, year, 7))
    if not isinstance(found, Hit) and tier == "semantic":
        return False
    if not isinstance(found, Hit) or found.tier != tier:
        raise SystemExit(f"expected a {tier} hit: {found.explain()}")
    if found.plan.to_dict() != work.plan(number, year, 7):
        raise SystemExit(f"a wrong plan was served for template {number}")
    return True


def measured(
    dsn: str,
    work: Workload,
    directory: Path,
    *,
    search: str,
    tier: str,
    clients: int,
    seconds: float,
) -> Row:
    """Return what `clients` at once come to."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(clients) as pool:
        together = manager.Barrier(clients)
        jobs = [
            ((dsn, search, tier, work, 101 * one % work.count, seconds, directory), together)
            for one in range(clients)
        ]
        results = pool.starmap(client, jobs, chunksize=1)
    took = sorted(1000 * one for result in results for one in result[0])
    share = len(took) / (len(took) + sum(result[3] for result in results))
    if share < 1 / 5:
        raise SystemExit(f"{share:.0%} of the lookups came to a {tier} hit")
    return Row(
        search=search,
        tier=tier,
        clients=clients,
        hits_per_s=round(len(took) / seconds, 1),
        p50_ms=round(statistics.median(took), 3),
        p99_ms=round(took[int(0.99 * (len(took) - 1))], 3),
        open_s=round(statistics.median(result[1] for result in results), 2),
        memory_mb=round(statistics.median(result[2] for result in results), 1),
        hit_share=round(share, 3),
    )


def embed_ms() -> float:
    """Return the milliseconds of one stand-in embedding."""
    embedder = HashEmbedder(DIMENSION)
    start = time.perf_counter()
    for number in range(200):
        embedder.embed([f"rank the margin of refunds for suppliers as w{number}"])
    return round(5 * (time.perf_counter() - start), 3)


def about(dsn: str) -> dict[str, str]:
    """Return what was measured on."""
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "SELECT current_setting('server_version'), extversion FROM pg_extension"
            " WHERE extname = 'vector'"
        ).fetchone()
    postgres, pgvector = row or ("", "")
    return {
        "semcache": __version__,
        "postgres": postgres,
        "pgvector": pgvector,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    names = list(asdict(rows[0]))
    lines = [names, ["---"] * len(names), *([str(v) for v in asdict(row).values()] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    """Measure, print a table and JSON."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--entries", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=3.0)
    options.add_argument("--rounds", type=int, default=2, help="the best of which is told")
    options.add_argument("--clients", type=int, nargs="+", default=[1, 4])
    options.add_argument(
        "--database", default="", help="empty, or of an earlier run (default: one is made)"
    )
    options.add_argument("--seed", type=int, default=7)
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    work = Workload(given.entries, given.seed)
    with server(given.database) as dsn, tempfile.TemporaryDirectory() as folder:
        stored_per_s = fill(dsn, work)
        derive_s = derive(dsn, work, Path(folder))
        rows = [
            max(
                (
                    measured(
                        dsn,
                        work,
                        Path(folder),
                        search=search,
                        tier=tier,
                        clients=clients,
                        seconds=given.seconds,
                    )
                    for _ in range(given.rounds)
                ),
                key=lambda row: row.hits_per_s,
            )
            for search in ("replica", "server")
            for tier in LEADS
            for clients in given.clients
        ]
        result = {
            "entries": given.entries,
            "seconds": given.seconds,
            "rounds": given.rounds,
            "stored_per_s": stored_per_s and round(stored_per_s, 1),
            "derive_s": round(derive_s, 2),
            "embed_ms": embed_ms(),
            "load": round(os.getloadavg()[0], 1),
            "on": about(dsn),
            "rows": [asdict(row) for row in rows],
        }
    print(table(rows))
    print(json.dumps(result, indent=1))
    if given.json:
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
