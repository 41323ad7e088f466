"""Which plans failed lately, so that a broken one is not run again and again, and not for ever."""

import hashlib
from dataclasses import dataclass

from pydantic import TypeAdapter

from semcache.errors import PlanSuspended
from semcache.planners.note_store import rows_of
from semcache.ports import Clock, PlanStore

SHARDS = 16
"""Notes that the failures of a tenant are spread over: each stays small and quick to read."""
MAX_KEYS = 64
"""Keys in one note; the one that failed longest ago makes room."""
MAX_ERROR = 500
"""Characters of an error that are kept."""
PATIENCE = 3
"""Failures in a row before a plan is suspended."""
FIRST_S = 1.0
"""Seconds of back-off after one failure; each further one doubles them."""
LONGEST_S = 300.0
"""Seconds of back-off at most."""
FORGET_S = 24 * 3600.0
"""Seconds after the last failure until it is forgotten."""


@dataclass(frozen=True, slots=True)
class Failure:
    """How a plan failed, up to now."""

    attempts: int
    """Failures since the last success; at least 1."""
    last_error: str
    """What the last one said, at most 500 characters."""
    failed_s: float
    """Epoch seconds of the last one."""
    retry_at_s: float
    """Epoch seconds after which the plan may be tried again."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A failure as a note keeps it."""

    attempts: int
    last_error: str
    failed_s: float


_NOTE = TypeAdapter(dict[str, _Row])


class FailureMemory:
    """Remembers failed plans by tenant and key, in the notes of a store. Safe from several threads.

    The first failures cost nothing. From the third in a row on, a plan is suspended: 4 seconds,
    then twice as long each time, 5 minutes at most. A success forgets all, and so does a day
    without a failure. Every method may raise `StoreUnavailable`.
    """

    def __init__(self, store: PlanStore, clock: Clock) -> None:
        """Keep where failures are kept, and what time it is; nothing is read yet."""
        self._store = store
        self._clock = clock

    def get(self, tenant: str, key: str) -> Failure | None:
        """Return how the plan of `key` failed; None if it did not, or is forgotten."""
        row = _rows(self._store.get_note(tenant, _note_name(key))).get(key)
        return self._failure(row) if row is not None and self._remembered(row) else None

    def check(self, tenant: str, key: str) -> None:
        """Return if the plan of `key` may be run.

        Raises:
            PlanSuspended: it failed too often; the error says when it may be tried again.
        """
        failure = self.get(tenant, key)
        if failure is None:
            return
        left = failure.retry_at_s - self._clock.now()
        # A clock that was set back would suspend the plan for as long as it was wrong.
        if 0 < left <= LONGEST_S:
            raise PlanSuspended(
                f"the plan for {key!r} failed {failure.attempts} times and is not tried for "
                f"another {left:.0f} s; last error: {failure.last_error}",
                retry_at_s=failure.retry_at_s,
            )

    def failed(self, tenant: str, key: str, error: str) -> Failure:
        """Remember that the plan of `key` failed, and return how often it did."""
        now = self._clock.now()
        # What an operation says may hold anything; a note is valid Unicode.
        said = error[:MAX_ERROR].encode("utf-8", "replace").decode()
        kept: list[_Row] = []

        def add(note: str | None) -> str:
            rows = {name: row for name, row in _rows(note).items() if self._remembered(row)}
            before = rows.pop(key, None)
            attempts = before.attempts + 1 if before is not None else 1
            rows[key] = _Row(attempts=attempts, last_error=said, failed_s=now)
            kept[:] = [rows[key]]
            newest = dict(list(rows.items())[-MAX_KEYS:])
            return _NOTE.dump_json(newest).decode()

        self._store.update_note(tenant, _note_name(key), add)
        return self._failure(kept[0])

    def succeeded(self, tenant: str, key: str) -> None:
        """Forget the failures of `key`. Writes only if there are any."""
        name = _note_name(key)
        if key not in _rows(self._store.get_note(tenant, name)):
            return

        def drop(note: str | None) -> str | None:
            rows = _rows(note)
            rows.pop(key, None)
            return _NOTE.dump_json(rows).decode() if rows else None

        self._store.update_note(tenant, name, drop)

    def _failure(self, row: _Row) -> Failure:
        attempts, failed_s = row.attempts, row.failed_s
        wait_s = self._wait_s(attempts) if attempts >= PATIENCE else 0.0
        return Failure(attempts, row.last_error, failed_s, failed_s + wait_s)

    def _wait_s(self, attempts: int) -> float:
        # 2 ** 64 s is over every bound; beyond it the power would only overflow.
        return float(min(LONGEST_S, FIRST_S * 2 ** min(attempts - 1, 64)))

    def _remembered(self, row: _Row) -> bool:
        return abs(self._clock.now() - row.failed_s) < FORGET_S  # clocks may be set back


def _note_name(key: str) -> str:
    return f"failures:{hashlib.sha256(key.encode()).digest()[0] % SHARDS:x}"


def _rows(note: str | None) -> dict[str, _Row]:
    """Return the failures in a note, the oldest first; none if it cannot be read."""
    # Forgetting failures costs one more failing run; refusing to run would cost all of them.
    return rows_of(note, _NOTE, "what failed")
