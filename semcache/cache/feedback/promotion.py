"""Promotion: a prompt that is known to have an entry's plan becomes one more entry of that plan.

So the next prompt like it is found by its words. Known is what a verifier confirmed or somebody
said was right; a hit that nobody looked at teaches nothing.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from semcache.cache.context import CacheContext
from semcache.cache.entries.admission import said
from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.query import Query
from semcache.cache.result import Hit
from semcache.cache.store_plan import PlanIntake
from semcache.errors import SemCacheError, StoreError
from semcache.matching.gates import match_slots
from semcache.prompts.parameter import Parameter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PendingVerification:
    """A candidate in doubt."""

    prompt: str
    planned: str
    """The prompt that the plan was made for."""
    hit: Hit
    """What would be served."""
    params: tuple[Parameter, ...]
    """The values that the plan depends on, with this prompt's own."""
    grounding: str


class Promotion:
    """Lets confirmed prompts join a plan. Safe from several threads; nothing is raised."""

    def __init__(self, context: CacheContext, intake: PlanIntake) -> None:
        self._context = context
        self._intake = intake

    def verified(self, pending: PendingVerification) -> None:
        """Let a candidate that the verifier confirmed join."""
        with self._context.health.guarded(pending.hit.trace.tenant):
            source = self._source(pending.hit)
            if source is not None:
                self._join(pending.prompt, pending.hit, source, pending.params, "verified")

    def right(self, hit: Hit) -> None:
        """Let the prompt of a semantic hit that was right join, if its words carry the values.

        Not where prompts are redacted: of a hit, only what may be written down is known.
        """
        if hit.tier != "semantic" or self._context.queries.redact is not None:
            return
        with self._context.health.guarded(hit.trace.tenant):
            source = self._source(hit)
            params = self._said(hit, source) if source is not None else None
            if source is not None and params is not None:
                self._join(hit.trace.prompt, hit, source, params, "confirmed")

    def _source(self, hit: Hit) -> Entry | None:
        record = self._context.store.get(hit.trace.tenant, hit.entry)
        return None if record is None else from_record(record)

    def _said(self, hit: Hit, source: Entry) -> tuple[Parameter, ...] | None:
        """Return the hit's named values with their words; None if one has none but had some."""
        tenant = hit.trace.tenant
        given = [Parameter(name, hit.params[name]) for name in source.named if name in hit.params]
        view = self._context.views.current(tenant)
        queries = self._context.queries
        request = queries.request(
            hit.trace.prompt,
            tenant=tenant,
            params=given,
            grounding=source.grounding,
            tools=queries.tools_with(source.catalog),
        )
        query = queries.read(request, view)
        params = said(given, query.mentions)
        lost = [p.name for p in params if p.mention is None and p.name in source.plan.carriers]
        return None if lost else params

    def _join(
        self, prompt: str, hit: Hit, source: Entry, params: Sequence[Parameter], planner: str
    ) -> None:
        try:
            kept = self._intake.join(
                prompt, hit.plan, source=source, params=params, planner=planner
            )
        except StoreError:
            raise  # told by who guards against it
        except SemCacheError as error:
            log.debug("a confirmed prompt did not join its plan: %s", type(error).__name__)
        else:
            log.debug("a confirmed prompt %s", "joined its plan" if kept else kept.reason)


def parameters_now(entry: Entry, query: Query, hit: Hit) -> tuple[Parameter, ...]:
    """Return the named parameters of `entry` with the values of `query` and the words for them."""
    roles = match_slots(entry.template.slots, query.template.slots) or ()
    words = {
        slot.name: query.mentions[role].text
        for slot, role in zip(entry.reading.slots, roles, strict=False)
        if not query.given
    }
    return tuple(
        Parameter(name, value, mention=words.get(name))
        for name, value in hit.params.items()
        if name in entry.named
    )
