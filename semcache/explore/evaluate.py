"""Evaluate: replay a stream, or one's own log, against a cold cache and report on every lookup."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Found, Hit
from semcache.canonical import JsonObject, as_object
from semcache.errors import (
    BindingError,
    InvalidInput,
    InvalidParameter,
    InvalidPlan,
    InvalidPrompt,
    InvalidStream,
    NotActionable,
)
from semcache.explore.replayed_lookup import Fault, Outcome, ReplayedLookup
from semcache.explore.report import Report
from semcache.explore.score import ReplayedRow, is_right, replayed
from semcache.explore.streams import Row, check_count, read_log, read_stream, rows_in
from semcache.ports import Embedder


class OpenCache(Protocol):
    """Makes a cold cache, as `PlanCache.open` does; `functools.partial` adds a catalog."""

    def __call__(
        self,
        *,
        threshold: float,
        max_wrong: float | None,
        embedder: Embedder | None,
        ttl_s: float | None,
        max_entries: int | None,
    ) -> PlanCache:
        """Return a cache without entries."""


Progress: TypeAlias = Callable[[int, int], object]
"""Told how many rows were replayed, and of how many."""


def evaluate(
    rows: str | Path | Iterable[Row],
    *,
    given: bool = False,
    log: bool = False,
    threshold: float = 0.95,
    max_wrong: float | None = None,
    embedder: Embedder | None = None,
    open_cache: OpenCache = PlanCache.open,
    limit: int | None = None,
    name: str = "",
    progress: Progress | None = None,
) -> Report:
    """Return how well a cold cache serves `rows`, looked up in order and stored after each miss.

    `rows`: a stream's path, or rows. `log`: read the path as a log of prompts and plans. `given`:
    hand each lookup its parameters' values, as a caller with structured values does. `embedder`:
    None for the packaged one. `limit`: only so many rows.

    Raises:
        InvalidStream: the path cannot be read as a stream or log, or a row's plan or parameters
            cannot be used.
        InvalidInput: there are no rows, something else is among them, `limit` is under 1, or
            `open_cache` gave a cache that has entries.
        InvalidSettings: `threshold` or `max_wrong` is out of range.
    """
    read, called = rows_of(rows, log=log, limit=limit)
    cache = open_cache(
        threshold=threshold,
        max_wrong=max_wrong,
        embedder=embedder,
        # A replay asks in minutes what a service is asked in months; nothing may be lost meanwhile.
        ttl_s=None,
        max_entries=None,
    )
    if cache.tenants():
        raise InvalidInput(
            f"the cache has entries of {cache.tenants()[0]!r}; a replay needs a cold one"
        )
    replay = _Replay(cache, given=given)
    lookups: list[ReplayedLookup] = []
    for lookup in replay.run(_without_ignored(read, cache)):
        lookups.append(lookup)
        if progress is not None:
            progress(len(lookups), len(read))
    return Report(
        name=name or called,
        given=given,
        setup={
            "threshold": threshold,
            "max_wrong": max_wrong,
            "embedder": cache.embedder.fingerprint,
        },
        lookups=tuple(lookups),
        unstored=tuple(replay.unstored),
        cache=cache,
    )


def _without_ignored(rows: Iterable[Row], cache: PlanCache) -> Iterator[Row]:
    for row in rows:
        plan = None if row.plan is None else as_object(cache.without_ignored(row.plan))
        yield replace(row, plan=plan)


def rows_of(
    rows: str | Path | Iterable[Row], *, log: bool = False, limit: int | None = None
) -> tuple[tuple[Row, ...], str]:
    """Return the rows that `rows` names or is, at most `limit`, and what to call them.

    Raises:
        InvalidStream: the path cannot be read as a stream or log.
        InvalidInput: there are no rows, something else is among them, or `limit` is under 1.
    """
    check_count("limit", limit)
    if isinstance(rows, str | Path):
        read = read_log if log else read_stream
        return read(rows, limit=limit), Path(rows).stem
    return rows_in(rows)[:limit], "rows"


@dataclass(frozen=True, slots=True)
class _Answer:
    found: Found | None
    refused: str = ""

    @property
    def plan(self) -> JsonObject | None:
        return self.found.plan.to_dict() if isinstance(self.found, Hit) else None


@dataclass(slots=True, kw_only=True)
class _Replay:
    """A replay on its way: the cache, and the shape of what it stored under which id."""

    cache: PlanCache = field(kw_only=False)
    given: bool
    shapes: dict[tuple[str, str], str | None] = field(default_factory=dict)
    unstored: list[tuple[str, str]] = field(default_factory=list)

    def run(self, rows: Iterable[Row]) -> Iterable[ReplayedLookup]:
        steps = replayed(rows, lookup=self.lookup, served=lambda a: a.plan, store=self.store)
        return map(self.judged, steps)

    def lookup(self, row: Row) -> _Answer:
        params = row.values if self.given else None
        try:
            return _Answer(self.cache.lookup(row.text, tenant=row.scope, params=params))
        except InvalidInput as error:  # a stream may hold a blank prompt; nothing can be served
            return _Answer(None, refused=type(error).__name__)

    def store(self, row: Row) -> None:
        try:
            stored = self.cache.store(row.text, row.plan or {}, params=row.params, tenant=row.scope)
        except (InvalidPlan, InvalidParameter) as error:
            raise InvalidStream(f"row {row.id!r} of {row.scope!r}: {error}") from error
        except (InvalidPrompt, NotActionable, BindingError) as error:
            # Such a plan is made afresh each time; the replay goes on as a service would.
            self.unstored.append((row.id, str(error)))
            return
        if stored:
            self.shapes[row.scope, stored.id] = row.shape
        else:
            self.unstored.append((row.id, stored.reason))

    def judged(self, step: ReplayedRow[_Answer]) -> ReplayedLookup:
        outcome, fault = self.outcome(step)
        found = step.answer.found
        candidates = found.trace.candidates if found is not None else ()
        return ReplayedLookup(
            row=step.row,
            found=found,
            shape=step.shape,
            servable=step.servable,
            outcome=outcome,
            fault=fault,
            same=tuple(self.same(step, candidate.entry) for candidate in candidates),
            refused=step.answer.refused,
        )

    def same(self, step: ReplayedRow[_Answer], entry: str) -> bool | None:
        shape = self.shapes.get((step.row.scope, entry))
        return None if shape is None else shape == step.shape

    def outcome(self, step: ReplayedRow[_Answer]) -> tuple[Outcome, Fault]:
        plan, hit = step.answer.plan, step.answer.found
        if plan is None or not isinstance(hit, Hit):
            return "missed", ""
        if is_right(plan, step.row.plan):
            return "right", ""
        if step.shape is None:
            return "wrong", "must miss"
        return "wrong", "values" if self.same(step, hit.entry) else "plan"
