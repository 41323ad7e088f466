"""Pending runs: runs that need an answer of a person, kept until they get it."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field

from semcache.canonical import Json, JsonObject, Pointer, as_list, as_object
from semcache.catalog.builtin import NeedsInput, Question
from semcache.errors import InvalidParameter
from semcache.planners.note_store import NoteStore
from semcache.planners.questions import RecordedCall
from semcache.plans.codec import adopt
from semcache.plans.document import DocumentPlan, ExecutionPlan
from semcache.plans.program import ProgramPlan
from semcache.plans.routes import RoutePlan
from semcache.plans.tasks import TaskPlan
from semcache.ports import Clock, PlanStore

WAIT_S = 24 * 3600.0
"""Seconds that a run waits for its answers."""


@dataclass(frozen=True, slots=True)
class Suspended:
    """All that a run needs to go on."""

    prompt: str
    run: str
    plan: ExecutionPlan
    key: str
    """What its failures are remembered by."""
    planned: bool
    allow_writes: bool
    questions: tuple[JsonObject, ...]
    """The inputs of `ask_user` that have no answer."""
    answers: JsonObject = field(default_factory=dict)
    made: tuple[RecordedCall, ...] = ()

    def to_json(self) -> JsonObject:
        """Return it as JSON."""
        return {
            "prompt": self.prompt,
            "run": self.run,
            "plan": self.plan.to_dict(),
            "data": [list(at) for at in sorted(_data(self.plan), key=repr)],
            "key": self.key,
            "planned": self.planned,
            "allow_writes": self.allow_writes,
            "questions": list(self.questions),
            "answers": self.answers,
            "made": [[one.operation, one.input, one.output] for one in self.made],
        }

    @classmethod
    def from_json(cls, told: JsonObject) -> "Suspended":
        """Return what `to_json` told."""
        plan, answers = told.get("plan"), told.get("answers")
        made = (one for one in as_list(told.get("made")) if isinstance(one, list))
        return cls(
            prompt=str(told["prompt"]),
            run=str(told["run"]),
            plan=adopt(as_object(plan), pointers(told.get("data"))),
            key=str(told["key"]),
            planned=told["planned"] is True,
            allow_writes=told["allow_writes"] is True,
            questions=tuple(q for q in as_list(told.get("questions")) if isinstance(q, dict)),
            answers=as_object(answers),
            made=tuple(RecordedCall(str(one[0]), str(one[1]), one[2]) for one in made),
        )


class PendingRuns:
    """Runs that wait for answers, by tenant and token, in the notes of a store.

    Safe from several threads and processes. Every method may raise `StoreUnavailable`.
    """

    def __init__(self, store: PlanStore, clock: Clock) -> None:
        """Keep where runs wait, and what time it is."""
        self._kept = NoteStore(store, clock, "waiting", ttl_s=WAIT_S)
        self._clock = clock

    def keep(self, tenant: str, suspended: Suspended, questions: Sequence[Question]) -> NeedsInput:
        """Keep a run and return what it needs."""
        token = uuid.uuid4().hex
        self._kept.put(tenant, token, suspended.to_json())
        return NeedsInput(token, tuple(questions), tenant, self._clock.now() + WAIT_S)

    def get(self, tenant: str, token: str) -> Suspended:
        """Return the run that waits under `token`.

        Raises:
            InvalidParameter: none does.
        """
        told = self._kept.get(tenant, token)
        if told is None:
            raise _nobody(token)
        return Suspended.from_json(told)

    def take(self, tenant: str, token: str) -> None:
        """Let a run go on: whoever comes second is refused.

        Raises:
            InvalidParameter: it was taken before.
        """
        if not self._kept.take(tenant, token):
            raise _nobody(token)


def _nobody(token: str) -> InvalidParameter:
    return InvalidParameter(
        f"no run waits under {token[:40]!r}: it was answered, belongs to another tenant, or has "
        "waited for too long; ask again"
    )


def _data(plan: ExecutionPlan) -> frozenset[Pointer]:
    """Return where values were bound, of a plan of any format."""
    if isinstance(plan, RoutePlan | TaskPlan | ProgramPlan | DocumentPlan):
        return plan.data
    return frozenset()


def pointers(told: Json) -> frozenset[Pointer]:
    """Return places in a plan, as `to_json` told them."""
    lists = (one for one in as_list(told) if isinstance(one, list))
    return frozenset(tuple(s for s in one if isinstance(s, str | int)) for one in lists)
