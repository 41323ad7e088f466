"""The small benchmark scripts run, and measure what they say."""

import contextlib
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calling import calling

Run = Callable[..., int]


@pytest.fixture
def run(script: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a script with arguments, as the shell would; return its status."""

    def run(name: str, *arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        status: int = script(name).main()
        return status

    return run


def test_each_plan_format_is_timed_beside_a_call(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "engines.json"
    assert run("engines", "--steps", "3", "--json", str(out)) == 0
    measured = json.loads(out.read_text(encoding="utf-8"))
    assert {"routes", "tasks", "program", "call of an operation"} <= measured.keys()
    assert min(measured.values()) > 0


@pytest.mark.usefixtures("minilm")
def test_the_operations_shown_to_a_model_are_measured_on_a_stream(run: Run, tmp_path: Path) -> None:
    rows = [
        {"text": f"{said} in Oslo", "plan": {"call": {"input": {"template": template}}}}
        for said, template in (
            ("find me a museum", "Travel.FindMuseums(city)"),
            ("when does the tram leave", "Transit.GetTramTimes(city)"),
        )
    ]
    stream, out = tmp_path / "stream.jsonl", tmp_path / "operations.json"
    stream.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = (str(stream), "--operations", "60", "--json", str(out))
    assert run("operations", *arguments) == 0
    measured = json.loads(out.read_text(encoding="utf-8"))
    assert measured["operations"] == 60
    assert measured["words and meaning"]["found"]["5"] == 1.0
    assert measured["characters sent"]["40"] < measured["characters sent"]["all"]


def test_public_calls_are_planned_and_scored_without_a_model(run: Run, tmp_path: Path) -> None:
    rows = [
        {
            "id": str(i),
            "scope": scope,
            "text": text,
            "params": [{"name": name, "value": value, "text": value}],
            "plan": calling("x.call", template=template, args={name: value}),
        }
        for i, (scope, text, template, name, value) in enumerate(
            (
                ("Travel", "find museums in Oslo", "Travel.FindMuseums(city)", "city", "Oslo"),
                (
                    "Mail",
                    "forward the mail to Ann",
                    "Mail/Forward the mail to {name}",
                    "name",
                    "Ann",
                ),
            )
        )
    ]
    stream, out = tmp_path / "stream.jsonl", tmp_path / "planner.json"
    stream.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    assert run("planner", str(stream), "--json", str(out)) == 0
    given, foreign, text = json.loads(out.read_text(encoding="utf-8"))
    assert (given["rows"], given["right"], given["wrong"]) == (2, 2, 0)
    assert (foreign["catalog"], foreign["right"]) == ("foreign", 0)
    assert text["mode"] == "text"


def test_plans_over_a_large_catalog_are_timed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("planner", "--speed", "800") == 0
    told = capsys.readouterr().out
    assert "800 operations" in told
    assert "'list_invoices'" in told


def test_other_caches_are_asked_for_the_same_and_judged_by_the_plan(
    script: Any, tmp_path: Path
) -> None:
    peers = script("peers")
    embedder, templates = peers.Embedder(real=False), peers.shapes(60, random.Random(7))
    caches = {
        name: peers.PEERS[name](tmp_path / name, embedder) for name in ("semcache", "diskcache")
    }
    for cache in caches.values():
        peers.stored(cache, templates)
    found = peers.latencies(caches, templates, embedder, 8)
    for cache in caches.values():
        cache.close()
    asked = peers.ROUNDS * (peers.ASKED - 1)
    for kind in peers.KINDS:
        assert found["semcache"][kind]["right"] == asked, kind
        exact = asked if kind == "again" else 0
        assert found["diskcache"][kind]["right"] == exact
        assert found["diskcache"][kind]["missed"] == asked - exact


def test_indexes_are_measured_beside_an_exact_one(script: Any, tmp_path: Path) -> None:
    rows = np.random.default_rng(7).normal(size=(700, 384)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows / np.linalg.norm(rows, axis=1, keepdims=True))
    out = tmp_path / "indexes.json"
    indexes = script("indexes")
    assert indexes.main(["--vectors", str(tmp_path / "rows.npy"), "--json", str(out)]) == 0
    ways = {way["name"]: way for way in json.loads(out.read_text(encoding="utf-8"))["ways"]}
    assert ways["flat"]["recall"] == 1
    assert ways["ours"]["recall"] >= 0.999
    assert all(way["seconds"] > 0 for way in ways.values())


def test_each_part_of_matching_can_be_left_out(script: Any) -> None:
    parts = script("ablation").PARTS
    assert len(parts) > 10
    for without in parts.values():
        with contextlib.ExitStack() as stack:
            without(stack)  # raises where what it replaces has another name by now
