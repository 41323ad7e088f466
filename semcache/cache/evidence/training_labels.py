"""Training labels: what plans and feedback say of the risk of plan groups and of values."""

from collections.abc import Collection

from semcache.cache.evidence.candidate_risk import (
    CandidateRisk,
    DoubtfulChoice,
    NearlyServed,
    Reading,
)
from semcache.cache.query import Query
from semcache.canonical import Json, digest
from semcache.matching.evidence import DOUBTFUL, Evidence
from semcache.matching.learning import is_sample, learn_judgment, learn_plan, learn_record
from semcache.matching.model.bound import is_full, is_withheld, opens
from semcache.prompts.mentions import Mention
from semcache.prompts.template import slot_name

WITHHELD = 10
"""One in so many plans that are served although their choice was in doubt is made all the same:
half as often as under the cutoff, since two wrong ones end the trust."""


class TrainingLabels(CandidateRisk):
    """Learns from plans and feedback what the risk of candidates was. Thread-safe."""

    # Sampling ------------------------------------------------------------------------------

    def not_served(self, query: Query, score: float, plan: Json, *, withheld: bool) -> None:
        """Take in that `plan` was not served to a prompt; the prompt's own makes it a sample.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        self._nearly.put((query.tenant, query.shown), NearlyServed(score, digest(plan)))
        if withheld:
            self.notes.withheld(query.tenant)

    def trusts_choices(self, query: Query, max_wrong: float) -> bool:
        """Return whether a plan chosen in doubt may be served to a prompt.

        So it is once the tenant's own prompts tell, by a bet as in `bound`, that fewer than
        `max_wrong` of such choices are wrong; one in a few is planned all the same, to go on
        telling.

        Raises:
            StoreUnavailable: the evidence cannot be read.
        """
        right, wrong = self.notes.tenants[query.tenant].evidence.chosen.of(DOUBTFUL)
        return opens(right, wrong, max_wrong) and not is_withheld(query.shown, WITHHELD)

    def chosen_in_doubt(self, query: Query, plan: Json, max_wrong: float) -> None:
        """Take in that `plan` was chosen and not served; the prompt's own makes it a sample.

        `max_wrong`: as for `trusts_choices`.
        """
        chosen = DoubtfulChoice(digest(plan), max_wrong)
        self._chosen.put((query.tenant, query.shown), chosen)

    # Learning ------------------------------------------------------------------------------

    def planned(
        self,
        tenant: str,
        text: str,
        groups: Collection[str],
        mentions: Collection[Mention] = (),
        *,
        plan: Json = None,
        contested: bool = False,
    ) -> None:
        """Take in the plan of a prompt that was looked up before: it labels its neighbors.

        `mentions`: what its values turned out to be; they label what was supposed. `plan`: the plan
        itself. `contested`: whether the tenant has another plan for the same words: then nobody can
        tell from words which it is, and the prompt is no sample of how well that is told.

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        with self._lock:
            readings = self._asked.pop((tenant, text)) or ()
            changed = self._changed.pop((tenant, text))
            nearly = self._nearly.pop((tenant, text))
            chosen = self._chosen.pop((tenant, text))
            told = any(read.weighed or read.supposed for read in readings)
            if changed is None and chosen is None and not told:
                return
            self._answered.put((tenant, text), readings)
        news = Evidence()
        if changed is not None:
            news.values.add(changed.kind, same=changed.group in groups)
        if chosen is not None and not contested:
            is_same = chosen.plan == digest(plan)
            counts = self.notes.tenants[tenant].evidence.chosen.of(DOUBTFUL)
            # As much as is won counts no more: so two wrong ones in a row end the trust.
            if not is_same or not is_full(*counts, chosen.max_wrong):
                news.chosen.add(DOUBTFUL, same=is_same)
        if nearly is not None and not contested:
            is_same = nearly.plan == digest(plan)
            news.samples.add(self.notes.scale, nearly.score, right=is_same)
            if nearly.score >= self.notes.shipped:
                # Judged hits had raised the cutoff over it: this is how it comes down again.
                learn_record(news, nearly.score, right=is_same)
        spans = {(m.start, m.end, slot_name(m.kind)) for m in mentions}
        right = [read for read in readings if news.read_right(read.supposed, spans)]
        last = right[-1] if right else Reading((), ())
        known = self.notes.tenants[tenant]
        with known.lock:
            # Readings that were wrong say nothing of words; that they were is in the evidence now.
            learn_plan(news, last.weighed, groups, model=known.model, cutoff=known.cutoff)
        self.notes.take(tenant, news)

    def judged(
        self, tenant: str, text: str, entry: str, *, right: bool, explored: bool = False
    ) -> None:
        """Take in how a hit turned out, by somebody's word or by the plan made for it (`explored`).

        Raises:
            StoreUnavailable: the evidence cannot be read or written.
        """
        key = (tenant, text)
        with self._lock:
            unplanned = key in self._asked
            changed = self._changed.pop(key)
            readings = self._asked.get(key) or self._answered.get(key) or ()
        weighed = (*readings[-1].weighed, *readings[-1].others) if readings else ()
        served = next((one for one in weighed if one.entry == entry), None)
        news = Evidence()
        # Who says that a hit was wrong has its entry vetoed or removed: nothing of others is said.
        if changed is not None and changed.entry == entry and (right or explored):
            news.values.add(changed.kind, same=right)
            if served is None:
                self.notes.take(tenant, news)
        if served is None:
            return
        learn_record(news, served.score, right=right)
        if is_sample(served, right=right, explored=explored):
            news.samples.add(self.notes.scale, served.score, right=right)
        if unplanned:  # else its plan has labeled the pair already
            known = self.notes.tenants[tenant]
            with known.lock:
                learn_judgment(
                    news,
                    served,
                    model=known.model,
                    cutoff=known.cutoff,
                    right=right,
                    explored=explored,
                )
        self.notes.take(tenant, news, at_once=True)

    # Keeping -------------------------------------------------------------------------------

    def forget_texts(self, tenant: str | None) -> None:
        """Forget how prompts of the tenant, or of all (None), were weighed, planned yet or not."""
        self._weighings.forget(lambda key: tenant in {None, key.tenant})
        for remembered in (
            self._asked,
            self._answered,
            self._changed,
            self._nearly,
            self._chosen,
        ):
            remembered.forget(lambda key: tenant in {None, key[0]})

    def forget(self, tenant: str | None) -> None:
        """Drop what is in memory of the tenant, or of all (None)."""
        self.notes.forget(tenant)
        self.forget_texts(tenant)
