"""The benchmarks of load, scale and soak run, at sizes that say nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from semcache import Parameter


@pytest.mark.slow  # starts processes
def test_load_tells_what_threads_and_processes_did(script: Any, tmp_path: Path) -> None:
    told, drawn = tmp_path / "load.json", tmp_path / "load.png"
    asked = "--entries 20 --counts 2 --seconds 0.2 --writes 0.5 --rounds 2 --served 9"
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
def test_a_soak_with_faults_ends_in_a_clean_audit(script: Any, tmp_path: Path) -> None:
    told = tmp_path / "soak.json"
    asked = "--minutes 0.2 --rate 40 --workers 2 --fault-every 1.5 --entries 30"
    more = ["--json", str(told), "--directory", str(tmp_path)]
    assert script("soak").main([*asked.split(), *more]) == 0
    (audit,) = json.loads(told.read_text(encoding="utf-8"))["audit"]
    assert (audit["clean"], audit["lost"], audit["wrong"], audit["problems"]) == (True, [], [], [])
    assert audit["acknowledged"] > 0


def test_the_audit_finds_what_was_lost_and_what_was_wrong(script: Any, tmp_path: Path) -> None:
    soak: Any = script("soak")
    worker: Any = script("soak_worker")
    work = script("curves").Workload(30, 7)
    place = soak.SoakedStore("disk", tmp_path)
    log = worker.Log(tmp_path / "log-0.jsonl")
    params = [Parameter("year", 2024, mention="2024"), Parameter("limit", 5, mention="5")]
    with worker.opened(tmp_path, "") as cache:
        for tenant, number, wrong in (("a", 1, False), ("a", 2, False), ("corrected", 4, True)):
            plan = worker.planned(work, tenant, number, 2024, 5, wrong=wrong)
            cache.store(work.prompt(number, 2024, 5), plan, params=params, tenant=tenant)
            log.say(stored=number, tenant=tenant)
    log.say(stored=3, tenant="a")  # acknowledged, and never written
    log.say(wrong=5, served={})
    log.say(corrected=4, at=10.0, pending=False, by=1, how="feedback")
    log.say(stale=4, start=9.0, by=2)  # before it was corrected
    log.say(stale=4, start=11.0, by=2)
    store = place.plain()
    record = store.scan("a")[0]
    store.put(type(record)(**{**{f: getattr(record, f) for f in record.__slots__}, "keys": ()}))
    store.close()
    found = soak.audit(place, work, seconds=1.0)
    assert not found.clean
    assert found.lost == [("a", 3)]
    assert [one["wrong"] for one in found.wrong] == [5, 4]
    assert [one.get("start") for one in found.after_correction] == [11.0, None]
    assert len(found.problems) == 1


def test_a_workload_has_a_plan_of_its_own_for_every_template(script: Any) -> None:
    work = script("curves").Workload(200_000, 7)
    numbers = (0, 99_999, 100_000, 199_999)
    assert len({work.prompt(n, 2024, 5) for n in numbers}) == len(numbers)
    assert len({json.dumps(work.plan(n, 2024, 5)) for n in numbers}) == len(numbers)
