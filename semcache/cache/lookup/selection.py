"""Plan selection: the cached plans that a missed prompt may mean, and the one that was chosen."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import comb

from semcache.cache.entries.entry import Entry
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.feedback.feedback import Promotion
from semcache.cache.lookup.bind_entry import Refused
from semcache.cache.lookup.context import Lookup, Parts
from semcache.cache.lookup.evaluation import serve
from semcache.cache.lookup.semantic import neighbors_of
from semcache.cache.lookup.verification import PendingVerification, said_now
from semcache.cache.result import Hit, Miss
from semcache.cache.shared import CacheContext
from semcache.cache.tool_sets import Tools
from semcache.canonical import digest
from semcache.errors import StoreError
from semcache.events import Tier
from semcache.matching.gates import Pair
from semcache.ports import PlanOption
from semcache.prompts.schema.schema import PromptSchema

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


@dataclass(frozen=True, slots=True)
class Option:
    """One plan that a prompt may mean."""

    hit: Hit
    """What would be served: the plan with this prompt's own values, checked."""
    shown: PlanOption
    """What a selector is shown of it."""
    grey: PendingVerification
    """What joins the plan if it is chosen."""


class Selection:
    """Offers plans for missed prompts, and takes in which was chosen. Safe from several threads."""

    def __init__(
        self, shared: CacheContext, parts: Parts, joining: Promotion, labels: TrainingLabels
    ) -> None:
        self._shared = shared
        self._parts = replace(parts, served=_unnoticed)
        self._served = parts.served
        self._joining = joining
        self._labels = labels

    def options(
        self,
        prompt: str,
        *,
        tenant: str,
        params: Mapping[str, object] | None,
        schema: PromptSchema | None,
        grounding: str,
        tools: Tools | None = None,
    ) -> tuple[Option, ...]:
        """Return up to five distinct plans, nearest first; see `PlanCache.options`."""
        text, given = self._shared.asking.checked(prompt, tenant, params)
        tool_set = self._shared.asking.tools(tools)
        try:
            view = self._shared.views.current(tenant)
            asked = self._shared.asking.read(
                text,
                tenant,
                given,
                grounding=grounding,
                view=view,
                schema=schema,
                tools=tool_set,
            )
            if not len(view.index):
                return ()
            lookup = Lookup(self._parts, view, asked, view.change)
            found: dict[str, Option] = {}
            for option in self._bindable(lookup):
                found.setdefault(digest(option.hit.plan.to_dict()), option)
                if len(found) == OPTIONS:
                    break
        except StoreError as error:
            self._shared.trouble.failed(tenant, "store", error)
            return ()
        return tuple(found.values())

    def _bindable(self, lookup: Lookup) -> Iterator[Option]:
        """Yield what is near and can take the prompt's values, whatever its risk."""
        asked, entries = lookup.asked, lookup.view.entries
        side = asked.side()
        for near in (neighbors_of(lookup, asked) or ())[:TRIED]:
            seen = entries.known(near.id)
            if near.similarity < NEAR or seen is None:
                continue
            facing = seen.facing(given=bool(asked.given))
            if not lookup.parts.near(Pair(side, facing, near.similarity))[-1].passed:
                continue
            entry = lookup.known(near.id)
            if entry is None:
                continue
            try:
                passed = serve(
                    lookup, "semantic", entry, asked, score=near.similarity, entry_id=near.id
                )
            except Refused:
                continue
            hit = lookup.hit("selected", passed)
            shown = PlanOption(entry.prompt, hit.plan.to_dict())
            params = said_now(entry, asked, hit)
            grey = PendingVerification(asked.text, entry.prompt, hit, params, asked.grounding)
            yield Option(hit, shown, grey)

    def example(self, missed: Miss) -> PlanOption | None:
        """Return the plan nearest to a prompt that missed, as it was made; see `PlanCache`."""
        near = missed.nearest
        if near is None or near.score < NEAR:
            return None
        tenant = missed.trace.tenant
        with self._shared.trouble.guarded(tenant):
            record = self._shared.store.get(tenant, near.entry)
            if record is not None:
                entry = self._parts.decoded.entry(record)
                return PlanOption(entry.prompt, entry.plan.plan)
        return None

    def take(self, option: Option, *, run: str, seconds: float) -> Hit:
        """Count a plan that was chosen, let its prompt join it, and return its hit."""
        hit = option.hit
        tenant = hit.trace.tenant
        with self._shared.trouble.guarded(tenant):
            record = self._shared.store.get(tenant, hit.entry)
            if record is not None:
                self._served("selected", hit.entry, self._parts.decoded.entry(record))
            self._labels.judged(tenant, option.grey.asked, hit.entry, right=True)
        self._joining.verified(option.grey)
        self._shared.reports.looked_up(hit, tenant, run, seconds)
        return hit


def trusted(right: int, wrong: int, bound: float | None) -> bool:
    """Return whether audits leave open that no more than `bound` of the chosen plans are wrong.

    An exact binomial test: so many wrong ones, or more, must not be less likely than 5 %.
    """
    share, count = WRONG if bound is None else bound, right + wrong
    below = sum(comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(wrong))
    return 1 - below >= DOUBT


def _unnoticed(tier: Tier, known: str, entry: Entry) -> None:
    """Let an option that was not chosen make no entry live longer."""
