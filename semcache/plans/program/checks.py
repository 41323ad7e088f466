"""What can be wrong with a plan in the program format."""

from collections.abc import Iterable, Sequence
from itertools import chain, islice

from semcache.catalog.catalog import Catalog
from semcache.plans.finding import Finding, finding
from semcache.plans.plan import ExecutionPlan
from semcache.plans.program.analysis import ProgramAnalysis
from semcache.plans.program.document import GOALS, ProgramPlan, is_program
from semcache.plans.program.flow import flow, no_goal, too_early, unknown
from semcache.plans.program.form import misplaced, structure, unbound
from semcache.plans.program.inputs import inputs

MAX_INSTRUCTIONS = 10_000  # a program with more is a mistake, and not worth the time of checking it
MAX_FINDINGS = 1_000  # of one program; looking for near names takes some 0.5 ms for each


def check_program(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return all findings on a plan in the program format, by instruction in document order."""
    if not isinstance(plan, ProgramPlan):
        return ()
    if hopeless := _hopeless(plan):
        return hopeless
    analysis = ProgramAnalysis.at(plan, catalog)
    return _first(
        structure(analysis),
        flow(analysis),
        unknown(analysis),
        too_early(analysis),
        inputs(analysis, analysis.steps),
    )


def check_program_values(plan: ExecutionPlan, catalog: Catalog | None) -> tuple[Finding, ...]:
    """Return what the values bound to a plan have made wrong, if all was well with its template."""
    if not isinstance(plan, ProgramPlan) or _hopeless(plan):
        return ()
    analysis = ProgramAnalysis.at(plan, catalog)
    touched = {at[1] for at in plan.data if len(at) > 1}
    bound = [step for step in analysis.steps if step.index in touched]
    return _first(misplaced(plan.data), inputs(analysis, bound))


def broken_program(
    plan: ProgramPlan,
    catalog: Catalog,
    *,
    goals: Sequence[str] = GOALS,
    known: Iterable[str] = (),
) -> tuple[Finding, ...]:
    """Return what keeps an engine from starting.

    That is bad form, missing targets, operations that the catalog lacks, variables that nothing
    sets (`known` are set before the start), placeholders that no value was bound to, and no final
    answer. Instructions that are never reached are no reason.
    """
    if hopeless := _hopeless(plan):
        return hopeless
    analysis = ProgramAnalysis.at(plan, catalog, goals=goals, known=known)
    goalless = () if analysis.goal else (no_goal(analysis.steps, goals),)
    return _first(goalless, structure(analysis), unbound(analysis), unknown(analysis))


def _first(*kinds: Iterable[Finding]) -> tuple[Finding, ...]:
    found = islice(chain.from_iterable(kinds), MAX_FINDINGS)
    return tuple(sorted(found, key=lambda finding: _position(finding.path)))


def _position(path: str) -> int:
    parts = path.split("/")
    return int(parts[2]) if len(parts) > 2 and parts[2].isdigit() else -1


def _hopeless(plan: ProgramPlan) -> tuple[Finding, ...]:
    """Return the finding that makes all others pointless, if there is one."""
    count = len(plan.steps)
    if count > MAX_INSTRUCTIONS:
        what = f"has {count:,} instructions; expected at most {MAX_INSTRUCTIONS:,}"
        return (finding((), what),)
    if not is_program(plan.body):
        what = "has no instructions; expected a list of objects with `seq_no`, `type`, `parameters`"
        return (finding((), what),)
    return ()
