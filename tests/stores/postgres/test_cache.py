"""A whole cache in PostgreSQL: what users see of the store, its search, and its trouble."""

import logging
import multiprocessing
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from semcache import Hit, Miss, Parameter, PlanCache, SemCache
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Operation
from semcache.commands.cli import main
from semcache.errors import InvalidSettings, StoreUnavailable
from semcache.settings import Settings
from semcache.stores.postgres.store import PostgresStore
from semcache.testing import FakeClock, HashEmbedder
from semcache.upkeep.checks import sound
from semcache.upkeep.doctor import examine_database
from semcache.wiring import SystemClock
from tests.caching import cache_over
from tests.calling import calling, given_input
from tests.conftest import Postgres
from tests.waiting import until

YEAR = Parameter("year", "2024", mention="2024")
PROMPT = "sales in 2024 by category"
SEARCHES = ("replica", "server")

Open = Callable[..., PlanCache]


@pytest.fixture
def database(postgres: Postgres, tmp_path: Path) -> str:
    """A database of this test alone."""
    name = postgres.schema(tmp_path)
    postgres.run(f"CREATE DATABASE {name}")
    return postgres.dsn.replace("/postgres?", f"/{name}?")


@pytest.fixture
def open_cache(database: str) -> Iterator[Open]:
    """Open caches in one database, each as another machine would; all are closed at the end."""
    with ExitStack() as stack:

        def opened(**given: Any) -> PlanCache:
            given.setdefault("embedder", HashEmbedder())
            return stack.enter_context(PlanCache.open(database=database, **given))

        yield opened


PLAN = calling("sum_sales", year="2024")


def hits(cache: PlanCache, prompt: str = "sales in 2023 by category") -> bool:
    return isinstance(cache.lookup(prompt), Hit)


def both(cache: PlanCache) -> bool:
    return hits(cache) and hits(cache, "refunds in 2023 by region")


