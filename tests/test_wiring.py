import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import semcache
from semcache import Catalog, Operation, PlanCache, SemCache, Settings
from semcache.errors import InvalidSettings
from semcache.testing import HashEmbedder
from semcache.wiring import SystemClock

CATALOG = Catalog([Operation("list_orders", "List the orders.", {"type": "object"}, effect="read")])


def test_the_machines_clock_tells_time_and_never_runs_backwards() -> None:
    clock = SystemClock()
    assert clock.now() == pytest.approx(time.time(), abs=60)
    before = clock.monotonic()
    clock.sleep(0)
    assert clock.monotonic() >= before


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("catalog", None, "expected a Catalog"),
        ("settings", {"threshold": 0.9}, "expected Settings"),
        ("model", "gpt-x", "expected a Model such as"),
    ],
)
def test_a_semcache_is_told_what_it_lacks(name: str, part: Any, says: str) -> None:
    given: dict[str, Any] = {"catalog": CATALOG, "embedder": HashEmbedder(), name: part}
    with pytest.raises(InvalidSettings, match=says):
        SemCache.open(**given)


@pytest.mark.parametrize(
    ("name", "part", "says"),
    [
        ("catalog", {"operations": []}, "expected a Catalog"),
        ("embedder", "all-MiniLM-L6-v2", "expected an Embedder such as"),
        ("observer", 5, "something to call"),
        ("redact", "[email]", "a function from text to text"),
        ("verifier", print, "expected a Verifier"),
    ],
)
def test_a_part_of_another_kind_is_named_with_what_was_expected(
    name: str, part: Any, says: str
) -> None:
    given: dict[str, Any] = {"embedder": HashEmbedder(), name: part}
    with pytest.raises(InvalidSettings, match=f"{name} is .*{says}"):
        PlanCache.open(**given)
    with pytest.raises(InvalidSettings, match=f"{name} is .*{says}"):
        SemCache.open(**{"catalog": CATALOG, **given})


def test_a_directory_may_come_from_the_call_or_from_settings(tmp_path: Path) -> None:
    for directory, settings in (
        (tmp_path / "a", Settings()),
        (None, Settings(directory=tmp_path / "b")),
        (tmp_path / "c", Settings(directory=tmp_path / "never")),
    ):
        SemCache.open(
            directory, catalog=CATALOG, settings=settings, embedder=HashEmbedder()
        ).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "c"]


@pytest.mark.parametrize("bad", [{"max_entries": 0}, {"ttl_s": -1.0}, {"max_wrong": 2.0}])
def test_what_is_out_of_range_is_refused_before_anything_is_opened(
    bad: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(InvalidSettings, match=next(iter(bad))):
        PlanCache.open(tmp_path / "plans", **bad)
    assert not (tmp_path / "plans").exists()


HEAVY = (
    "torch",
    "sentence_transformers",
    "onnxruntime",
    "faiss",
    "openai",
)


@pytest.mark.parametrize(
    "code",
    [
        "import semcache",
        "from semcache import *",
        "from semcache import PlanCache; PlanCache.open()",
        "from semcache import Catalog, SemCache; SemCache.open(catalog=Catalog([]))",
    ],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code: str) -> None:
    check = f"import sys\n{code}\nprint([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(  # noqa: S603 - our own interpreter and code
        [sys.executable, "-c", check],
        cwd=Path(semcache.__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(Path(semcache.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("[]", "")
