"""Hits from a cache in PostgreSQL: latency and hits a second, by tier, search mode and clients.

    python benchmarks/postgres.py [--entries N] [--seconds S] [--rounds N] [--database DSN]
                                  [--json OUT]

The workload is made: templates such as "rank the margin of refunds for suppliers as w17" with one
value, each with its own plan (400 bytes of JSON); prompts asked have other values than those
stored. Template-tier prompts are in the stored words; semantic ones say "please show me" before,
so that they are embedded and searched for. Vectors come from a stand-in of 384 dimensions (a hash
of each word) whose time is taken off nothing: it is given as `embed_ms`.

Each client is a process of its own with its own cache, opened before the clock starts; all begin
together and ask one after the other for `--seconds`. Latencies are of all clients together.
`open_s` is how long one client takes to open and answer its first prompt, `memory_mb` what that
added to its resident memory. Every hit is checked for its own value. Only hits are timed: a tenant
without labels serves little, so that each is told the plans of 64 prompts before.

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
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import psycopg
from budgets import TAUGHT, teach
from psycopg.conninfo import make_conninfo
from tqdm import tqdm

from semcache import Hit, Parameter, PlanCache, __version__
from semcache.cache.context import CacheContext
from semcache.settings import Settings
from semcache.stores.memory import MemoryStore
from semcache.stores.postgres.store import PostgresStore
from semcache.stores.vectors.faiss_index import FaissIndex
from semcache.testing import HashEmbedder
from semcache.upkeep.migrate import migrate
from semcache.wiring import SystemClock

DIMENSION = 384
MEASURES = "margin revenue volume price discount tax cost profit weight delay".split()
THINGS = "refunds orders visits invoices returns shipments claims tickets trips loans".split()
GROUPS = "suppliers customers regions products stores teams cities brands routes months".split()
LEADS = {"template": "", "semantic": "please show me "}


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


def words(number: int) -> str:
    """Return the words of template `number`; no two say the same."""
    measure, thing, group = number % 10, number // 10 % 10, number // 100 % 10
    return f"{MEASURES[measure]} of {THINGS[thing]} for {GROUPS[group]} as w{_letters(number)}"


def _letters(number: int) -> str:
    # Digits would be a value.
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


def prompt(number: int, year: int) -> str:
    """Return what asks template `number` for `year`."""
    return f"{words(number)} in {year}"


def plan(number: int) -> dict[str, Any]:
    """Return the plan of template `number`, made for 2024."""
    return {
        "start_node": {"route": "query"},
        "query": {
            "operation": "query_sales",
            "input": {"year": "2024", "of": words(number), "note": "x" * 160},
            "route": "end",
        },
        "end": {"completed": True, "vars": {"answer": "$.query.data"}},
    }


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


def fill(dsn: str, entries: int) -> float | None:
    """Store all templates; return how many a second the database took in.

    They are made in memory first, so that what is timed is the database, one transaction a plan.
    None if an earlier run has left them there.
    """
    # No wait for the disk: how fast that is says nothing about what is measured here.
    fast = make_conninfo(dsn, options="-c synchronous_commit=off")
    with closing(PostgresStore.open(fast)) as store:
        if store.count("default") == entries:
            return None
    memory = MemoryStore()
    with filled(memory, entries), closing(PostgresStore.open(fast)) as store:
        start = time.perf_counter()
        migrate(memory, store)
        return entries / (time.perf_counter() - start)


@contextmanager
def filled(store: MemoryStore, entries: int) -> Iterator[None]:
    """Put the plans of all templates in `store`."""
    context = CacheContext.of(
        Settings(max_entries=None),
        store=store,
        embedder=HashEmbedder(DIMENSION),
        clock=SystemClock(),
        make_index=lambda _: FaissIndex(),
    )
    with PlanCache(context) as cache:
        for number in tqdm(range(entries), desc="storing", unit="plan", mininterval=2):
            said = [Parameter("year", "2024", mention="2024")]
            if not cache.store(prompt(number, 2024), plan(number), params=said):
                raise SystemExit(f"template {number} was not stored")
        yield


def client(
    job: tuple[str, str, str, int, int, float], together: Barrier
) -> tuple[list[float], float, float, int]:
    """Ask for `seconds`; return those of each hit, to open, the memory added in MB, and misses.

    Before the semantic tier is timed the tenant is told the plans of a few of its prompts.
    """
    dsn, search, tier, entries, seed, seconds = job
    before = memory_mb()
    start = time.perf_counter()
    took: list[float] = []
    with PlanCache.open(
        database=dsn,
        database_search=search,  # type: ignore[arg-type]  # one of the two
        embedder=HashEmbedder(DIMENSION),
        max_entries=None,
    ) as cache:
        ask(cache, "template", seed, 2001)
        opened = time.perf_counter() - start
        memory = memory_mb() - before
        if LEADS[tier]:
            numbers = [(seed + 7919 * n) % entries for n in range(TAUGHT)]
            teach(cache, [prompt(number, 2001) for number in numbers], LEADS[tier])
            ask(cache, tier, seed, 2001)
        misses = 0
        together.wait()
        end, number = time.perf_counter() + seconds, seed
        while time.perf_counter() < end:
            number = (number + 7919) % entries
            start = time.perf_counter()
            if ask(cache, tier, number, 1990 + number % 30):
                took.append(time.perf_counter() - start)
            else:
                misses += 1
    return took, opened, memory, misses


def memory_mb() -> float:
    """Return the resident memory of this process; its maximum would be its parent's."""
    pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20


def ask(cache: PlanCache, tier: str, number: int, year: int) -> bool:
    """Ask for template `number`; return whether it hit. End the benchmark if that is not right."""
    found = cache.lookup(LEADS[tier] + prompt(number, year))
    if not isinstance(found, Hit) and tier == "semantic":
        return False
    if not isinstance(found, Hit) or found.tier != tier:
        raise SystemExit(f"expected a {tier} hit: {found.explain()}")
    query: Any = found.plan.to_dict()["query"]
    if query["input"]["year"] != str(year) or query["input"]["of"] != words(number):
        raise SystemExit(f"a wrong plan was served for {prompt(number, year)!r}")
    return True


def measured(
    dsn: str, *, search: str, tier: str, clients: int, entries: int, seconds: float
) -> Row:
    """Return what `clients` at once come to."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(clients) as pool:
        together = manager.Barrier(clients)
        jobs = [
            ((dsn, search, tier, entries, 101 * one % entries, seconds), together)
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
        embedder.embed([words(number)])
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
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    warnings.simplefilter("ignore")
    with server(given.database) as dsn:
        stored_per_s = fill(dsn, given.entries)
        rows = [
            max(
                (
                    measured(
                        dsn,
                        search=search,
                        tier=tier,
                        clients=clients,
                        entries=given.entries,
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
