"""Questions: what a plan asks a person, the answers, and a run that waits for them.

A plan that asks is run with the answers behind `ask_user`. A question that has none yet stops it;
when the run goes on, what it had called before is not called again.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, cast

from semcache.canonical import Json, JsonObject, as_object, digest, dumps, plain
from semcache.catalog.builtin import ASK_USER, Question, ask_user
from semcache.catalog.catalog import Catalog
from semcache.catalog.operation import Call, Operation
from semcache.catalog.schemas import Schema, types
from semcache.errors import ExecutionError, InputNeeded, InvalidJson, InvalidParameter
from semcache.planners.arguments.coercion import coerced
from semcache.plans.document import ExecutionPlan
from semcache.plans.paths import is_expression
from semcache.plans.routes import RoutePlan, route_of
from semcache.plans.tasks import TaskPlan
from semcache.ports import Outcome
from semcache.prompts.parameter import name_key

Ask: TypeAlias = Callable[[Question], object]
"""Asks a person and returns what they say: text, or a value that is JSON."""

TRIES = 3
"""How often a person is asked the same before the run is given up."""
MAX_ROUNDS = 100
"""How often one run may come upon questions that depend on what it called before."""
MAX_RECORDED = 2**20
"""Characters of results that are kept for a run that waits; beyond it, reads are done again."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A call that a run has made, and what it gave."""

    operation: str
    input: str
    """Digest of its input."""
    output: Json


class Interview:
    """The answers of one run, and the calls that it made. Safe from several threads."""

    def __init__(
        self,
        given: Mapping[str, object] | None = None,
        *,
        answers: Mapping[str, Json] | None = None,
        made: Sequence[RecordedCall] = (),
    ) -> None:
        """Keep what is known.

        Args:
            given: What a person said, by topic; it is taken when the question comes up.
            answers: What was taken before.
            made: The calls that need not be made again.
        """
        self._given = {name_key(topic): said for topic, said in (given or {}).items()}
        self._answers = {name_key(topic): value for topic, value in (answers or {}).items()}
        self._lock = threading.Lock()
        self._made = list(made)
        self._again: dict[tuple[str, str], deque[Json]] = {}

    @property
    def answers(self) -> dict[str, Json]:
        """What was answered, by topic."""
        return dict(self._answers)

    def open(self, plan: ExecutionPlan, catalog: Catalog) -> tuple[Question, ...]:
        """Return the questions that `plan` is sure to ask and that have no answer, each once."""
        found: dict[str, Question] = {}
        for given in _asked(plan):
            asked = self.question(given, catalog)
            if name_key(asked.topic) not in self._answers:
                found.setdefault(name_key(asked.topic), asked)
        return tuple(found.values())

    def question(self, given: Mapping[str, Json], catalog: Catalog) -> Question:
        """Return the question that an input of `ask_user` asks, with the schema of its answer."""
        return Question.of(given, _property(given, catalog))

    def knows(self, question: Question) -> bool:
        """Return whether the caller said what is asked; if so, it is taken.

        Raises:
            InvalidParameter: what they said will not do.
        """
        key = name_key(question.topic)
        if key not in self._given:
            return False
        self.take(question, self._given[key])
        return True

    def check(self, asked: Sequence[JsonObject], catalog: Catalog) -> None:
        """Take what the caller said to these inputs of `ask_user`.

        Raises:
            InvalidParameter: it will not do, or is for nothing that was asked.
        """
        questions = {name_key(q.topic): q for q in (self.question(one, catalog) for one in asked)}
        for key in self._given:
            if key not in questions:
                known = ", ".join(repr(one.topic) for one in questions.values())
                raise InvalidParameter(f"nothing asks for {key!r}; asked is {known}")
        for question in questions.values():
            self.knows(question)

    def take(self, question: Question, said: object) -> None:
        """Keep what a person said, as the schema wants it.

        Raises:
            InvalidParameter: it cannot be an answer to the question; the message says why.
        """
        try:
            value = plain(said, what=f"the answer for {question.topic!r}")
        except InvalidJson as error:
            raise InvalidParameter(str(error)) from error
        if isinstance(value, str):
            value = value.strip()
        if value is None or value == "":
            raise InvalidParameter(f"{question.topic!r} was not answered")
        value = coerced(value, question.answer, name=question.topic)
        if question.answer:
            broken = Schema(question.answer, name=question.topic).violations(value)
            if broken:
                raise InvalidParameter(f"{question.topic!r}: {broken[0]}")
        self._answers[name_key(question.topic)] = value

    def behind(self, plan: ExecutionPlan, catalog: Catalog) -> Catalog:
        """Return `catalog` with the answers behind `ask_user`, and with calls that are recorded.

        A call that was made before the run came upon a question gives what it gave then.
        """
        with self._lock:
            self._again = defaultdict(deque)
            for one in self._made:
                self._again[one.operation, one.input].append(one.output)
        if ASK_USER not in catalog:
            catalog = catalog.with_builtins([ask_user()])
        calls: dict[str, Call] = {}
        for name in plan.operations():
            operation = catalog.get(name) if name in catalog else None
            if operation is not None and operation.call is not None and name != ASK_USER:
                calls[name] = self._recorded(operation, operation.call)
        return catalog.with_calls({**calls, ASK_USER: self._answer})

    def made(self, catalog: Catalog) -> tuple[RecordedCall, ...]:
        """Return the calls so far; of reads, only as many as are small enough to be kept."""
        with self._lock:
            left, kept = MAX_RECORDED, []
            for one in self._made:
                left -= len(dumps(one.output))
                if left >= 0 or catalog.get(one.operation).effect == "write":
                    kept.append(one)
            return tuple(kept)

    def _answer(self, given: JsonObject) -> Json:
        topic = Question.of(given).topic
        if name_key(topic) in self._answers:
            return self._answers[name_key(topic)]
        raise InputNeeded(f"the plan asks for {topic!r} and nobody has answered", question=given)

    def _recorded(self, operation: Operation, call: Call) -> Call:
        def recorded(given: JsonObject) -> object:
            # The key is another one for each attempt of some engines, and no part of the question.
            said = {k: v for k, v in given.items() if k != operation.idempotency_key}
            key = operation.name, digest(said)
            with self._lock:
                if self._again.get(key):
                    return self._again[key].popleft()
            output = call(given)
            try:
                made = RecordedCall(*key, plain(output, what="the output"))
            except InvalidJson:
                return output  # the engine refuses it, with a better message
            with self._lock:
                self._made.append(made)
            return output

        return recorded


