"""Where the programs of runs stood after each step: kept, to look at, to go on from, to branch."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from semcache.canonical import Json, as_object, dumps, plain
from semcache.errors import InvalidInput
from semcache.execution.state import Sink, State
from semcache.planners.note_store import NoteStore
from semcache.plans.codec import adopt
from semcache.plans.plan import ExecutionPlan
from semcache.plans.program.document import ProgramPlan
from semcache.ports import Clock, PlanStore

log = logging.getLogger(__name__)

KEPT = 2_000
"""Checkpoints of a tenant; the oldest make room. A program of the usual step budget makes 100."""
KEPT_S = 7 * 24 * 3600.0
MAX_BYTES = 2**20
"""Bytes of one checkpoint; what holds more (a table that was read) is not kept."""


class Checkpoints:
    """The states of programs, by tenant and run, in the notes of a store. Safe from threads."""

    def __init__(self, store: PlanStore, clock: Clock) -> None:
        self._kept = NoteStore(store, clock, "checkpoints", most=KEPT, ttl_s=KEPT_S)

    def sink(
        self,
        tenant: str,
        run: str,
        plan: ProgramPlan,
        guarded: Callable[[str], AbstractContextManager[None]],
    ) -> Sink:
        """Return what keeps the states of a run as they come; a store that fails stops nothing."""
        place = plain([list(at) for at in sorted(plan.data, key=repr)])
        begun = False

        def keep(state: State) -> None:
            nonlocal begun
            told = state.to_json()
            if len(dumps(told)) > MAX_BYTES:
                log.info("a checkpoint of over %d bytes was not kept", MAX_BYTES)
                return
            with guarded(tenant):
                if not begun:
                    self._kept.put(tenant, run, {"plan": plan.to_dict(), "data": place})
                    begun = True
                self._kept.put(tenant, _name(run, state), told)

        return keep

    def states(self, tenant: str, run: str) -> tuple[State, ...]:
        """Return where the program of a run stood after each step, in order; empty if unknown.

        The last one has the error, if a step failed.

        Raises:
            StoreUnavailable: they cannot be read.
        """
        names = sorted(n for n in self._kept.names(tenant) if n.startswith(f"{run}/"))
        found = (self._kept.get(tenant, name) for name in names)
        return tuple(State.from_json(told) for told in found if told is not None)

    def plan(self, tenant: str, run: str) -> ProgramPlan:
        """Return the program of a run, its values bound.

        Raises:
            InvalidInput: no checkpoint of it is kept.
            StoreUnavailable: it cannot be read.
        """
        told = self._kept.get(tenant, run)
        plan: ExecutionPlan | None = None
        if told is not None:
            places = [at for at in _list(told.get("data")) if isinstance(at, list)]
            data = frozenset(tuple(s for s in at if isinstance(s, str | int)) for at in places)
            plan = adopt(as_object(told.get("plan")), data)
        if not isinstance(plan, ProgramPlan):
            raise InvalidInput(
                f"no checkpoints are kept of the run {run[:40]!r}: it ran no program, is another "
                "tenant's, or was too long ago"
            )
        return plan


def start_of(state: State, plan: ProgramPlan) -> State:
    """Return the state to go on from with `plan`, which may be an edited one.

    Raises:
        InvalidInput: the plan has no such next instruction.
    """
    same = state.plan == plan.fingerprint
    return replace(state, error="") if same else state.branched(plan)


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _name(run: str, state: State) -> str:
    # After its step, and apart from it the failure of the next one.
    return f"{run}/{state.steps:06d}{'-failed' if state.error else ''}"
