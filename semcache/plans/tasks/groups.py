"""What can be wrong with the `parallel_groups` of a plan in the tasks format.

They say again what the references say already: nothing is scheduled by them. Where both disagree
the plan was not thought through, and which of them was meant nobody can tell.
"""

from collections.abc import Collection, Iterator, Mapping

from semcache.canonical import Json, Pointer
from semcache.plans.finding import Code, Finding, finding
from semcache.plans.graph import Edges, upstream_first
from semcache.plans.inputs import kind, near
from semcache.plans.tasks.document import TaskPlan

GROUPS = "parallel_groups"


def check_groups(plan: TaskPlan) -> Iterator[Finding]:
    """Yield what is malformed in the groups, and what contradicts the references of the tasks."""
    groups = plan.body.get(GROUPS, [])
    if not isinstance(groups, list):
        yield _finding((), f"is {kind(groups)}; expected a list of lists of task ids")
        return
    ids = {task.id for task in plan.tasks}
    group_of: dict[str, int] = {}
    for i, group in enumerate(groups):
        if not isinstance(group, list):
            yield _finding((i,), f"is {kind(group)}; expected a list of task ids")
            continue
        for j, name in enumerate(group):
            yield from _member((i, j), name, ids, group_of)
            if isinstance(name, str):
                group_of.setdefault(name, i)
    yield from _contradictions(plan.reads(), group_of)


def _finding(at: Pointer, what: str, code: Code = "shape") -> Finding:
    return finding((GROUPS, *at), what, code)


def _member(
    at: Pointer, name: Json, ids: Collection[str], group_of: Mapping[str, int]
) -> Iterator[Finding]:
    if not isinstance(name, str) or name not in ids:
        guess = near(name, ids) if isinstance(name, str) else ""
        yield _finding(at, f"is {kind(name)}; expected the id of a task{guess}", "reference")
    elif name in group_of:
        yield _finding(at, f"has {name!r}, which group {group_of[name]} has too; expected it once")


def _contradictions(needed: Edges, group_of: Mapping[str, int]) -> Iterator[Finding]:
    """Yield the tasks that read, over however many others, one of their own group or a later one.

    Groups follow one another, so what is read must stand in an earlier one.
    """
    latest: dict[str, tuple[int, str]] = {}
    for name in upstream_first(needed):
        behind = [latest[other] for other in needed[name] if other in latest]
        behind += [(group_of[other], other) for other in needed[name] if other in group_of]
        latest[name] = max(behind, default=(-1, ""))
        group, other = latest[name]
        if name in group_of and group >= group_of[name]:
            what = (
                f"has {name!r} in group {group_of[name]} and {other!r} in group {group}, but "
                f"{name!r} reads {other!r}; expected {name!r} in a later group"
            )
            yield _finding((), what, "reference")