def asks(plan: ExecutionPlan) -> bool:
    """Return whether `plan` may ask a person."""
    return ASK_USER in plan.operations()


def conduct(
    plan: ExecutionPlan,
    interview: Interview,
    *,
    catalog: Catalog,
    execute: Callable[[Catalog], Outcome],
    ask: Ask | None,
) -> Outcome | tuple[Question, ...]:
    """Return what running `plan` gives, or the questions that nobody is there to answer.

    `execute` runs it with the catalog that it is given: each time that a question came up which
    depends on what was called before. Raises what `execute` raises, but `InputNeeded`.

    Raises:
        InvalidParameter: an answer will not do.
        ExecutionError: the plan asks without end.
    """
    for _ in range(MAX_ROUNDS):
        opened = [one for one in interview.open(plan, catalog) if not interview.knows(one)]
        if not opened:
            try:
                return execute(interview.behind(plan, catalog))
            except InputNeeded as error:
                asked = interview.question(cast("JsonObject", error.question), catalog)
                opened = [] if interview.knows(asked) else [asked]
        if opened and ask is None:
            return tuple(opened)
        if ask is not None:
            _ask_all(interview, opened, ask)
    raise ExecutionError(f"the plan asked {MAX_ROUNDS} times and reached no end")


def _ask_all(interview: Interview, questions: Sequence[Question], ask: Ask) -> None:
    """Ask a person each question until the answer will do, three times at most."""
    for question in questions:
        asked = question
        for attempt in range(1, TRIES + 1):
            try:
                interview.take(question, ask(asked))
                break
            except InvalidParameter as error:
                if attempt == TRIES:
                    raise
                asked = replace(question, text=f"{error}. {question.text}")


# ── reading plans ────────────────────────────────────────────────────────────────────────────────


def _asked(plan: ExecutionPlan) -> Iterator[JsonObject]:
    """Yield the inputs of `ask_user` that are the same whatever happens before.

    None of a plan that branches: a person is not asked what may not matter.
    """
    given: list[Json] = []
    if isinstance(plan, TaskPlan):
        given = [task.input for task in plan.tasks if task.service == ASK_USER]
    elif isinstance(plan, RoutePlan):
        nodes = [node for node in plan.body.values() if isinstance(node, dict)]
        if not any(route_of(node).branches for node in nodes):
            given = [node.get("input") for node in nodes if node.get("operation") == ASK_USER]
    for one in given:
        if isinstance(one, dict) and not any(
            isinstance(value, str) and is_expression(value) for value in one.values()
        ):
            yield one


def _property(given: Mapping[str, Json], catalog: Catalog) -> JsonObject:
    """Return the schema of the property that an answer becomes; empty if it becomes none."""
    name, wanted = given.get("operation"), given.get("input")
    if not isinstance(name, str) or name not in catalog:
        return {}
    found = as_object(catalog.get(name).input_schema.get("properties")).get(str(wanted))
    if not isinstance(found, dict):
        return {}
    domain = catalog.closed.get(name_key(str(wanted)))
    if domain and "string" in types(found, catalog.get(name).input_schema):
        found = {**found, "enum": list(domain)}
    shared = {key: catalog.get(name).input_schema.get(key) for key in ("$defs", "definitions")}
    return {**{key: value for key, value in shared.items() if value is not None}, **found}
