"""A plan that an engine runs: on a clock that stands still, heard by nobody, unless told."""

from dataclasses import fields
from typing import Any

from semcache import Catalog
from semcache.ports import Engine, Limits, Outcome
from semcache.testing import FakeClock, RecordingObserver

LIMITS = {field.name for field in fields(Limits)}


def executed(engine: Engine, plan: Any, catalog: Catalog, **more: Any) -> Outcome:
    """Return what a plan came to; `more` may hold limits, a clock, an observer and options."""
    limits = Limits(**{name: more.pop(name) for name in LIMITS & more.keys()})
    parts = {"limits": limits, "clock": FakeClock(), "observer": RecordingObserver(), **more}
    return engine.execute(plan, catalog=catalog, **parts)
