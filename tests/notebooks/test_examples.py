"""Every example runs offline, in a process of its own, and shows what it is about."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = {
    "example_07_loops": ("tickets of the day", "ticket 4", "model ask", "tokens: 512"),
    "example_08_tools": ("refused:", "'NodeOpened': 4", "by MCP: (12,", "'template'"),
    "example_09_reflection": (
        "✓ ask (retry 1)", "✓ load (retry 1)", "✓ execute (retry 1)", "decision plan",
        "made anew", "run: {'answer': 4}",
    ),
    "example_10_introspection": (
        '"depth": 2', '"output": [3, 1', "accepted: second opinion", "↻ look around",
        "outside: Not in workflow context",
    ),
}  # fmt: skip
"""Name → what it prints."""


def test_no_example_is_left_out() -> None:
    assert sorted(path.stem for path in (ROOT / "notebooks").glob("*.py")) == sorted(EXAMPLES)


# specs: B-7, B-8, B-11, B-12
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_and_shows_what_it_is_about(name: str, tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own example
        [sys.executable, "-W", "error", str(ROOT / "notebooks" / f"{name}.py")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HTTPS_PROXY": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert [part for part in EXAMPLES[name] if part not in done.stdout] == []
