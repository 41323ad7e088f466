"""What the ablation takes out is there to be taken out."""

import contextlib
import importlib
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_each_part_of_matching_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    parts = importlib.import_module("ablation").PARTS
    assert len(parts) > 10
    for without in parts.values():
        with contextlib.ExitStack() as stack:
            without(stack)  # raises where what it replaces has another name by now
