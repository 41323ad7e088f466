"""Warm: a cache filled from prompts and plans that somebody has already."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from semcache.cache.plan_cache import PlanCache
from semcache.cache.query import path_of
from semcache.errors import (
    BindingError,
    InvalidInput,
    InvalidStream,
    NotActionable,
    StoreUnavailable,
)
from semcache.explore.streams import Row, lines_of, object_of, rows_from


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that was left out."""

    number: int
    """Counted from 1."""
    why: str


@dataclass(frozen=True, slots=True)
class Warmed:
    """What warming a cache did."""

    stored: int
    """Lines whose plan was stored; several may have gone into one entry."""
    without_plan: int
    """Lines that say that there is no plan."""
    bad: tuple[BadLine, ...]
    """Lines that could not be used; all others were."""


def warm(
    cache: PlanCache,
    path: str | Path,
    *,
    tenant: str | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Warmed:
    """Store the plan of each line of a JSONL file; a bad line costs nothing but itself.

    A line has `prompt` (or `text`), `plan` and, if it likes, `params` (name → value, or a list of
    `{"name", "value", "text"}`) and `tenant` (or `scope`). `tenant`: whose all of them are; None:
    as the lines say, else `default`. `progress`: told how many lines are done, and of how many.
    Cost: one embedding a line.

    Raises:
        InvalidStream: the file cannot be read, is not text, or is empty.
    """
    stored = without_plan = 0
    bad: list[BadLine] = []
    lines = [*lines_of(path_of(path))]
    for done, (number, line) in enumerate(lines, start=1):
        if progress is not None:
            progress(done, len(lines))
        try:
            row = _row(line)
            if row.plan is None:
                without_plan += 1
                continue
            _store(cache, row, tenant or row.scope)
            stored += 1
        except (InvalidInput, BindingError, NotActionable, StoreUnavailable) as error:
            bad.append(BadLine(number, str(error)))
    return Warmed(stored, without_plan, tuple(bad))


def _row(line: bytes) -> Row:
    try:
        return rows_from([object_of(line)])[0]
    except InvalidStream as error:
        raise InvalidStream(str(error).removeprefix("record 1: ")) from error


def _store(cache: PlanCache, row: Row, tenant: str) -> None:
    assert row.plan is not None  # noqa: S101 - the caller looked
    kept = cache.store(row.text, row.plan, params=row.params, tenant=tenant, planner="warm")
    if not kept:
        raise InvalidInput(f"the plan cannot be reused: {kept.reason}")
