"""From JSON to a plan of the right format. A new format is one line of `FORMATS`.

Beside it stand a file in `plans/` that reads the format, one in `execution/` that runs it and has
its line in `wiring`, and one `format_<name>.md` for planners. Binding works on any JSON; which
places of a format hold values, and not the plan itself, is said in `binding.leaves`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from semcache.canonical import Json, JsonObject, Pointer
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPlan
from semcache.plans.document import DocumentPlan, ExecutionPlan, dumped, enclosed, read_value
from semcache.plans.finding import Finding
from semcache.plans.program import ProgramPlan, is_program, wrapped
from semcache.plans.program_checks import check_program, check_program_values
from semcache.plans.routes import START, RoutePlan, check_route_values, check_routes
from semcache.plans.task_checks import check_task_values, check_tasks
from semcache.plans.tasks import (
    TaskPlan,
    is_tasks,
    spelled_tasks,
)

PlanSource: TypeAlias = Mapping[str, object] | Sequence[object] | str | ExecutionPlan
"""A plan as callers have it: JSON, its text, models of SDKs, or a plan of ours; see `decode`."""


P = TypeVar("P", bound=ExecutionPlan)


@dataclass(frozen=True, slots=True)
class Format(Generic[P]):
    """How plans of one format are recognized, made and checked."""

    name: str
    recognizes: Callable[[JsonObject], bool]
    make: Callable[[JsonObject, frozenset[Pointer]], P]
    """From plain JSON that nobody else holds, and the places of bound data."""
    check: Callable[[P, Catalog | None], tuple[Finding, ...]]
    check_values: Callable[[P, Catalog | None], tuple[Finding, ...]]
    """What bound values can have made wrong in a plan whose template passed `check`."""


FORMATS: tuple[Format[Any], ...] = (
    Format("routes", lambda plan: START in plan, RoutePlan, check_routes, check_route_values),
    Format("tasks", is_tasks, TaskPlan, check_tasks, check_task_values),
    Format("program", is_program, ProgramPlan, check_program, check_program_values),
)
"""The formats that are understood, in the order in which they are tried."""


def decode(
    source: object,
    *,
    data: frozenset[Pointer] = frozenset(),
) -> ExecutionPlan:
    """Return the plan that `source` describes: an object, its JSON text, or a plan as it is.

    A bare list of instructions is the program `{"instructions": [...]}`; another list of objects,
    such as tool calls, is kept as it is. Models of SDKs (OpenAI, Anthropic, LangChain) may stand
    for the objects that they dump. `data` are the places of bound values, which no engine reads as
    anything but values.

    Raises:
        InvalidPlan: it is not JSON, or neither an object nor a list of objects.
    """
    if isinstance(source, ExecutionPlan):
        return source
    source = dumped(source)
    if not isinstance(source, (str, Mapping, list)):
        raise InvalidPlan(
            f"the plan is of type {type(source).__name__}; "
            "expected a JSON object, its text, or a plan"
        )
    return adopt(_object(read_value(source)), data)


def _object(value: Json) -> JsonObject:
    body = wrapped(value)
    if isinstance(body, dict) and (body is value or is_program(body)):
        return body
    body = enclosed(value)
    if not isinstance(body, dict):
        raise InvalidPlan(
            f"the plan is of type {type(value).__name__}; expected a JSON object or a list of "
            'objects; a text such as SQL goes into an object: {"sql": "..."}'
        )
    return body


def adopt(body: JsonObject, data: frozenset[Pointer] = frozenset()) -> ExecutionPlan:
    """Return the plan that `body` is, without a copy: it must be plain JSON that nobody changes."""
    for known in FORMATS:
        if known.recognizes(body):
            plan: ExecutionPlan = known.make(body, data)
            return plan
    return DocumentPlan(body, data)


MAKERS: Mapping[str, Callable[[JsonObject, frozenset[Pointer]], ExecutionPlan]] = {
    **{known.name: known.make for known in FORMATS},
    DocumentPlan.format: DocumentPlan,
}
"""Name of a format → what makes a plan of it, without a look at the JSON."""


def not_actionable(plan: ExecutionPlan) -> str | None:
    """Return why the planner says that this cannot be done; None for a plan that does something.

    That is orra's convention: tasks `task0` and `{"id": "final", "input": {"error": why}}`.
    """
    return plan.refusal() if isinstance(plan, TaskPlan) else None


def spelled(plan: ExecutionPlan, catalog: Catalog | None) -> ExecutionPlan:
    """Return `plan` with the names of its operations spelled as in `catalog`.

    Only the tasks format forgives a difference: its services have no case.
    """
    if catalog is None or not isinstance(plan, TaskPlan):
        return plan
    return spelled_tasks(plan, catalog)


# Everything that is wrong with a plan, found at once and without running it.

MAX_TOLD = 10  # findings in one message; the error carries all of them


def check(plan: ExecutionPlan, catalog: Catalog | None = None) -> tuple[Finding, ...]:
    """Return all findings on `plan`, in document order; none for a format without rules.

    With a catalog, also unknown operations and literal inputs that break their schema.
    """
    known = _format(plan)
    return known.check(plan, catalog) if known else ()


def check_values(plan: ExecutionPlan, catalog: Catalog | None = None) -> tuple[Finding, ...]:
    """Return what the values bound to `plan` have made wrong; a tenth of the cost of `check`.

    Enough for a plan whose template passed `check` against operations of the same fingerprints.
    """
    known = _format(plan)
    return known.check_values(plan, catalog) if known else ()


def _format(plan: ExecutionPlan) -> Format[Any] | None:
    return next((known for known in FORMATS if known.name == plan.format), None)


def refuse(findings: tuple[Finding, ...]) -> None:
    """Return if there are no findings.

    Raises:
        InvalidPlan: there are; the message tells the first ten, the error carries all.
    """
    if not findings:
        return
    told = "; ".join(map(str, findings[:MAX_TOLD]))
    more = f"; and {len(findings) - MAX_TOLD} more" if len(findings) > MAX_TOLD else ""
    raise InvalidPlan(f"the plan cannot run: {told}{more}", [str(finding) for finding in findings])
