"""Plan selection: the cached plans that a missed prompt may mean, and the one that was chosen."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import comb

from semcache.cache.context import CacheContext
from semcache.cache.feedback.promotion import PendingVerification, Promotion, parameters_now
from semcache.cache.lookup.bind_entry import Refused
from semcache.cache.lookup.context import Lookup, renew
from semcache.cache.lookup.evaluation import bind_candidate
from semcache.cache.lookup.semantic import neighbors_of
from semcache.cache.query import PromptRequest
from semcache.cache.result import Hit, Miss
from semcache.canonical import digest
from semcache.errors import StoreError
from semcache.matching.gates import CandidatePair, risk_gates
from semcache.ports import PlanOption

OPTIONS = 5
"""Plans that are offered at most: the right one is among the five nearest distinct ones for .85 of
what could be served, among ten for .91 (eleven streams that nothing was fitted to)."""
NEAR = 0.5
"""Cosine of template texts under which a plan is not offered: what shares no subject with a prompt
is not worth the question."""
TRIED = 32
"""Neighbors that are bound at most while options are looked for."""
WRONG = 0.05
"""Share of chosen plans that may be wrong where no `max_wrong` is set."""
DOUBT = 0.05
"""Chance of so many wrong audits, were the bound kept, under which selection ends."""

_GATES = risk_gates()


@dataclass(frozen=True, slots=True)
class Option:
    """One plan that a prompt may mean."""

    hit: Hit
    """What would be served: the plan with this prompt's own values, checked."""
    shown: PlanOption
    """What a selector is shown of it."""
    pending: PendingVerification
    """What joins the plan if it is chosen."""


class Selection:
    """Offers plans for missed prompts, and takes in which was chosen. Safe from several threads."""

    def __init__(self, context: CacheContext, promotion: Promotion) -> None:
        self._context = context
        self._promotion = promotion

    def options(self, request: PromptRequest) -> tuple[Option, ...]:
        """Return up to five distinct plans, nearest first; see `PlanCache.options`."""
        try:
            view = self._context.views.current(request.tenant)
            query = self._context.queries.read(request, view)
            if not len(view.index):
                return ()
            lookup = Lookup(self._context, view, query, view.change, what_if=True)
            found: dict[str, Option] = {}
            for option in self._bindable(lookup):
                found.setdefault(digest(option.hit.plan.to_dict()), option)
                if len(found) == OPTIONS:
                    break
        except StoreError as error:
            self._context.health.failed(request.tenant, "store", error)
            return ()
        return tuple(found.values())

    def _bindable(self, lookup: Lookup) -> Iterator[Option]:
        """Yield what is near and can take the prompt's values, whatever its risk."""
        query, entries = lookup.query, lookup.view.entries
        side = query.side()
        for near in (neighbors_of(lookup, query) or ())[:TRIED]:
            seen = entries.known(near.id)
            if near.similarity < NEAR or seen is None:
                continue
            facing = seen.facing(given=bool(query.given))
            if not _GATES(CandidatePair(side, facing, near.similarity))[-1].passed:
                continue
            entry = lookup.known(near.id)
            if entry is None:
                continue
            try:
                passed = bind_candidate(
                    lookup, "semantic", entry, query, score=near.similarity, entry_id=near.id
                )
            except Refused:
                continue
            hit = lookup.hit("selected", passed)
            shown = PlanOption(entry.prompt, hit.plan.to_dict())
            params = parameters_now(entry, query, hit)
            pending = PendingVerification(query.text, entry.prompt, hit, params, query.grounding)
            yield Option(hit, shown, pending)

    def example(self, missed: Miss) -> PlanOption | None:
        """Return the plan nearest to a prompt that missed, as it was made; see `PlanCache`."""
        near = missed.nearest
        if near is None or near.score < NEAR:
            return None
        tenant = missed.trace.tenant
        with self._context.health.guarded(tenant):
            record = self._context.store.get(tenant, near.entry)
            if record is not None:
                entry = self._context.entries.entry(record)
                return PlanOption(entry.prompt, entry.plan.plan)
        return None

    def take(self, option: Option, *, run: str, seconds: float) -> Hit:
        """Count a plan that was chosen, let its prompt join it, and return its hit."""
        hit = option.hit
        tenant = hit.trace.tenant
        with self._context.health.guarded(tenant):
            record = self._context.store.get(tenant, hit.entry)
            if record is not None:
                entry = self._context.entries.entry(record)
                renew(self._context, "selected", hit.entry, entry)
            self._context.labels.judged(tenant, option.pending.prompt, hit.entry, right=True)
        self._promotion.verified(option.pending)
        self._context.reports.looked_up(hit, tenant, run, seconds)
        return hit


def audits_allow(right: int, wrong: int, bound: float | None) -> bool:
    """Return whether audits leave open that no more than `bound` of the chosen plans are wrong.

    An exact binomial test: so many wrong ones, or more, must not be less likely than 5 %.
    """
    share, count = WRONG if bound is None else bound, right + wrong
    below = sum(comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(wrong))
    return 1 - below >= DOUBT
