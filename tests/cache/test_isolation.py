"""Many tenants, each with a word that only it has, and nothing of it anywhere else.

What all tenants of a process share is kept far smaller than they need together, so that hundreds
push each other out of it as thousands would; `-m slow` has the thousands.
"""

import json
import logging
import random
import re
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from semcache import Found, Hit, PlanCache, Settings
from semcache.cache.entries.decoded_entries import DecodedEntries
from semcache.canonical import JsonObject
from semcache.stores.disk.store import DiskStore
from semcache.stores.memory import MemoryStore
from semcache.testing import HashEmbedder, RecordingObserver
from semcache.wiring import SystemClock
from tests.caching import cache_over
from tests.calling import calling, hit

TENANTS = 2000
SHARED = 64
"""Prompts and entries of all tenants together that are kept in memory, and what risk recalls."""
OWN = re.compile(r"own\d{4}")


def own(tenant: int) -> str:
    """Return the word that only this tenant says."""
    return f"own{tenant:04}"


def plan(tenant: int, year: str) -> JsonObject:
    return calling(own(tenant), year=year)


def strangers(tenant: int, what: object) -> set[str]:
    """Return the words of other tenants in `what`."""
    said = what if isinstance(what, str) else json.dumps(what)
    return set(OWN.findall(said)) - {own(tenant)}


class Traffic:
    """Random calls of many tenants, each of them watched for what belongs to somebody else."""

    def __init__(self, cache: PlanCache, seed: int) -> None:
        self.cache = cache
        self.random = random.Random(seed)
        self.leaks: list[object] = []
        self.lookups: Counter[int] = Counter()
        self.hits: Counter[str] = Counter()
        self.stored: dict[int, set[str]] = {}

    def run(self, tenants: Iterable[int]) -> "Traffic":
        for tenant in tenants:
            self.one(tenant)
        return self

    def one(self, tenant: int) -> None:
        name, year = f"t{tenant}", str(self.random.randint(1990, 2030))
        # All tenants ask in the same words; only every third says its own word in them.
        word = f" for {own(tenant)}" if self.random.random() < 0.3 else ""
        prompt = f"{self.random.choice(['sales', 'total sales', 'overall sales'])} in {year}{word}"
        found = self.cache.lookup(prompt, tenant=name)
        self.lookups[tenant] += 1
        self.watch(tenant, found)
        if not found:
            params = {"year": year} | ({"customer": own(tenant)} if word else {})
            made: Any = plan(tenant, year)
            if word:
                made["call"]["input"]["customer"] = own(tenant)
            stored = self.cache.store(prompt, made, params=params, tenant=name, tags=["shared"])
            self.stored.setdefault(tenant, set()).add(stored.id)
        elif self.random.random() < 0.1:
            self.cache.feedback(found, right=self.random.random() < 0.7)

    def watch(self, tenant: int, found: Found) -> None:
        if isinstance(found, Hit):
            self.hits[found.tier] += 1
            if found.plan.operations() != (own(tenant),):
                self.leaks.append((tenant, found.plan.to_dict()))
        if strangers(tenant, found.to_dict()):
            self.leaks.append((tenant, found.explain()))


@pytest.fixture(params=["memory", "disk"])
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "disk" else None


def busy(cache: PlanCache, tenants: int, seed: int) -> list[Traffic]:
    """Let many tenants call from four threads, in no order."""
    calls = [tenant for tenant in range(tenants) for _ in range(3)]
    random.Random(seed).shuffle(calls)
    with ThreadPoolExecutor(4) as pool:
        parts = [calls[n::4] for n in range(4)]
        return list(pool.map(lambda n: Traffic(cache, seed + n).run(parts[n]), range(4)))


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.cache.query.KEPT", SHARED)
    monkeypatch.setattr("semcache.cache.context.DecodedEntries", partial(DecodedEntries, SHARED))
    monkeypatch.setattr("semcache.cache.evidence.candidate_risk.REMEMBERED", SHARED)


@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize(
    ("kept", "tenants", "max_wrong"),
    [
        ("memory", 400, None),
        ("memory", 200, 0.05),
        ("disk", 100, None),
        pytest.param("memory", TENANTS, None, marks=pytest.mark.slow),
        pytest.param("memory", TENANTS, 0.05, marks=pytest.mark.slow),
        pytest.param("disk", TENANTS, 0.05, marks=pytest.mark.slow),
    ],
)
def test_of_many_tenants_none_sees_anything_of_another(
    kept: str,
    tenants: int,
    max_wrong: float | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    store = DiskStore.open(tmp_path) if kept == "disk" else MemoryStore()
    told = Settings(directory=tmp_path if kept == "disk" else None, max_wrong=max_wrong)
    with cache_over(store, told, embedder=HashEmbedder(16), clock=SystemClock()) as cache:
        ran = busy(cache, tenants, seed=5)
        assert [leak for part in ran for leak in part.leaks] == []
        assert sum((part.hits for part in ran), Counter[str]())["template"] > tenants // 4
        lookups = sum((part.lookups for part in ran), Counter[int]())
        for tenant in range(0, tenants, 7):
            name = f"t{tenant}"
            assert cache.stats(tenant=name).lookups == lookups[tenant]
            entries = cache.entries(tenant=name)
            stored = set().union(*(part.stored.get(tenant, set()) for part in ran))
            assert {entry.id for entry in entries} <= stored
            assert not strangers(tenant, [entry.to_json() for entry in entries])
            for note in ("evidence", "vetoes", "statistics"):
                assert not strangers(tenant, store.get_note(name, note) or "")
    assert caplog.records == []


@pytest.mark.usefixtures("crowded")
def test_removing_from_one_of_many_tenants_leaves_the_others_whole(
    directory: Path | None,
) -> None:
    with PlanCache.open(directory, embedder=HashEmbedder(16)) as cache:
        tenants = 400 if directory is None else 200
        for tenant in range(tenants):
            cache.store(
                "sales in 2024", plan(tenant, "2024"), params={"year": "2024"},
                tenant=f"t{tenant}", tags=["shared"],
            )  # fmt: skip
        for n, tenant in enumerate(random.Random(6).sample(range(tenants), 100)):
            name = f"t{tenant}"
            gone = (
                cache.clear(tenant=name) if n % 2 else cache.invalidate(tag="shared", tenant=name)
            )
            assert gone == 1
            assert not cache.lookup("sales in 2023", tenant=name)
        assert len(cache.tenants()) == tenants - 100
        for name in cache.tenants():
            found = hit(cache.lookup("sales in 2023", tenant=name))
            assert found.plan.operations() == (own(int(name[1:])),)


def test_the_log_and_the_events_of_a_call_tell_of_its_tenant_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    observer = RecordingObserver()
    with PlanCache.open(embedder=HashEmbedder(16), observer=observer, max_wrong=0.05) as cache:
        traffic = Traffic(cache, seed=7)
        for tenant in random.Random(8).choices(range(50), k=400):
            caplog.clear()
            observer.events.clear()
            traffic.one(tenant)
            assert not strangers(tenant, caplog.text)
            assert not strangers(tenant, repr(observer.events))
            assert {getattr(event, "tenant", f"t{tenant}") for event in observer.events} == {
                f"t{tenant}"
            }
    assert traffic.leaks == []
