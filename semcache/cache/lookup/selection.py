"""Plan selection: the cached plans that a missed prompt may mean, and the one that was chosen."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import comb
from typing import NamedTuple

from semcache.cache.context import CacheContext
from semcache.cache.entries.admission import said
from semcache.cache.entries.entry import Entry
from semcache.cache.feedback.promotion import PendingVerification, Promotion
from semcache.cache.lookup.bind_entry import Refused, says_the_same
from semcache.cache.lookup.context import Lookup, bind_candidate, fill, is_vetoed, renew
from semcache.cache.lookup.tiers import neighbors_of
from semcache.cache.query import PromptRequest, Query
from semcache.cache.result import Hit, Miss
from semcache.errors import InvalidInput, InvalidParameter, StoreError
from semcache.matching.gates import CandidatePair, choice_gates
from semcache.matching.model.features import NEIGHBORS
from semcache.matching.model.risk import probability_wrong
from semcache.plans.codec import adopt
from semcache.plans.document import ExecutionPlan
from semcache.ports import PlanOption
from semcache.prompts.parameter import Parameter, by_name, name_key

OPTIONS = 5
"""Plans that are offered at most: the right one is among the five nearest distinct ones for .85 of
what could be served, among ten for .91 (eleven streams that nothing was fitted to)."""
NEAR = 0.5
"""Cosine of template texts under which a plan is not offered: what shares no subject with a prompt
is not worth the question."""
WRONG = 0.05
"""Probability with which a chosen plan may be wrong where no `max_wrong` is set. Most are far less
likely to be: in replays with a simulated model .005 to .007 of all hits were wrong."""
DOUBT = 0.05
"""Chance of so many wrong audits, were the bound kept, under which selection ends."""
CHOICES = (0.0, math.log(19), math.log(19) * 1.5)
"""What so many choices alike add to the log odds that a plan is right. A model that errs once in
twenty chooses the right plan 19 times as often as a wrong one that it is drawn to; asked again, in
another order, it may err for the same reason, so that a second choice counts half."""
MOST = len(CHOICES) - 1

_GATES = choice_gates()


@dataclass(frozen=True, slots=True)
class Option:
    """One plan that a prompt may mean."""

    shown: PlanOption
    """What a selector is shown of it."""
    plan: ExecutionPlan
    """The plan that is shown."""
    entry: str
    """Id of the entry whose plan it is."""
    request: PromptRequest
    """What was asked, with the values that are known."""


class Selection:
    """Offers plans for missed prompts, and takes in which was chosen. Safe from several threads."""

    def __init__(self, context: CacheContext, promotion: Promotion) -> None:
        self._context = context
        self._promotion = promotion

    def options(self, request: PromptRequest) -> tuple[Option, ...]:
        """Return up to five distinct plans, nearest first; see `PlanCache.options`."""
        found: dict[str, Option] = {}
        try:
            lookup = self._lookup(request, choice=CHOICES[1])
            if not len(lookup.view.index):
                return ()
            for group, option in self._near(lookup, request):
                if group not in found or (found[group].shown.missing and not option.shown.missing):
                    found[group] = option
                if len(found) == OPTIONS:
                    break
        except StoreError as error:
            self._context.health.failed(request.tenant, "store", error)
            return ()
        return tuple(found.values())

    def _lookup(self, request: PromptRequest, *, choice: float = 0.0) -> Lookup:
        view = self._context.views.current(request.tenant)
        query = self._context.queries.read(request, view)
        return Lookup(self._context, view, query, view.change, what_if=True, choice=choice)

    def _near(self, lookup: Lookup, request: PromptRequest) -> Iterator[tuple[str, Option]]:
        """Yield the plan groups of near entries and the plan to show of each, whatever its risk."""
        query, entries = lookup.query, lookup.view.entries
        side, given = query.side(), bool(query.given)
        for near in neighbors_of(lookup, query) or ():
            seen = entries.known(near.id)
            if (
                lookup.likeness(near.similarity) < NEAR
                or seen is None
                or seen.prints != query.prints
            ):
                continue
            entry = lookup.known(near.id)
            if entry is None or is_vetoed(lookup, query, near.id):
                continue
            pair = CandidatePair(side, seen.facing(given=given), near.similarity)
            option = _told(lookup, request, entry, near.id) if _GATES.admit(pair) else None
            if option is None:
                option = _wanting(request, query, entry, near.id)
            if option is not None:
                yield seen.group(given=True), option

    def filled(self, option: Option, values: Mapping[str, object]) -> ExecutionPlan | None:
        """Return the plan of an option with `values`; see `PlanCache.filled`."""
        try:
            lookup, entry = self._chosen(option, values)
            return None if entry is None else fill(lookup, entry, lookup.query)[0]
        except Refused:
            return None
        except StoreError as error:
            self._context.health.failed(option.request.tenant, "store", error)
            return None

    def _chosen(
        self, option: Option, values: Mapping[str, object], choices: int = 1
    ) -> tuple[Lookup, Entry | None]:
        """Return the lookup of the prompt with all values of the plan, and the plan's entry.

        Raises:
            InvalidInput: `option` is none, or `values` is no mapping.
            InvalidParameter: `values` are not those that the option misses.
        """
        if not isinstance(option, Option):
            raise InvalidInput(f"option is {option!r:.80}; expected one of `PlanCache.options`")
        if not isinstance(values, Mapping):
            raise InvalidInput(f"values is {values!r:.80}; expected name -> value")
        missing = option.shown.missing
        if values.keys() != missing.keys():
            found, wanted = (", ".join(map(repr, each)) or "none" for each in (values, missing))
            raise InvalidParameter(f"values for {found}; the chosen plan misses {wanted}")
        request = option.request
        request = request._replace(given=(*request.given, *by_name(values)))
        lookup = self._lookup(request, choice=CHOICES[choices])
        return lookup, lookup.known(option.entry)

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

    def choices_needed(self, option: Option, values: Mapping[str, object]) -> int:
        """Return how many choices alike let a plan be served; see `PlanCache.choices_needed`."""
        for choices in range(1, MOST):
            found = self._served(option, values, choices)
            if found is not None and not found.in_doubt:
                return choices
        return 0 if self._served(option, values, MOST) is None else MOST

    def take(
        self,
        option: Option,
        values: Mapping[str, object],
        *,
        choices: int,
        run: str,
        seconds: float,
    ) -> Hit | None:
        """Count a plan that was chosen, let its prompt join it, and return its hit; None: unsure.

        See `PlanCache.take`.
        """
        if choices not in range(1, MOST + 1):
            raise InvalidInput(f"choices is {choices!r}; expected 1 or {MOST}")
        found = self._served(option, values, choices)
        if found is None:
            return None
        if found.in_doubt and not self._is_trusted(found, choices):
            return None
        hit, query, entry = found.hit, found.query, found.entry
        with self._context.health.guarded(query.tenant):
            renew(self._context, "selected", hit.entry, entry)
            self._context.labels.judged(query.tenant, query.shown, hit.entry, right=True)
        params = said([*query.given.values()], query.mentions)
        pending = PendingVerification(query.text, entry.prompt, hit, params, query.grounding)
        self._promotion.verified(pending)
        self._context.reports.looked_up(hit, query.tenant, run, seconds)
        return hit

    def _served(
        self, option: Option, values: Mapping[str, object], choices: int
    ) -> "_Served | None":
        """Return what serving a chosen plan comes to; None: it was removed or cannot be bound."""
        try:
            lookup, entry = self._chosen(option, values, choices)
            if entry is None:
                return None
            weighed = self._weighed(lookup, entry, option.entry)
            if weighed is None:
                return None
            likeness, score = weighed
            bound = bind_candidate(
                lookup, "semantic", entry, lookup.query, score=likeness, entry_id=option.entry
            )
        except Refused:
            return None
        except StoreError as error:
            self._context.health.failed(option.request.tenant, "store", error)
            return None
        if bound.served.is_chosen and choices < MOST:
            score = -math.inf
        in_doubt = score < self._lowest(lookup.query.tenant)
        risk = probability_wrong(score)
        # A plan that is served in doubt is so because the tenant's own choices keep the bound.
        risk = min(risk, self._max_wrong) if in_doubt else risk
        return _Served(lookup.hit("selected", bound, risk), lookup.query, entry, in_doubt)

    def _is_trusted(self, served: "_Served", choices: int) -> bool:
        """Return whether a plan that was chosen in doubt is served; else its prompt is a sample."""
        query = served.query
        hidden = query.secrets is not None and query.secrets.spans
        if choices < MOST or hidden:
            return False
        with self._context.health.guarded(query.tenant):
            if self._context.labels.trusts_choices(query, self._max_wrong):
                return True
            plan = served.hit.plan.to_dict()
            self._context.labels.chosen_in_doubt(query, plan, self._max_wrong)
        return False

    def _weighed(self, lookup: Lookup, entry: Entry, entry_id: str) -> tuple[float, float] | None:
        """Return how alike a prompt and an entry are, and the log odds of its plan.

        None: the entry is not near, or differs in signs. What choices add is in the log odds; they
        are infinitely low where words of negation, comparison or direction differ and the plan was
        not chosen twice.
        """
        query, view = lookup.query, lookup.view
        if says_the_same(entry, query):
            return 1.0, math.inf
        seen = view.entries.known(entry_id)
        neighbors = neighbors_of(lookup, query) or ()
        its = [near for near in neighbors if near.id == entry_id]
        if seen is None or not its:
            return None
        group = seen.group(given=bool(query.given))
        labels = self._context.labels
        usual = labels.weighed(view, query, neighbors)
        one = next((each for each in usual if each.featured.near.group == group), None)
        if one is None:
            # Others crowd it out, or types of values differ: it takes the last place.
            least = (*neighbors[: NEIGHBORS - 1], *its)
            one = labels.weighed_one(_GATES, view, query, least, group)
        if one is None:
            return None
        turned = one.is_turned and lookup.choice < CHOICES[MOST]
        score = -math.inf if turned else one.score + lookup.choice
        return lookup.likeness(one.featured.near.score), score

    @property
    def _max_wrong(self) -> float:
        bound = self._context.settings.max_wrong
        return WRONG if bound is None else bound

    def _lowest(self, tenant: str) -> float:
        """Return the lowest log odds that a chosen plan may have."""
        if self._context.settings.max_wrong is None:
            return math.log((1 - WRONG) / WRONG)
        return self._context.labels.notes.tenants[tenant].cutoff


class _Served(NamedTuple):
    """A chosen plan, bound."""

    hit: Hit
    query: Query
    entry: Entry
    in_doubt: bool
    """Whether it is too likely wrong, although it was chosen."""


def _told(lookup: Lookup, request: PromptRequest, entry: Entry, entry_id: str) -> Option | None:
    """Return a plan with the values that the prompt's words tell; None if they do not."""
    try:
        plan, filled = fill(lookup, entry, lookup.query)
    except Refused:
        return None
    given = [Parameter(name, value) for name, value in filled.values.items() if name in entry.named]
    known = request._replace(given=given)
    return Option(PlanOption(entry.prompt, plan.to_dict()), plan, entry_id, known)


def _wanting(request: PromptRequest, query: Query, entry: Entry, entry_id: str) -> Option | None:
    """Return a plan as it was made, and the values of it that must be told; None if none must."""
    named = {name_key(p.name): p for p in entry.plan.params if p.name in entry.named}
    if not query.given.keys() <= named.keys():
        return None
    missing = {p.name: p.value for key, p in named.items() if key not in query.given}
    if not missing:
        return None
    plan = adopt(entry.plan.plan)
    return Option(PlanOption(entry.prompt, plan.to_dict(), missing), plan, entry_id, request)


def audits_allow(right: int, wrong: int, bound: float | None) -> bool:
    """Return whether audits leave open that no more than `bound` of the chosen plans are wrong.

    An exact binomial test: so many wrong ones, or more, must not be less likely than 5 %.
    """
    share, count = WRONG if bound is None else bound, right + wrong
    below = sum(comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(wrong))
    return 1 - below >= DOUBT
