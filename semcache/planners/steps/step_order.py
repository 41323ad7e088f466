"""What steps need of one another: the order in which they can be done, and what is odd about it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from semcache.planners.steps.intents import SubIntent


@dataclass(frozen=True, slots=True)
class DependencyIssue:
    """Something about the dependencies that a person should know."""

    code: Literal["cycle", "forward", "unknown"]
    """`forward`: a step needs a later one (harmless: it waits). The others keep a plan from being
    made: `cycle`, or a step that needs one that there is not."""
    what: str
    intents: tuple[str, ...]


def issues(intents: Sequence[SubIntent]) -> Iterator[DependencyIssue]:
    """Yield what is odd about the dependencies of `intents`."""
    at = {one.id: i for i, one in enumerate(intents)}
    for i, one in enumerate(intents):
        for other in dict.fromkeys(one.depends_on):
            if other not in at:
                what = f"{one.id} needs {other!r}, which is no step"
                yield DependencyIssue("unknown", what, (one.id, other))
            elif at[other] > i:
                what = f"{one.id} needs {other}, which was said later"
                yield DependencyIssue("forward", what, (one.id, other))
    for cycle in _cycles({one.id: [d for d in one.depends_on if d in at] for one in intents}):
        what = " needs ".join((*cycle, cycle[0])) + ": a circle"
        yield DependencyIssue("cycle", what, cycle)


def _cycles(needed: Mapping[str, list[str]]) -> Iterator[tuple[str, ...]]:
    """Yield cycles until none is left, each with one of its dependencies cut."""
    left = {name: list(dict.fromkeys(others)) for name, others in needed.items()}
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            # graphlib tells it as predecessors: each name is needed by the next one.
            found = list(reversed(error.args[1]))[:-1]
            yield tuple(found)
            left[found[0]].remove(found[1 % len(found)])
        else:
            return


def in_order(intents: Sequence[SubIntent]) -> Iterator[SubIntent]:
    """Yield steps so that each comes after those that it needs, else as they stand.

    There must be no circle, and no dependency on a step that there is not: see `issues`.
    """
    waiting, done = list(intents), set[str]()
    while waiting:
        ready = next(one for one in waiting if done.issuperset(one.depends_on))
        waiting.remove(ready)
        done.add(ready.id)
        yield ready
