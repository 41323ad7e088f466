"""The stages of a run before its plan is executed: normalize, ground, lookup, create, store."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from semcache.cache.entries.writer import Stored
from semcache.cache.lookup.selection import Option
from semcache.cache.plan_cache import PlanCache
from semcache.cache.result import Found, Miss
from semcache.catalog.catalog import Catalog
from semcache.catalog.grounding import Grounded
from semcache.errors import (
    InvalidInput,
    InvalidPrompt,
    ModelError,
    NormalizationError,
    NotActionable,
    PlanningError,
    Referred,
)
from semcache.planners.model.grounding import Groundings
from semcache.planners.model.normalizer import ModelNormalizer
from semcache.planners.model.plan_files import PlanFiles
from semcache.planners.model.planner import ModelPlanner
from semcache.planners.model.verification import VerifiedPlanner, verified
from semcache.planners.steps.intent_graph import IntentGraph
from semcache.planners.steps.modular_planner import ModularPlanner
from semcache.plans.plan import ExecutionPlan
from semcache.ports import Normalizer, Planned, Planner, PlanRequest, Selector
from semcache.prompts.parameter import by_name
from semcache.prompts.schema.schema import PromptSchema
from semcache.prompts.text import check_prompt

log = logging.getLogger(__name__)


_NOT_BY_RULES = (ModelPlanner, VerifiedPlanner, PlanFiles)


class Stages:
    """What `SemCache` does for a prompt, one step at a time. Safe from several threads."""

    def __init__(
        self,
        cache: PlanCache,
        catalog: Catalog,
        *,
        normalizers: Sequence[Normalizer],
        planners: Sequence[Planner],
        groundings: Groundings | None,
        selector: Selector | None = None,
        plan_files: PlanFiles | None = None,
        steps: ModularPlanner | None = None,
    ) -> None:
        self.cache = cache
        self.catalog = catalog
        """What plans may call."""
        self.planners = tuple(planners) if plan_files is None else (plan_files, *planners)
        """Who makes plans, in the order in which they are asked."""
        self._normalizers = tuple(normalizers)
        self._groundings = groundings
        self._selector = selector
        self._files = plan_files
        self._steps = steps

    def normalize(
        self,
        prompt: str,
        *,
        params: Mapping[str, object] | None = None,
        by_rules: bool = False,
    ) -> PromptSchema | None:
        """Return the schema of a prompt; see `SemCache.normalize`. `by_rules`: ask no model."""
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
        """Return the use case of a prompt; see `SemCache.ground`."""
        if self._groundings is None:
            return None
        text = check_prompt(prompt, max_chars=self.cache.settings.max_prompt_chars)
        shown = self.cache.redacted(text, prompt=text)
        return self._groundings.match(shown, closed=self.catalog.closed)

    def lookup(
        self,
        prompt: str,
        *,
        tenant: str,
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return what the cache has for a prompt and its use case; see `PlanCache.lookup`."""
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

    @property
    def asks_a_model(self) -> bool:
        """Whether a model is asked what a prompt means, where rules leave words unexplained."""
        return any(isinstance(one, ModelNormalizer) for one in self._normalizers)

    def selects(self, tenant: str) -> bool:
        """Return whether a model may choose among cached plans for the tenant."""
        return self._selector is not None and self.cache.selects(tenant=tenant)

    def select(
        self, prompt: str, *, tenant: str, params: Mapping[str, object] | None, writes: bool
    ) -> Option | None:
        """Return the cached plan that a model chose for a prompt that missed; None if none.

        `writes`: whether plans that write are offered. A model that cannot answer chooses none.
        """
        if self._selector is None:
            return None
        options = self.cache.options(
            prompt, tenant=tenant, params=params, grounding=self._grounding(prompt)
        )
        if not writes:
            options = tuple(one for one in options if not self.writing(one.hit.plan))
        if not options:
            return None
        try:
            chosen = self._selector.select(prompt, [option.shown for option in options])
        except ModelError as error:
            said = self.cache.redacted(str(error), prompt=prompt, params=params)
            log.info("no plan was chosen among those at hand: %s", said)
            return None
        return None if chosen is None else options[chosen]

    def writing(self, plan: ExecutionPlan) -> tuple[str, ...]:
        """Return the operations of a plan that write."""
        known = (self.catalog.get(name) for name in plan.operations() if name in self.catalog)
        return tuple(operation.name for operation in known if operation.effect == "write")

    def create(
        self,
        prompt: str,
        schema: PromptSchema | None,
        *,
        tenant: str,
        params: Mapping[str, object] | None = None,
        failure: str = "",
        missed: Miss | None = None,
        by_rules: bool = False,
    ) -> Planned:
        """Return a new plan; see `SemCache.create`. What was near to `missed` is an example.

        `by_rules`: only the planners before the first that asks a model or needs a schema of one.
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
        self, prompt: str, *, tenant: str, params: Mapping[str, object] | None
    ) -> IntentGraph:
        """Return the steps of a prompt; see `SemCache.decompose`."""
        request = self._request(prompt, None, tenant=tenant, params=params)
        return self._by_steps().decompose(request)

    def resume(self, graph: IntentGraph, *, tenant: str) -> Planned:
        """Return the plan of a graph; see `SemCache.resume_planning`."""
        request = self._request(graph.goal.goal, None, tenant=tenant)
        request = replace(request, params=graph.params, params_read=False)
        return verified(self._by_steps().resume(graph, request), request)

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

    def store(
        self,
        prompt: str,
        planned: Planned,
        *,
        tenant: str,
        schema: PromptSchema | None = None,
        cost_s: float | None = None,
    ) -> Stored:
        """Keep a new plan for its use case; see `PlanCache.store`."""
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
