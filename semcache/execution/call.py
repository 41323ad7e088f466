"""Calling an operation, the only place where code behind a plan runs, and what a run may use up."""

import asyncio
import contextvars
import inspect
import threading
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future

from semcache.canonical import MAX_DEPTH, Json, JsonObject, dumps, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Call, Operation
from semcache.errors import (
    DeadlineExceeded,
    InputNeeded,
    InvalidJson,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
)
from semcache.ports import Clock, Limits
from semcache.process.forks import ErrorCapture
from semcache.runs.run_context import LOOP
from semcache.runs.run_context import node as open_node

RESULTS = 8
"""Results of the largest size that one run may hold together: 80 MB of JSON by default, of which
Python makes up to 500 MB of objects."""


class Budget:
    """Counts from when it is made. Safe from several threads."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._deadline_s = clock.monotonic() + limits.timeout_s
        self._lock = threading.Lock()
        self._held = 0

    def left_s(self) -> float:
        """Return how many seconds the run has left; 0 or less if none."""
        return self._deadline_s - self._clock.monotonic()

    def call_s(self) -> float:
        """Return how many seconds a call may take now."""
        return min(self._limits.call_timeout_s, self.left_s())

    def check(self, node: str, *, at: str, what: str = "plan") -> None:
        """Raise `DeadlineExceeded` if no time is left for `node`."""
        if self.left_s() <= 0:
            raise DeadlineExceeded(
                f"the {what} had no answer after {self._limits.timeout_s:g} s; {at}", node=node
            )

    def hold(self, size: int, *, what: str, node: str) -> None:
        """Count the bytes of a result that the run keeps to its end.

        Raises:
            OutputTooLarge: all that it keeps is over eight results of the largest size.
        """
        bound = RESULTS * self._limits.max_output_bytes
        with self._lock:
            self._held += size
            over = self._held > bound
        if over:
            raise OutputTooLarge(
                f"with {what} the results of this run are over {bound:,} bytes of JSON", node=node
            )


def bounded(
    value: object, limits: Limits, *, what: str, node: str, budget: Budget | None = None
) -> Json:
    """Return a plain copy of `value`, if its canonical JSON is within `limits.max_output_bytes`.

    A value too large is refused before it is copied: one that holds the same part over and over
    (`{"a": "$.x", "b": "$.x"}` in a loop) is small in memory and endless as text. `budget`: counts
    what the run keeps.

    Raises:
        OutputTooLarge: it is over the bound, or all results of the run are over theirs.
        InvalidJson: it is not JSON.
    """
    limit = limits.max_output_bytes
    if _at_least(value, {}) <= limit:
        copy = plain(value, what=what)
        size = _size(copy, what)
        if size <= limit:
            if budget is not None:
                budget.hold(size, what=what, node=node)
            return copy
    raise OutputTooLarge(f"{what} is over {limit:,} bytes of JSON", node=node)


def _size(value: Json, what: str) -> int:
    try:
        return len(dumps(value).encode())
    except InvalidJson as error:  # Python writes no integer of more than 4300 digits
        raise InvalidJson(f"{what}: {error}") from error


def _at_least(value: object, known: dict[int, int], depth: int = 0) -> int:
    """Return a lower bound of the bytes of `value` as JSON; each shared part is counted once."""
    if isinstance(value, str):
        return len(value) + 2
    if not isinstance(value, (Mapping, list, tuple)):
        return 1
    if id(value) in known or depth > MAX_DEPTH:
        return known.get(id(value), 1)
    known[id(value)] = 1  # where a cycle closes; what is cyclic or too deep is refused later
    inner = [*value.keys(), *value.values()] if isinstance(value, Mapping) else value
    size = 1 + len(inner) + sum(_at_least(item, known, depth + 1) for item in inner)
    known[id(value)] = size
    return size


# The call.

MAX_LATE = 8
"""Calls of one operation that may still run after their timeout, each on a thread that cannot be
stopped: as many as a plan of tasks starts at the same time by default."""

MAX_LATE_IN_ALL = 256
"""Such calls of all operations together: each thread takes memory, and no more than the system has.
"""


def call(
    operation: Operation,
    given: Json,
    *,
    catalog: Catalog,
    limits: Limits,
    timeout_s: float,
    node: str,
    key: str = "",
    budget: Budget | None = None,
) -> Json:
    """Return what `operation` gives for the input `given`, as plain JSON of its own.

    It runs on a thread of its own, in a copy of the caller's context variables; what an `async def`
    gives is awaited, on the loop of an async caller or one of its own. One that is too late is left
    to end by itself, where it is no coroutine: Python has no way to stop a thread. An operation
    that wants an idempotency key gets `key`, or one of its own if that is empty. `budget` counts
    what the run keeps.

    Raises:
        OperationRefused: it was not called: it writes without leave, has no code, too many late
            calls of it still run, or the input is no object or breaks its schema.
        OperationFailed: it raised (the cause is kept), or gave what is not JSON.
        DeadlineExceeded: no answer within `timeout_s`.
        OutputTooLarge: input or output is over the bound.
        InputNeeded: it asks a person who has not answered yet.
    """
    with open_node(node, "operation", given=given) as opened:
        opened.note(operation=operation.name, effect=operation.effect)
        code = _permitted(operation, limits, node)
        values = _accepted(operation, given, catalog, limits, node)
        if operation.idempotency_key is not None:
            values[operation.idempotency_key] = key or uuid.uuid4().hex
        if operation.effect == "write" and not (operation.idempotency_key and key):
            opened.wrote(operation.name)
        result = _within(timeout_s, code, values, operation.name, node)
        try:
            what = f"the output of operation {operation.name!r}"
            output = bounded(result, limits, what=what, node=node, budget=budget)
        except InvalidJson as error:
            raise OperationFailed(str(error), node=node) from error
        opened.gave(output)
        return output


def _permitted(operation: Operation, limits: Limits, node: str) -> Call:
    if operation.effect == "write" and not limits.allow_writes:
        raise OperationRefused(
            f"operation {operation.name!r} writes, and writes are not allowed here; "
            "pass `Limits(allow_writes=True)` or declare the effect `read`",
            node=node,
        )
    if operation.call is None:
        raise OperationRefused(
            f"operation {operation.name!r} has no code behind it; its catalog only describes it",
            node=node,
        )
    return operation.call


def _accepted(
    operation: Operation, given: Json, catalog: Catalog, limits: Limits, node: str
) -> JsonObject:
    """Return a copy of the input that the operation may keep and change."""
    what = f"the input of operation {operation.name!r}"
    try:
        values = bounded({} if given is None else given, limits, what=what, node=node)
    except InvalidJson as error:
        raise OperationRefused(str(error), node=node) from error
    if not isinstance(values, dict):
        raise OperationRefused(
            f"{what} is of type {type(values).__name__}; expected an object", node=node
        )
    if broken := catalog.violations(operation.name, values):
        told = "; ".join(map(str, broken[:5]))
        raise OperationRefused(f"{what} breaks its schema: {told}", node=node)
    return values


def _within(timeout_s: float, code: Call, values: JsonObject, name: str, node: str) -> object:
    own, late = _LATE.of(code), _LATE.in_all()
    if own >= MAX_LATE or late >= MAX_LATE_IN_ALL:
        which = f"{own} calls of it" if own >= MAX_LATE else f"{late} calls of operations"
        raise OperationRefused(
            f"operation {name!r} is not called: {which} that were too late still run; give it a "
            "timeout of its own",
            node=node,
        )
    attempt = _Attempt(code, values)
    if not attempt.ended_within(timeout_s):
        raise DeadlineExceeded(
            f"operation {name!r} gave no answer within {timeout_s:g} s", node=node
        )
    error = attempt.error
    if isinstance(error, (OperationRefused, OutputTooLarge)):
        raise type(error)(str(error), node=node) from error
    if isinstance(error, InputNeeded):
        raise InputNeeded(str(error), question=error.question, node=node) from error
    if error is not None:
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise OperationFailed(f"operation {name!r} failed: {told}", node=node) from error
    return attempt.result


class _LateCalls:
    """How many calls of each operation still run although nobody waits. Safe from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[int] = Counter()

    def of(self, code: Call) -> int:
        """Return how many late calls of `code` still run."""
        return self._counts[id(code)]

    def in_all(self) -> int:
        """Return how many late calls still run."""
        with self._lock:
            return self._counts.total()

    def add(self, code: Call, count: int) -> None:
        """Count a call of `code` that is late (1), or such a one that ended (-1).

        By identity: the thread that runs `code` keeps it alive for as long as it counts.
        """
        with self._lock:
            self._counts[id(code)] += count
            if not self._counts[id(code)]:
                del self._counts[id(code)]


