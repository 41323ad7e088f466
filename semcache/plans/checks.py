"""Everything that is wrong with a plan, found at once and without running it."""

from collections.abc import Sequence
from typing import Any

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidPlan
from semcache.plans.codec import FORMATS, Format
from semcache.plans.finding import Code, Finding
from semcache.plans.plan import ExecutionPlan
from semcache.plans.tasks.inputs import check_task_params

__all__ = ["Code", "Finding", "check", "check_params", "check_values", "refuse"]

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


def check_params(plan: ExecutionPlan, names: Sequence[str]) -> tuple[Finding, ...]:
    """Return what `plan` should have for the parameters of its request, and has not.

    Only the tasks format asks for something: each parameter in `task0`, by its name.
    """
    return check_task_params(plan, names)


def _format(plan: ExecutionPlan) -> Format[Any] | None:
    return next((known for known in FORMATS if known.name == plan.format), None)


def refuse(findings: tuple[Finding, ...], *, what: str = "the plan cannot run") -> None:
    """Return if there are no findings.

    Raises:
        InvalidPlan: there are; the message tells the first ten, the error carries all.
    """
    if not findings:
        return
    told = "; ".join(map(str, findings[:MAX_TOLD]))
    more = f"; and {len(findings) - MAX_TOLD} more" if len(findings) > MAX_TOLD else ""
    raise InvalidPlan(f"{what}: {told}{more}", [str(finding) for finding in findings])
