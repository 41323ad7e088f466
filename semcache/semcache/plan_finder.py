"""Where the plan of a run comes from: a hit, a choice among near plans, or a planner."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from semcache.binding.bind import bind
from semcache.binding.generalize.generalization import generalize
from semcache.cache.lookup.selection import Option
from semcache.cache.result import Found, Hit, Miss
from semcache.canonical import Json, JsonObject
from semcache.errors import BindingError, InvalidParameter, ModelError, PlanningError
from semcache.planners.failures import Failure, FailureMemory
from semcache.planners.intent_graph import IntentGraph
from semcache.plans.codec import adopt
from semcache.plans.document import ExecutionPlan
from semcache.ports import Clock, Planned, Selector
from semcache.process.forks import give_way
from semcache.prompts.schema import PromptSchema
from semcache.runs.run_context import here
from semcache.runs.run_context import node as open_node
from semcache.semcache.answer import Chosen, Job, entry_key, failing_key
from semcache.semcache.run_events import RunEvents
from semcache.semcache.stages import Stages

log = logging.getLogger(__name__)

AUDITED = 0.05
"""Share of the plans chosen by a model that are made anew all the same, to see how often it errs:
one in twenty costs a twentieth of what choosing saves."""
_UNSELECTED = frozenset({"explored", "failed", "store_failed", "embedder_failed"})
"""Misses for which no cached plan is wanted, or can be had."""
REPLAN_AFTER = 2
"""Failures in a row after which a cached plan is made anew: one may be the values' fault."""


