import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> Iterator[Callable[[str], Any]]:
    """Import a script of benchmarks/ as `python` finds it; it is forgotten after the module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        before = set(sys.modules)
        yield import_module
        for name in set(sys.modules) - before:
            if getattr(sys.modules[name], "__file__", None) == str(BENCHMARKS / f"{name}.py"):
                del sys.modules[name]
