"""Whose fault it is that a plan failed: the plan's, the values', or nobody's for long."""

from collections.abc import Callable, Iterator
from typing import Literal

from semcache.canonical import Json, leaves
from semcache.errors import CompensationFailed, ExecutionError, InvalidPlan, OperationRefused
from semcache.plans.document import WrittenPlan
from semcache.plans.plan import ExecutionPlan
from semcache.runs.faults import HOPELESS, causes, fault_of

Blame = Literal["plan", "values", "passing", "nobody"]
"""`plan`: another plan may do it. `values`: the caller's own values will not do. `passing`: the
same plan may well work in a moment. `nobody`: none of these; the caller decides."""


def blame(
    error: Exception,
    plan: ExecutionPlan,
    given: Json,
    *,
    shown: Callable[[Json], Json] = lambda value: value,
) -> Blame:
    """Return whose fault `error` is; `given` is what the operation that failed was called with.

    `shown`: what became of a value before it stood in `given`, where some of it is redacted.

    Told by types and statuses. An operation that did not take a value is the value's fault only if
    it was one of the prompt's that it was given: what the plan itself made up is the plan's.
    """
    fault = fault_of(error)
    if fault in HOPELESS or isinstance(error, CompensationFailed):
        return "nobody"
    if fault in {"timeout", "passing"}:
        return "passing"
    if not isinstance(error, ExecutionError | InvalidPlan):
        return "nobody"
    about_values = fault == "input" or any(
        isinstance(cause, ValueError | OperationRefused) for cause in causes(error)
    )
    if (
        about_values
        and not isinstance(error, InvalidPlan)
        and _has(given, set(_bound(plan, shown)))
    ):
        return "values"
    return "plan"


def _bound(plan: ExecutionPlan, shown: Callable[[Json], Json]) -> Iterator[tuple[str, Json]]:
    """Yield the scalars of the prompt that stand in the plan."""
    if not isinstance(plan, WrittenPlan):
        return
    body = plan.to_dict()
    for pointer in plan.data:
        part: Json = body
        for step in pointer:
            if isinstance(part, dict):
                part = part[str(step)]
            elif isinstance(part, list):
                part = part[int(step)]
        yield from _scalars(shown(part))


def _has(given: Json, bound: set[tuple[str, Json]]) -> bool:
    return any(scalar in bound for scalar in _scalars(given))


def _scalars(value: Json) -> Iterator[tuple[str, Json]]:
    """Yield the leaves of a value with their types: 1 is not true."""
    for _, leaf in leaves(value):
        if isinstance(leaf, str | int | float):
            yield type(leaf).__name__, leaf
