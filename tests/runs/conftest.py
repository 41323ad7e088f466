from collections.abc import Callable
from typing import Any

import pytest

from semcache.runs.recorder import Runs
from semcache.runs.run_context import OpenRun
from semcache.testing import FakeClock


class Desk:
    """Runs, a clock, and what opens a run between them."""

    def __init__(self, **more: Any) -> None:
        self.clock = FakeClock()
        self.runs = Runs(**more)

    def run(self, name: str = "work", **more: Any) -> OpenRun:
        return OpenRun(name, home=self.runs, clock=self.clock, **more)


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def make_desk() -> Callable[..., Desk]:
    return Desk