class TestManyMachines:
    @pytest.mark.parametrize("search", SEARCHES)
    def test_a_plan_made_on_one_is_served_on_the_others_with_their_own_values(
        self, open_cache: Open, search: str
    ) -> None:
        left, right = (open_cache(database_search=search) for _ in range(2))
        assert not hits(right)
        assert left.store(PROMPT, PLAN, params=[YEAR])
        until(lambda: hits(right))
        found = right.lookup("sales in 2023 by category")
        assert given_input(found) == {"year": "2023"}

    @pytest.mark.parametrize("search", SEARCHES)
    def test_a_plan_is_found_by_meaning_on_the_other(self, open_cache: Open, search: str) -> None:
        left, right = (open_cache(database_search=search) for _ in range(2))
        left.store(PROMPT, PLAN, params=[YEAR])
        until(lambda: hits(right))
        last = right.lookup("show me the sales in 2021 by category")
        assert isinstance(last, Hit), last.explain()
        assert (last.tier, round(last.score, 3)) == ("semantic", 1.0)

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize(
        "forget",
        [
            lambda cache: cache.invalidate(tag="t"),
            lambda cache: cache.clear(tenant="default"),
            lambda cache: cache.feedback(cache.lookup(PROMPT), right=False),
        ],
        ids=["invalidated", "cleared", "judged wrong"],
    )
    def test_what_one_has_forgotten_is_served_by_none(
        self, open_cache: Open, search: str, forget: Callable[[PlanCache], object]
    ) -> None:
        left, right = (open_cache(database_search=search) for _ in range(2))
        left.store(PROMPT, PLAN, params=[YEAR], tags=["t"])
        until(lambda: hits(right))
        forget(left)
        assert not hits(left)  # at once, where it was done
        until(lambda: not hits(right))
        assert not any(hits(right) for _ in range(20))

    @pytest.mark.parametrize("search", SEARCHES)
    def test_vectors_of_two_embedders_are_never_compared(
        self, open_cache: Open, search: str
    ) -> None:
        small = open_cache(embedder=HashEmbedder(32), database_search=search)
        large = open_cache(embedder=HashEmbedder(64), database_search=search)
        small.store(PROMPT, PLAN, params=[YEAR])
        large.store("refunds in 2024 by region", PLAN, params=[YEAR])
        for cache, own, others in (
            (
                small,
                "show me the sales in 2021 by category",
                "show me the refunds in 2021 by region",
            ),
            (
                large,
                "show me the refunds in 2021 by region",
                "show me the sales in 2021 by category",
            ),
        ):
            until(partial(both, cache))
            assert hits(cache, own)
            assert not hits(cache, others)

    def test_counts_of_all_come_together(self, open_cache: Open) -> None:
        left, right = open_cache(), open_cache()
        left.store(PROMPT, PLAN, params=[YEAR])
        until(lambda: hits(right))
        for cache in (left, right):
            before = cache.stats().hits.get("template", 0)
            for _ in range(10):
                assert hits(cache)
            assert cache.stats().hits["template"] == before + 10
            cache.flush()
        assert left.stats() == right.stats()

    def test_entries_move_between_directory_and_database(
        self, open_cache: Open, tmp_path: Path
    ) -> None:
        cache, again = open_cache(), tmp_path / "again"
        cache.store(PROMPT, PLAN, params=[YEAR])
        assert cache.export(tmp_path / "out.jsonl") == 1
        with PlanCache.open(again, embedder=HashEmbedder()) as local:
            assert local.import_(tmp_path / "out.jsonl") == 1
            assert hits(local)
            local.store("refunds in 2024 by region", PLAN, params=[YEAR])
            local.export(tmp_path / "back.jsonl")
        assert cache.import_(tmp_path / "back.jsonl") == 2
        assert hits(cache, "refunds in 2020 by region")

    def test_a_machines_snapshot_serves_that_machine_alone(
        self, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("semcache.cache.view.views.WORTHWHILE", 3)
        folders = [tmp_path / name for name in ("left", "right")]

        def opened(folder: Path) -> PlanCache:
            return PlanCache.open(folder, database=database, embedder=HashEmbedder())

        with opened(folders[0]) as cache:
            for word in ("sales", "refunds", "visits", "orders"):
                cache.store(f"{word} in 2024 by category", PLAN, params=[YEAR])
        for folder in folders:
            with opened(folder) as cache:
                assert hits(cache, "visits in 2019 by category")
        assert all(len(list((folder / "views").iterdir())) == 2 for folder in folders)
        with opened(folders[0]) as cache:
            found = cache.lookup("visits in 2019 by category")
            assert isinstance(found, Hit)
            assert cache.invalidate(id=found.entry) == 1
        with opened(folders[1]) as cache:
            assert not hits(cache, "visits in 2019 by category")
            assert hits(cache, "orders in 2019 by category")


def ask(database: str, notes: Path, year: int, together: Any) -> str:
    """Look a prompt up when everybody does; plan, and note that, if nobody else does."""
    with PlanCache.open(database=database, embedder=HashEmbedder()) as cache:
        found = cache.lookup(f"sales in {year} by category")
        assert isinstance(found, Miss)
        together.wait(60)
        with cache.planning(found) as again:
            if again:
                found = cache.lookup(f"sales in {year} by category")
            if isinstance(found, Miss):
                with notes.open("a", encoding="utf-8") as file:
                    file.write(f"{year}\n")
                mention = Parameter("year", f"{year}", mention=f"{year}")
                plan = calling("sum_sales", year=f"{year}")
                cache.store(f"sales in {year} by category", plan, params=[mention])
        return str(given_input(cache.lookup(f"sales in {year} by category")))


# specs: D-8
def test_prompts_in_many_processes_are_planned_once_and_each_gets_its_own_values(
    database: str, tmp_path: Path
) -> None:
    PlanCache.open(database=database).close()
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(4) as pool:
        together = manager.Barrier(4)
        jobs = [(database, tmp_path / "notes", year, together) for year in range(2010, 2014)]
        said = pool.starmap(ask, jobs, chunksize=1)
    assert len((tmp_path / "notes").read_text(encoding="utf-8").splitlines()) == 1
    assert said == [str({"year": f"{year}"}) for year in range(2010, 2014)]


def test_a_cache_moves_from_a_directory_to_a_database_and_back_by_command(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept, back = tmp_path / "kept", tmp_path / "back"
    with PlanCache.open(kept, embedder=HashEmbedder()) as cache:
        cache.store(PROMPT, PLAN, params=[YEAR], tenant="acme")
        assert isinstance(cache.lookup(PROMPT, tenant="acme"), Hit)
    assert main(["migrate", str(kept), database]) == 0
    assert main(["verify", "--database", database]) == 0
    assert main(["list", "--database", database, "--tenant", "acme"]) == 0
    said = capsys.readouterr().out
    assert "1 entries, 1 tenants, 0 problems" in said
    assert "sales in <year> by category" in said
    assert main(["migrate", database, str(back)]) == 0
    for given in ({"database": database}, {"directory": back}):
        with PlanCache.open(embedder=HashEmbedder(), **given) as cache:
            found = cache.lookup("show me the sales in 2021 by category", tenant="acme")
            assert isinstance(found, Hit)
            assert cache.stats(tenant="acme").hits["template"] == 1


class TestDoctor:
    def test_a_sound_database_has_a_line_for_each_part(
        self, open_cache: Open, database: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        open_cache().store(PROMPT, PLAN, params=[YEAR])
        assert main(["doctor", "--database", database, "--no-embedder"]) == 0
        lines = capsys.readouterr().out.splitlines()
        assert [line.split()[0] for line in lines] == ["ok"] * len(lines)
        parts = [line.split()[1] for line in lines]
        assert parts == ["database:", "versions:", "clocks:", "records:", "clock:"]

    def test_a_clock_of_another_time_is_told(self, database: str) -> None:
        checks = examine_database(database, schema="semcache", clock=FakeClock())
        told = {check.part: check for check in checks}
        assert (told["clocks"].level, "NTP" in told["clocks"].cure) == ("warning", True)

    def test_vectors_of_another_embedder_are_made_anew(
        self, open_cache: Open, database: str
    ) -> None:
        embedder = HashEmbedder(32)
        open_cache().store(PROMPT, PLAN, params=[YEAR])
        checks = examine_database(
            database, schema="semcache", clock=SystemClock(), embedder=embedder, repair=True
        )
        assert sound(checks)
        assert any("embedded 1 anew" in check.repaired for check in checks)
        assert hits(open_cache(embedder=embedder), "show me the sales in 2021 by category")

    def test_a_database_that_is_not_there_is_told_without_the_password(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        dsn = "postgresql://me:s3cret@/x?host=/nowhere"
        assert main(["doctor", "--database", dsn, "--no-embedder"]) == 1
        said = "".join(capsys.readouterr())
        assert ("cannot be reached" in said, "s3cret" in said) == (True, False)


class TestTrouble:
    def test_a_planner_answers_while_the_server_is_gone(
        self, postgres: Postgres, database: str
    ) -> None:
        operation = Operation(
            "list_orders", "List the orders.", {"type": "object"}, effect="read", call=lambda _: [1]
        )
        with SemCache.open(
            catalog=Catalog([operation]),
            settings=Settings(database=database, database_lag_s=0),
            embedder=HashEmbedder(),
        ) as cache:
            assert cache.run("list the orders").value == {"answer": [1]}
            postgres.stop()
            answer = cache.run("list the orders")
            assert isinstance(answer.found, Miss)
            assert (answer.value, answer.found.reason) == ({"answer": [1]}, "store_failed")
            postgres.start()
            until(lambda: isinstance(cache.run("list the orders").found, Hit))

    def test_a_database_that_cannot_be_reached_is_told_when_it_is_opened(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        dsn = "postgresql://me:s3cret@/x?host=/nowhere"
        with PlanCache.open(database=dsn, embedder=HashEmbedder()) as cache:
            (warned,) = [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]
            assert "user=me" in warned
            assert "/nowhere" in warned
            assert "No such file" in warned
            assert "s3cret" not in caplog.text
            found = cache.lookup(PROMPT)
            assert isinstance(found, Miss)
            assert found.reason == "store_failed"
            assert "No such file" in cache.store(PROMPT, PLAN, params=[YEAR]).reason
            with pytest.raises(StoreUnavailable, match="No such file"):
                cache.entries()

    @pytest.mark.parametrize("given", [{"dbname": "absent"}, {"user": "nobody"}])
    def test_a_server_that_lets_nobody_in_is_told_at_once_with_what_it_says(
        self, postgres: Postgres, given: dict[str, str]
    ) -> None:
        dsn = psycopg.conninfo.make_conninfo(postgres.dsn, **given)
        with pytest.raises(StoreUnavailable, match=f"{next(iter(given.values()))}.*not exist"):
            PlanCache.open(database=dsn, embedder=HashEmbedder())

    @pytest.mark.parametrize("search", SEARCHES)
    @pytest.mark.parametrize("how", ["stop", "hang"])
    def test_a_cache_opened_while_the_server_is_away_serves_when_it_is_back(
        self, postgres: Postgres, open_cache: Open, how: str, search: str
    ) -> None:
        assert open_cache(database_search=search).store(PROMPT, PLAN, params=[YEAR])
        getattr(postgres, how)()
        late = open_cache(database_search=search, warm_up="before")
        assert not hits(late)
        assert late.invalidate(tag="t").pending
        postgres.go_on()
        postgres.start()
        until(lambda: hits(late))
        assert late.store("refunds in 2024 by region", PLAN, params=[YEAR])
        assert both(late)

    def test_a_key_is_checked_when_the_server_is_back_before_anything_is_written(
        self, postgres: Postgres, open_cache: Open
    ) -> None:
        keys = [b64encode(bytes([n]) * 32).decode() for n in (1, 2)]
        assert open_cache(encryption_key=keys[0]).store(PROMPT, PLAN, params=[YEAR])
        postgres.stop()
        strangers = [open_cache(encryption_key=key) for key in ("", keys[1])]
        postgres.start()
        for stranger, says in zip(strangers, ("is encrypted", "another key"), strict=True):
            until(lambda c=stranger, s=says: s in c.store("refunds in 2024", PLAN).reason)  # type: ignore[misc]
        assert len(open_cache(encryption_key=keys[0]).entries()) == 1

    def test_a_statement_that_takes_too_long_is_given_up(
        self, database: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        store = PostgresStore.open(database, statement_timeout_s=0.2)
        with cache_over(store) as cache, psycopg.connect(database) as other:
            cache.store(PROMPT, PLAN, params=[YEAR])
            other.execute("SELECT * FROM semcache.state FOR UPDATE")
            stored = cache.store("refunds in 2024", PLAN, params=[YEAR])
            assert (bool(stored), "took too long" in stored.reason) == (False, True)
            assert hits(cache)  # readers do not wait for writers
            other.rollback()
            assert cache.store("refunds in 2024", PLAN, params=[YEAR])

    def test_when_all_connections_are_in_use_it_is_a_miss_that_says_so(self, database: str) -> None:
        store = PostgresStore.open(database, pool_size=1)
        with cache_over(store) as cache:
            cache.store(PROMPT, PLAN, params=[YEAR])
            taken, done = threading.Event(), threading.Event()

            def hold(connection: object) -> None:
                taken.set()
                done.wait(30)

            thread = threading.Thread(target=store.connections.read, args=(hold,))
            thread.start()
            taken.wait(30)
            found = cache.lookup(PROMPT)
            done.set()
            thread.join()
            assert isinstance(found, Miss)
            assert found.reason == "store_failed"
            assert hits(cache)


class TestSettings:
    def test_what_is_encrypted_is_found_but_not_by_the_server(
        self, open_cache: Open, postgres: Postgres, database: str
    ) -> None:
        key = b64encode(bytes(32)).decode()
        with pytest.raises(InvalidSettings, match="choose 'replica'"):
            open_cache(encryption_key=key, database_search="server")
        cache = open_cache(encryption_key=key)
        cache.store(PROMPT, PLAN, params=[YEAR])
        assert hits(cache, "show me the sales in 2021 by category")
        with psycopg.connect(database) as connection:
            rows = connection.execute("SELECT * FROM semcache.records").fetchall()
        assert (len(rows), "sales" in repr(rows)) == (1, False)

    def test_the_connection_string_is_shown_by_no_settings(self) -> None:
        settings = Settings.load(environ={"SEMCACHE_DATABASE": "postgresql://me:s3cret@host/x"})
        assert settings.database == "postgresql://me:s3cret@host/x"
        assert "s3cret" not in repr(settings)
