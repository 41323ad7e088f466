"""The stages of a run: normalize, ground, lookup, create, store, execute."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from semcache.cache.entries.writer import Stored
from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Found, Miss
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounded
from semcache.errors import (
    InputNeeded,
    InvalidInput,
    InvalidPrompt,
    NormalizationError,
    NotActionable,
    PlanningError,
    Referred,
)
from semcache.planners.intent_graph import IntentGraph
from semcache.planners.model.grounding import Groundings
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.plan_files import PlanFiles
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.verification import VerifiedPlanner, verified
from semcache.planners.questions import Interview
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.plans.codec import decode
from semcache.plans.document import ExecutionPlan
from semcache.ports import Normalizer, Outcome, Planned, Planner, PlanRequest
from semcache.prompts.parameter import by_name
from semcache.prompts.schema import PromptSchema
from semcache.prompts.tokens import check_prompt
from semcache.semcache.plan_runner import PlanRunner
from semcache.semcache.run_events import RunEvents

log = logging.getLogger(__name__)


_NOT_BY_RULES = (ModelPlanner, VerifiedPlanner, PlanFiles)


class Stages:
    """The calls of which a run is made, one at a time. Safe from several threads."""

    def __init__(
        self,
        cache: PlanCache,
        catalog: Catalog,
        runner: PlanRunner,
        events: RunEvents,
        *,
        normalizers: Sequence[Normalizer],
        planners: Sequence[Planner],
        groundings: Groundings | None = None,
        plan_files: PlanFiles | None = None,
        steps: ModularPlanner | None = None,
    ) -> None:
        self.cache = cache
        """The plan cache behind it."""
        self._catalog = catalog
        self._runner = runner
        self._events = events
        self.planners = tuple(planners) if plan_files is None else (plan_files, *planners)
        """Who makes plans, in the order in which they are asked."""
        self._normalizers = tuple(normalizers)
        self._groundings = groundings
        self._files = plan_files
        self._steps = steps

    @property
    def catalog(self) -> Catalog:
        """What plans may call; another one may be set, such as what a server offers by now.

        The built-in operations stay.
        """
        return self._catalog

    @catalog.setter
    def catalog(self, catalog: Catalog) -> None:
        before = self._catalog
        catalog = catalog.with_builtins(before.get(name) for name in before.builtins)
        self._catalog = catalog
        self.cache.catalog = catalog

    def normalize(
        self,
        prompt: str,
        *,
        params: Mapping[str, object] | None = None,
        by_rules: bool = False,
    ) -> PromptSchema | None:
        """Return the schema of `prompt` in the catalog's words, or None if no normalizer can tell.

        Normalizers are asked in turn, rules first, until one gives a complete schema; else the
        last partial one comes back. `by_rules`: no model is asked.

        Raises:
            InvalidPrompt, InvalidParameter: the prompt or the values cannot be used.
            ModelError: the model behind a normalizer cannot answer.
        """
        text = check_prompt(prompt, max_chars=self.cache.settings.max_prompt_chars)
        given = by_name(params)
        best: PromptSchema | None = None
        for normalizer in self._normalizers:
            if by_rules and isinstance(normalizer, ModelNormalizer):
                continue
            try:
                schema = normalizer.normalize(text, catalog=self.catalog, params=given)
            except (NormalizationError, InvalidPrompt) as error:  # a normalizer may take less text
                said = self.cache.redacted(str(error), prompt=text, params=params)
                log.info("no schema from %s: %s", type(normalizer).__name__, said)
                continue
            if not schema.partial:
                return schema
            best = schema
        return best

    def ground(self, prompt: str) -> Grounded | None:
        """Return the use case that `prompt` is found to be, or None; no match is not a failure.

        Raises:
            InvalidPrompt: the prompt cannot be used.
            EmbeddingError: there are groundings, and the embedder cannot answer.
        """
        if self._groundings is None:
            return None
        text = check_prompt(prompt, max_chars=self.cache.settings.max_prompt_chars)
        shown = self.cache.redacted(text, prompt=text)
        return self._groundings.match(shown, closed=self.catalog.closed)

    def lookup(
        self,
        prompt: str,
        *,
        tenant: str = "default",
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return what the cache has for `prompt` and its use case; see `PlanCache.lookup`."""
        return self.cache.lookup(
            prompt,
            tenant=tenant,
            params=params,
            schema=schema,
            grounding=self._grounding(prompt),
            threshold=threshold,
            run=run,
            what_if=what_if,
        )

    def create(
        self,
        prompt: str,
        schema: PromptSchema | None = None,
        *,
        params: Mapping[str, object] | None = None,
        failure: str = "",
        tenant: str = "default",
        missed: Miss | None = None,
        by_rules: bool = False,
    ) -> Planned:
        """Return a new plan for `prompt` from the first planner that can make one.

        What each of the others said is in the message of the error. `failure`: why the last plan
        for it failed. `missed`: the miss of its lookup; what was near to it is an example.
        `by_rules`: only the planners before the first that asks a model or needs a schema of one.

        Raises:
            NotActionable: the catalog cannot do what was asked.
            Referred: a person must say which operation is meant, or a value.
            PlanningError: no planner could make a valid plan.
            ModelError: the model behind the last planner cannot answer.
        """
        request = self._request(
            prompt, schema, tenant=tenant, params=params, failure=failure, missed=missed
        )
        refusals: list[PlanningError] = []
        for planner in self.planners:
            if by_rules and isinstance(planner, _NOT_BY_RULES):
                break
            try:
                return planner.plan(request)
            except PlanningError as error:
                refusals.append(error)
        raise _refused(refusals)

    def decompose(
        self,
        prompt: str,
        *,
        params: Mapping[str, object] | None = None,
        tenant: str = "default",
    ) -> IntentGraph:
        """Return the steps of `prompt`, with no operation yet; `resume_planning` goes on from them.

        By the model where there is one, else by patterns. `to_json` and `IntentGraph.from_json`
        keep the graph in between.

        Raises:
            As `create`.
        """
        request = self._request(prompt, None, tenant=tenant, params=params)
        return self._by_steps().decompose(request)

    def resume_planning(self, graph: IntentGraph, *, tenant: str = "default") -> Planned:
        """Return the plan of a graph that `decompose` gave; nothing is taken apart again.

        Its prompt is `graph.goal.goal`, its operations are found in the catalog as it is now.

        Raises:
            As `create`.
        """
        request = self._request(graph.goal.goal, None, tenant=tenant)
        request = replace(request, params=graph.params, params_read=False)
        return verified(self._by_steps().resume(graph, request), request)

    def store(
        self,
        prompt: str,
        planned: Planned,
        *,
        tenant: str = "default",
        schema: PromptSchema | None = None,
        cost_s: float | None = None,
    ) -> Stored:
        """Keep a new plan for prompts like this one and its use case; see `PlanCache.store`."""
        if not isinstance(planned, Planned):
            found = type(planned).__name__
            raise InvalidInput(f"planned is of type {found}; expected what `create` gave")
        if self._files is not None and schema is not None and self.cache.redact is None:
            self._files.write(schema, planned, self.catalog)
        return self.cache.store(
            prompt,
            planned.plan,
            params=planned.params,
            tenant=tenant,
            schema=schema,
            grounding=self._grounding(prompt),
            planner=planned.planner,
            cost_s=cost_s,
        )

    def execute(
        self,
        plan: Mapping[str, object] | str | ExecutionPlan,
        *,
        run: str = "",
        allow_writes: bool = True,
        answers: Mapping[str, object] | None = None,
    ) -> Outcome:
        """Run a bound plan and return what came out.

        `plan`: a JSON object, its text, or a plan of any format. `answers`: what a person said, by
        the topic that the plan asks for.

        Raises:
            InvalidPlan: the plan is malformed, or no engine runs its format.
            InvalidParameter: an answer will not do.
            InputNeeded: the plan asks what nobody answers.
            ExecutionError: an operation failed or was refused, or a limit was reached.
        """
        came = self._runner.conduct(
            decode(plan),
            Interview(answers),
            self._events.emit,
            catalog=self.catalog,
            run=run,
            allow_writes=allow_writes,
        )
        if isinstance(came, Outcome):
            return came
        asked = ", ".join(repr(question.topic) for question in came)
        raise InputNeeded(
            f"the plan asks for {asked}; give `answers`, or an `ask` when the cache is opened"
        )

    def _by_steps(self) -> ModularPlanner:
        if self._steps is None:
            raise PlanningError("nothing plans by steps here; give SemCache `steps`")
        return self._steps

    def _request(
        self,
        prompt: str,
        schema: PromptSchema | None,
        *,
        tenant: str,
        params: Mapping[str, object] | None = None,
        failure: str = "",
        missed: Miss | None = None,
    ) -> PlanRequest:
        """Return what a planner is asked."""
        if not isinstance(prompt, str):
            raise InvalidPrompt(f"a prompt must be text; found {type(prompt).__name__}")
        own = by_name(params)
        given = own or (schema.parameters() if schema is not None else ())
        return PlanRequest(
            prompt=prompt,
            schema=schema,
            catalog=self.catalog,
            params=given,
            params_read=not own,
            failure=failure,
            grounding=self.ground(prompt),
            tenant=tenant,
            example=None if missed is None else self.cache.example(missed),
        )

    def _grounding(self, prompt: str) -> str:
        grounded = self.ground(prompt)
        return "" if grounded is None else grounded.identity


def _refused(refusals: Sequence[PlanningError]) -> PlanningError:
    """Return what all planners said as one error, of the kind that helps the caller most."""
    if len(refusals) < 2:
        return refusals[0] if refusals else PlanningError("there is no planner; give SemCache one")
    said = "; ".join(dict.fromkeys(map(str, refusals)))
    for one in reversed(refusals):
        if isinstance(one, Referred):
            return Referred(said, questions=one.questions)
    unable = any(isinstance(one, NotActionable) for one in refusals)
    return NotActionable(said) if unable else PlanningError(said)