class PlanFinder:
    """Finds or makes the plan of a run. Safe from several threads."""

    def __init__(
        self,
        stages: Stages,
        events: RunEvents,
        failures: FailureMemory,
        *,
        selector: Selector | None,
        models_read: bool,
        clock: Clock,
        chance: Callable[[], float],
    ) -> None:
        """Take the parts; `models_read`: whether a model reads prompts that rules leave open."""
        self._stages = stages
        self._selector = selector
        self._models_read = models_read
        self._cache = stages.cache
        self._events = events
        self._failures = failures
        self._clock = clock
        self._chance = chance

    def choose(self, job: Job) -> Chosen:
        """Return the plan to run: a hit that did not fail of late, else a new one."""
        found = self._look(job)
        failure = self._failure(job.tenant, failing_key(found))
        broken = failure is not None and failure.attempts >= REPLAN_AFTER
        chosen = Chosen.of(found) if isinstance(found, Hit) and not broken else None
        if chosen is None:
            chosen = self._learn(job, found)
        if isinstance(chosen.found, Hit) and self._explores(chosen.found):
            return self._explored(job, chosen.found)
        return chosen

    def _look(self, job: Job, schema: PromptSchema | None = None) -> Found:
        """Return what the cache has, but no semantic hit that writes without the caller's leave."""
        with open_node("lookup") as opened:
            found = self._stages.lookup(
                job.prompt,
                tenant=job.tenant,
                params=job.params,
                schema=schema,
                threshold=job.threshold,
                run=job.run,
            )
            opened.note(**_said(found))
        if not isinstance(found, Hit) or found.tier != "semantic" or self._may_write(job):
            return found
        writing = self._writing(found.plan)
        if not writing:
            return found
        log.info("a semantic hit calls %s, which writes: planned afresh", writing[0])
        return Miss("writes", None, found.trace)

    def _may_write(self, job: Job) -> bool:
        """Return whether what is only likely to be meant may write; if not, run refuses as well."""
        return job.allow_writes is not None or self._cache.settings.writes_from_semantic

    def _selected(self, job: Job, found: Miss) -> Hit | None:
        """Return the hit on a cached plan that a model chose for the prompt; None if none."""
        if self._selector is None or found.reason in _UNSELECTED:
            return None
        if not self._cache.selects(tenant=job.tenant):
            return None
        start = self._clock.monotonic()
        with self._spending(job, "select"), open_node("select") as opened:
            chosen = self._chosen(job, self._selector)
            opened.note(chosen=chosen is not None)
        if chosen is None:
            return None
        option, values, choices = chosen
        took = self._clock.monotonic() - start
        return self._cache.take(option, values, choices=choices, run=job.run, seconds=took)

    def _chosen(
        self, job: Job, selector: Selector
    ) -> tuple[Option, Mapping[str, Json], int] | None:
        """Return the plan that a model chose, its missing values, and how often it was chosen."""
        grounded = self._stages.ground(job.prompt)
        options = self._cache.options(
            job.prompt,
            tenant=job.tenant,
            params=job.params,
            grounding="" if grounded is None else grounded.identity,
        )
        if not self._may_write(job):
            options = tuple(one for one in options if not self._writing(one.plan))
        if not options:
            return None
        try:
            first = _choice(selector, job.prompt, options)
            if first is None:
                return None
            needed = self._cache.choices_needed(*first)
            # In another order: the place in a list is a reason to err that has gone then.
            if needed == 2 and _choice(selector, job.prompt, options[::-1]) != first:
                return None
        except (ModelError, InvalidParameter) as error:
            said = self._cache.redacted(str(error), prompt=job.prompt, params=job.params)
            log.info("no plan was chosen among those at hand: %s", said)
            return None
        return (*first, needed) if needed else None

    def _writing(self, plan: ExecutionPlan) -> tuple[str, ...]:
        """Return the operations of a plan that write."""
        catalog = self._stages.catalog
        known = (catalog.get(name) for name in plan.operations() if name in catalog)
        return tuple(operation.name for operation in known if operation.effect == "write")

    @contextmanager
    def _spending(self, job: Job, what: str) -> Iterator[None]:
        """Count tokens and time of the block, if a model was asked in it."""
        before, start = self._tokens(job), self._clock.monotonic()
        yield
        spent = [after - early for after, early in zip(self._tokens(job), before, strict=True)]
        if not any(spent):
            return
        took = round((self._clock.monotonic() - start) * 1000)
        names = ("prompt_tokens", "completion_tokens", "milliseconds", "calls")
        for name, amount in zip(names, (*spent, took, 1), strict=True):
            self._cache.count(f"{what}:{name}", tenant=job.tenant, by=amount)

    def _tokens(self, job: Job) -> tuple[int, int]:
        standing = here()
        home = standing.home if standing is not None else self._events.runs
        node = home.view(job.run, tenant=job.tenant).root
        return (0, 0) if node is None else (node.prompt_tokens, node.completion_tokens)

    def _failure(self, tenant: str, key: str, *, check: bool = False) -> Failure | None:
        """Return how the plan failed lately; `check` raises if it is suspended."""
        failure = None
        with self._cache.guarded(tenant):
            failure = self._failures.get(tenant, key)
            if failure is not None and check:
                self._failures.check(tenant, key)
        return failure

    def _explores(self, hit: Hit) -> bool:
        share = self._cache.settings.explore
        if hit.tier == "selected":
            return self._chance() < max(share, AUDITED)
        return share > 0 and self._chance() < share

    def _explored(self, job: Job, hit: Hit) -> Chosen:
        """Plan a prompt that hit all the same, so that labels come from hits too."""
        try:
            chosen = self._learn(job, Miss("explored", None, hit.trace))
        except (PlanningError, ModelError) as error:
            said = self._cache.redacted(str(error), prompt=job.prompt, params=job.params)
            log.info("a hit was not explored: %s", said)
            return Chosen.of(hit)
        if chosen.planned:
            self._cache.audit(hit, chosen.plan)
        return chosen

    def _learn(self, job: Job, found: Found) -> Chosen:
        """Plan the prompt, once for all callers that ask the same with other values meanwhile."""
        give_way()
        with self._cache.planning(found) as again:
            if again and isinstance(found, Miss) and found.reason != "explored":
                found = self._look(job)
                if isinstance(found, Hit):
                    return Chosen.of(found)
            failure = self._failure(job.tenant, failing_key(found), check=True)
            said = failure.last_error if failure is not None else ""
            if (by_rules := self._by_rules(job, found, said)) is not None:
                return by_rules
            if isinstance(found, Miss) and (hit := self._selected(job, found)) is not None:
                return Chosen.of(hit)
            with self._spending(job, "plan"):
                schema = self._normalized(job)
                if isinstance(found, Miss) and schema is not None and _is_news(schema, found):
                    by_schema = self._look(job, schema)
                    if isinstance(by_schema, Hit) and by_schema.tier == "schema":
                        return Chosen.of(by_schema)
                return self._make(job, found, schema, said)

    def _by_rules(self, job: Job, found: Found, failure: str) -> Chosen | None:
        """Return a plan that rules account for, before a model is asked anything; None if none."""
        if failure or not self._models_read:
            return None
        schema = self._stages.normalize(job.prompt, params=job.params, by_rules=True)
        try:
            return self._make(job, found, schema, "", by_rules=True)
        except PlanningError:
            return None  # what rules refuse is the model's; all planners are told of in the end

    def again(self, job: Job, found: Found, failure: str) -> Chosen:
        """Return a new plan in the place of one that failed; `failure`: what went wrong."""
        return self._make(job, found, self._normalized(job), failure)

    def _normalized(self, job: Job) -> PromptSchema | None:
        with self._events.timed("normalize", job):
            return self._stages.normalize(job.prompt, params=job.params)

    def _make(
        self,
        job: Job,
        found: Found,
        schema: PromptSchema | None,
        failure: str,
        *,
        by_rules: bool = False,
    ) -> Chosen:
        """Plan, store, and bind the prompt's own values, whether storing worked or not."""
        start = self._clock.monotonic()
        with self._events.timed("plan", job):
            planned = self._stages.create(
                job.prompt,
                schema,
                params=job.params,
                failure=failure,
                tenant=job.tenant,
                missed=found if isinstance(found, Miss) else None,
                by_rules=by_rules,
            )
        cost_s = self._clock.monotonic() - start
        try:
            with self._events.timed("store", job):
                stored = self._stages.store(
                    job.prompt, planned, tenant=job.tenant, schema=schema, cost_s=cost_s
                )
            with self._events.timed("bind", job):
                plan = self._bound(planned)
        except BindingError as error:
            what = f"the plan made for {job.prompt[:80]!r} cannot take its values: {error}"
            raise PlanningError(what) from error
        missed = _missed(found)
        key = entry_key(stored.key, stored.id) if stored else failing_key(missed)
        entry = stored.id if stored else ""
        graph = None if planned.intents is None else IntentGraph.from_json(planned.intents)
        return Chosen(missed, plan, planned=True, key=key, entry=entry, graph=graph)

    def _bound(self, planned: Planned) -> ExecutionPlan:
        # With the schemas, as the cache does it: "2024" is 2024 where an integer is wanted.
        schemas = self._stages.catalog.input_schemas
        template = generalize(planned.plan.to_dict(), planned.params, schemas=schemas)
        own = bind(template, {p.name: p.value for p in planned.params})
        return adopt(own.plan, own.data)


def _choice(
    selector: Selector, prompt: str, options: Sequence[Option]
) -> tuple[Option, Mapping[str, Json]] | None:
    """Return the option that a selector chose and the values that it misses; None for none."""
    chosen = selector.select(prompt, [option.shown for option in options])
    if chosen is None:
        return None
    at, values = (chosen, {}) if isinstance(chosen, int) else chosen
    if not 0 <= at < len(options):
        raise InvalidParameter(f"the selector chose option {at} of {len(options)}, counted from 0")
    return options[at], values


def _is_news(schema: PromptSchema, found: Miss) -> bool:
    """Return whether the schema says more than the one that the lookup had from the rules."""
    had_complete = bool(found.trace.key) and not found.trace.unexplained
    return not schema.partial and not had_complete


def _said(found: Found) -> JsonObject:
    """Return what a lookup came to, for its node."""
    if isinstance(found, Hit):
        return {"tier": found.tier, "key": found.key}
    return {"reason": found.reason}


def _missed(found: Found) -> Found:
    return found if isinstance(found, Miss) else Miss("failed", None, found.trace)