_LATE = _LateCalls()


class _Attempt:
    """One call of foreign code on a thread of its own; keeps whatever it returns or raises."""

    def __init__(self, code: Call, values: JsonObject) -> None:
        self.result: object = None
        self._caught = ErrorCapture()
        self._code = code
        self._values = values
        self._context = contextvars.copy_context()
        self._lock = threading.Lock()
        self._late = self._ended = False
        self._awaited: Future[object] | None = None
        # A daemon, so that an operation that hangs does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="semcache-operation", daemon=True)

    def ended_within(self, timeout_s: float) -> bool:
        """Start the call and return whether it ended in time."""
        self._thread.start()
        self._thread.join(min(max(timeout_s, 0), threading.TIMEOUT_MAX))
        with self._lock:
            if self._ended:
                return True
            self._late = True
            _LATE.add(self._code, 1)
        if self._awaited is not None:
            self._awaited.cancel()
        return False

    @property
    def error(self) -> BaseException | None:
        """What the code raised; the code is not ours, so it may be anything."""
        return self._caught.error

    def _run(self) -> None:
        with self._caught:
            self.result = self._context.run(self._called)
        with self._lock:
            self._ended = True
            if self._late:
                _LATE.add(self._code, -1)

    def _called(self) -> object:
        given = self._code(self._values)
        if not inspect.iscoroutine(given):
            return given
        loop = LOOP.get()
        if loop is None or not loop.is_running():
            return asyncio.run(given)
        # What the coroutine asks of us in turn must not wait for the loop that it stands on.
        LOOP.set(None)
        self._awaited = asyncio.run_coroutine_threadsafe(given, loop)
        if self._late:
            self._awaited.cancel()
        return self._awaited.result()
