"""From JSON to a plan of the right format. A new format is one line of `FORMATS`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from semcache.canonical import Json, JsonObject, Pointer, dumps
from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPlan
from semcache.plans.document import DocumentPlan, read_object
from semcache.plans.finding import Finding
from semcache.plans.plan import ExecutionPlan
from semcache.plans.route_checks import check_route_values, check_routes
from semcache.plans.routes import START, RoutePlan


@dataclass(frozen=True, slots=True)
class Format:
    """How plans of one format are recognized, made and checked."""

    name: str
    recognizes: Callable[[JsonObject], bool]
    make: Callable[[JsonObject, frozenset[Pointer]], ExecutionPlan]
    """From plain JSON that nobody else holds, and the places of bound data."""
    check: Callable[[ExecutionPlan, Catalog | None], tuple[Finding, ...]]
    check_values: Callable[[ExecutionPlan, Catalog | None], tuple[Finding, ...]]
    """What bound values can have made wrong in a plan whose template passed `check`."""


FORMATS: tuple[Format, ...] = (
    Format("routes", lambda plan: START in plan, RoutePlan, check_routes, check_route_values),
)
"""The formats that are understood, in the order in which they are tried."""


def decode(
    source: object,
    *,
    data: frozenset[Pointer] = frozenset(),
) -> ExecutionPlan:
    """Return the plan that `source` describes: an object, its JSON text, or a plan as it is.

    `data` are the places of bound values, which no engine reads as anything but values.

    Raises:
        InvalidPlan: it is not JSON, or not an object.
    """
    if isinstance(source, ExecutionPlan):
        return source
    if not isinstance(source, (str, Mapping)):
        raise InvalidPlan(
            f"the plan is a {type(source).__name__}; expected a JSON object, its text, or a plan"
        )
    return adopt(read_object(source), data)


def adopt(body: JsonObject, data: frozenset[Pointer] = frozenset()) -> ExecutionPlan:
    """Return the plan that `body` is, without a copy: it must be plain JSON that nobody changes."""
    for known in FORMATS:
        if known.recognizes(body):
            return known.make(body, data)
    return DocumentPlan(body, data)


def not_actionable(plan: ExecutionPlan) -> str | None:
    """Return why the planner says that this cannot be done; None for a plan that does something.

    That is orra's convention: tasks `task0` and `{"id": "final", "input": {"error": why}}`.
    """
    tasks = plan.to_dict().get("tasks")
    for task in tasks if isinstance(tasks, list) else ():
        if isinstance(task, dict) and task.get("id") == "final":
            return _reason(task.get("input"))
    return None


def _reason(given: Json) -> str:
    error = given.get("error") if isinstance(given, dict) else None
    if error is None:
        return "the planner gives no reason"
    return error if isinstance(error, str) else dumps(error)
