"""Conducting: a bound plan is run by the engine of its format, and a person is asked on the way."""

from collections.abc import Mapping
from dataclasses import replace

from semcache.catalog.builtin import Question
from semcache.catalog.catalog import Catalog
from semcache.errors import InputNeeded, InvalidPlan
from semcache.planners.questions import Ask, Interview, asks, conduct
from semcache.plans.codec import decode
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Clock, Engine, Limits, Observer, Outcome


class Conducting:
    """Runs plans. Safe from several threads."""

    def __init__(
        self,
        engines: Mapping[str, Engine],
        limits: Limits,
        *,
        clock: Clock,
        ask: Ask | None,
    ) -> None:
        self._engines = dict(engines)
        self._limits = limits
        self._clock = clock
        self._ask = ask

    def execute(
        self,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        catalog: Catalog,
        observer: Observer,
        run: str,
        allow_writes: bool,
        answers: Mapping[str, object] | None,
    ) -> Outcome:
        """Run a plan to its end; see `SemCache.execute`."""
        came = self.conduct(
            decode(plan),
            Interview(answers),
            observer,
            catalog=catalog,
            run=run,
            allow_writes=allow_writes,
        )
        if isinstance(came, Outcome):
            return came
        asked = ", ".join(repr(question.topic) for question in came)
        raise InputNeeded(
            f"the plan asks for {asked}; give `answers`, or an `ask` when the cache is opened"
        )

    def conduct(
        self,
        plan: ExecutionPlan,
        interview: Interview,
        observer: Observer,
        *,
        catalog: Catalog,
        run: str,
        allow_writes: bool,
    ) -> Outcome | tuple[Question, ...]:
        """Run a plan; return what came out, or the questions that nobody is there to answer."""
        engine = self._engine(plan)
        limits = replace(self._limits, allow_writes=allow_writes and self._limits.allow_writes)

        def execute(catalog: Catalog) -> Outcome:
            return engine.execute(
                plan,
                catalog=catalog,
                limits=limits,
                clock=self._clock,
                observer=observer,
                run=run,
            )

        if not asks(plan):
            return execute(catalog)
        return conduct(plan, interview, catalog=catalog, execute=execute, ask=self._ask)

    def _engine(self, plan: ExecutionPlan) -> Engine:
        engine = self._engines.get(plan.format)
        if engine is None:
            known = ", ".join(sorted(self._engines)) or "none"
            raise InvalidPlan(f"no engine runs plans of the format {plan.format!r}; known: {known}")
        return engine
