"""Calling an operation: the only place where code behind a plan runs."""

import contextvars
import threading
import uuid
from collections.abc import Mapping

from semcache.canonical import MAX_DEPTH, Json, JsonObject, dumps, plain
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Call, Operation
from semcache.catching import Catching
from semcache.errors import (
    DeadlineExceeded,
    InputNeeded,
    InvalidJson,
    OperationFailed,
    OperationRefused,
    OutputTooLarge,
)
from semcache.ports import Limits
from semcache.runs.here import node as open_node


def call(
    operation: Operation,
    given: Json,
    *,
    catalog: Catalog,
    limits: Limits,
    timeout_s: float,
    node: str,
    key: str = "",
) -> Json:
    """Return what `operation` gives for the input `given`, as plain JSON of its own.

    It runs on a thread of its own, in a copy of the caller's context variables. One that is too
    late is left to end by itself: Python has no way to stop it. An operation that wants an
    idempotency key gets `key`, or one of its own if that is empty.

    Raises:
        OperationRefused: it was not called: it writes without leave, has no code, or the input is
            no object or breaks its schema.
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
            output = bounded(result, limits, what=what, node=node)
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
            f"{what} is a {type(values).__name__}; expected an object", node=node
        )
    if broken := catalog.violations(operation.name, values):
        told = "; ".join(map(str, broken[:5]))
        raise OperationRefused(f"{what} breaks its schema: {told}", node=node)
    return values


def _within(timeout_s: float, code: Call, values: JsonObject, name: str, node: str) -> object:
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


class _Attempt:
    """One call of foreign code on a thread of its own; keeps whatever it returns or raises."""

    def __init__(self, code: Call, values: JsonObject) -> None:
        self.result: object = None
        self._caught = Catching()
        self._code = code
        self._values = values
        self._context = contextvars.copy_context()
        # A daemon, so that an operation that hangs does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="semcache-operation", daemon=True)

    def ended_within(self, timeout_s: float) -> bool:
        """Start the call and return whether it ended in time."""
        self._thread.start()
        self._thread.join(min(max(timeout_s, 0), threading.TIMEOUT_MAX))
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        """What the code raised; the code is not ours, so it may be anything."""
        return self._caught.error

    def _run(self) -> None:
        with self._caught:
            self.result = self._context.run(self._code, self._values)


def bounded(value: object, limits: Limits, *, what: str, node: str) -> Json:
    """Return a plain copy of `value`, if its canonical JSON is within `limits.max_output_bytes`.

    A value too large is refused before it is copied: one that holds the same part over and over
    (`{"a": "$.x", "b": "$.x"}` in a loop) is small in memory and endless as text.

    Raises:
        OutputTooLarge: it is over the bound.
        InvalidJson: it is not JSON.
    """
    limit = limits.max_output_bytes
    if _at_least(value, {}) <= limit:
        copy = plain(value, what=what)
        if _size(copy, what) <= limit:
            return copy
    raise OutputTooLarge(f"{what} is over {limit:,} bytes of JSON", node=node)


def _size(value: Json, what: str) -> int:
    try:
        return len(dumps(value).encode())
    except ValueError as error:  # Python writes no integer of more than 4300 digits
        raise InvalidJson(f"{what} cannot be written as JSON: {error}") from error


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
