"""The benchmarks of load, scale and soak run, at sizes that say nothing."""

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from semcache.stores.disk.store import DiskStore

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """What imports a script of benchmarks/ as `python` would find it."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    before = set(sys.modules)
    yield import_module
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(BENCHMARKS / f"{name}.py"):
            del sys.modules[name]


@pytest.mark.slow  # starts processes
def test_load_tells_what_threads_and_processes_did(script: Any, tmp_path: Path) -> None:
    told, drawn = tmp_path / "load.json", tmp_path / "load.png"
    asked = "--entries 20 --counts 2 --seconds 0.2 --writes 0.5 --rounds 2"
    more = ["--json", str(told), "--picture", str(drawn), "--directory", str(tmp_path)]
    assert script("load").main([*asked.split(), *more]) == 0
    measured = json.loads(told.read_text(encoding="utf-8"))["measured"]
    assert [(one["workers"], one["writes"]) for one in measured] == [
        ("threads", 0.0), ("threads", 0.5), ("processes", 0.0), ("processes", 0.5),
    ]  # fmt: skip
    assert all(one["hits_a_second"] > 0 and one["count"] == 2 for one in measured)
    assert all((one["stores_a_second"] > 0) == (one["writes"] > 0) for one in measured)
    assert drawn.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # starts processes
def test_scale_tells_every_figure_for_every_size(script: Any, tmp_path: Path) -> None:
    told, drawn = tmp_path / "scale.json", tmp_path / "scale.png"
    more = ["--json", str(told), "--picture", str(drawn), "--directory", str(tmp_path)]
    assert script("scale").main(["--sizes", "20", "40", "--tenants", "3", *more]) == 0
    measured = json.loads(told.read_text(encoding="utf-8"))["measured"]
    assert [(one["entries"], one["tenants"]) for one in measured] == [(20, 1), (40, 1), (70, 4)]
    assert all(one["disk_mb"] > 0 and one["template_ms"] > 0 for one in measured)
    assert drawn.read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow  # starts processes, and takes its time
def test_a_soak_with_kills_ends_in_a_clean_audit(script: Any, tmp_path: Path) -> None:
    told = tmp_path / "soak.json"
    asked = "--minutes 0.12 --rate 40 --workers 2 --kill-every 2.5 --entries 30"
    more = ["--json", str(told), "--directory", str(tmp_path)]
    assert script("soak").main([*asked.split(), *more]) == 0
    audit = json.loads(told.read_text(encoding="utf-8"))["audit"]
    assert (audit["clean"], audit["lost"], audit["wrong"], audit["problems"]) == (True, [], [], [])
    assert audit["acknowledged"] > 0


def test_the_audit_finds_what_was_lost_and_what_was_wrong(script: Any, tmp_path: Path) -> None:
    soak: ModuleType = script("soak")
    work = script("curves").Workload(30, 7)
    log = soak.Log(tmp_path / "log-0.jsonl")
    with soak.opened(tmp_path / "cache", soak.Timed()) as cache:
        for number in (1, 2):
            script("load").store(cache, work, number)
            log.say(stored=number)
    log.say(stored=3)  # acknowledged, and never written
    log.say(wrong=5, served={})
    store = DiskStore.open(tmp_path / "cache")
    record = store.scan("default")[0]
    store.put(type(record)(**{**{f: getattr(record, f) for f in record.__slots__}, "keys": ()}))
    store.close()
    found = soak.audit(tmp_path, work, kills=0, seconds=1.0)
    assert not found.clean
    assert found.lost == [3]
    assert [one["wrong"] for one in found.wrong] == [5]
    assert len(found.problems) == 1


def test_a_workload_has_a_plan_of_its_own_for_every_template(script: Any) -> None:
    work = script("curves").Workload(200_000, 7)
    numbers = (0, 99_999, 100_000, 199_999)
    assert len({work.prompt(n, 2024, 5) for n in numbers}) == len(numbers)
    assert len({json.dumps(work.plan(n, 2024, 5)) for n in numbers}) == len(numbers)
