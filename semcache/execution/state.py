"""Where a program stands: what is kept after each step, to resume from, branch off and compare."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Self, TypeAlias

from semcache.canonical import Json, JsonObject, plain, same
from semcache.errors import InvalidInput, InvalidJson
from semcache.plans.program import ProgramPlan


@dataclass(frozen=True, slots=True)
class State:
    """A program between two steps. Its values are shared with the run: never change them."""

    plan: str
    """Fingerprint of the plan."""
    steps: int = 0
    """Steps made since the start."""
    following: int | None = None
    """`seq_no` of the instruction whose turn it is; None at the end."""
    variables: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))
    executed: int | None = None
    """`seq_no` of the instruction that led here; None at the start."""
    error: str = ""
    """Class and message of what the instruction raised whose turn it still is; empty if none."""

    def branched(self, plan: ProgramPlan) -> "State":
        """Return this state for an edited plan, which goes on at the same `seq_no`.

        Raises:
            InvalidInput: `plan` has no such instruction.
        """
        if self.following not in {None, *(step.seq for step in plan.instructions())}:
            raise InvalidInput(
                f"the plan has no instruction {self.following}, which is next in the state; "
                "keep the numbers of what was executed, or start from an earlier state"
            )
        return replace(self, plan=plan.fingerprint, error="")

    def to_json(self) -> JsonObject:
        """Return the state as JSON."""
        return {
            "plan": self.plan,
            "steps": self.steps,
            "following": self.following,
            "variables": dict(self.variables),
            "executed": self.executed,
            "error": self.error,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, object]) -> Self:
        """Return the state that `to_json` wrote.

        Raises:
            InvalidInput: the record is not one.
        """
        try:
            found = plain(record, what="the state")
        except InvalidJson as error:
            raise InvalidInput(str(error)) from error
        match found:
            case {
                "plan": str(plan),
                "steps": int(steps),
                "following": int() | None as following,
                "variables": dict(variables),
                "executed": int() | None as executed,
                "error": str(failure),
            }:
                return cls(plan, steps, following, MappingProxyType(variables), executed, failure)
            case _:
                raise InvalidInput("the record is no state; expected what `State.to_json` returns")


Sink: TypeAlias = Callable[[State], None]
"""Takes the state after each step, and the one at which a step failed. What it raises ends the
run."""


@dataclass(frozen=True, slots=True)
class StateDifference:
    """What changed from one state to another."""

    added: Mapping[str, Json]
    """Variables that only the later one has."""
    removed: Mapping[str, Json]
    """Variables that only the earlier one has."""
    changed: Mapping[str, tuple[Json, Json]]
    """Variables that both have, with the earlier and the later value."""
    following: tuple[int | None, int | None]
    """`seq_no` of the next instruction in either."""
    plan: bool
    """Whether they belong to different plans."""


def difference(earlier: State, later: State) -> StateDifference:
    """Return what changed from `earlier` to `later`."""
    old, new = earlier.variables, later.variables
    return StateDifference(
        added={name: value for name, value in new.items() if name not in old},
        removed={name: value for name, value in old.items() if name not in new},
        changed={
            name: (value, new[name])
            for name, value in old.items()
            if name in new and not same(value, new[name])
        },
        following=(earlier.following, later.following),
        plan=earlier.plan != later.plan,
    )
