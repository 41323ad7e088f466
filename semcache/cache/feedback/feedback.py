"""Feedback: what a caller, a verifier, or a plan made anew says of a hit, and what becomes of it.

A prompt that is known to have an entry's plan becomes one more entry of that plan, so that the next
prompt like it is found by its words. Known is what a verifier confirmed or somebody said was right;
a hit that nobody looked at teaches nothing.
"""

import logging
from collections.abc import Sequence

from semcache.cache.checks import check_right, hit_of
from semcache.cache.entries.admission import said
from semcache.cache.entries.entry import Entry, from_record
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.feedback.corrections import Correction, Corrections, Judgment
from semcache.cache.lookup.verification import PendingVerification
from semcache.cache.result import Found, Hit
from semcache.cache.shared import CacheContext
from semcache.cache.store_plan import PlanIntake
from semcache.canonical import same
from semcache.errors import SemCacheError, StoreError
from semcache.plans.codec import PlanSource, decode
from semcache.prompts.parameter import Parameter
from semcache.prompts.template import TemplateText

log = logging.getLogger(__name__)


class Promotion:
    """Lets confirmed prompts join a plan. Safe from several threads; nothing is raised."""

    def __init__(self, shared: CacheContext, keeping: PlanIntake) -> None:
        self._shared = shared
        self._keeping = keeping

    def verified(self, grey: PendingVerification) -> None:
        """Let a candidate that the verifier confirmed join."""
        with self._shared.trouble.guarded(grey.hit.trace.tenant):
            source = self._source(grey.hit)
            if source is not None:
                self._join(grey.asked, grey.hit, source, grey.params, "verified")

    def right(self, hit: Hit) -> None:
        """Let the prompt of a semantic hit that was right join, if its words carry the values.

        Not where prompts are redacted: of a hit, only what may be written down is known.
        """
        if hit.tier != "semantic" or self._shared.asking.redact is not None:
            return
        with self._shared.trouble.guarded(hit.trace.tenant):
            source = self._source(hit)
            params = self._said(hit, source) if source is not None else None
            if source is not None and params is not None:
                self._join(hit.trace.prompt, hit, source, params, "confirmed")

    def _source(self, hit: Hit) -> Entry | None:
        record = self._shared.store.get(hit.trace.tenant, hit.entry)
        return None if record is None else from_record(record)

    def _said(self, hit: Hit, source: Entry) -> tuple[Parameter, ...] | None:
        """Return the hit's named values with their words; None if one has none but had some."""
        tenant = hit.trace.tenant
        given = [Parameter(name, hit.params[name]) for name in source.named if name in hit.params]
        view = self._shared.views.current(tenant)
        asked = self._shared.asking.read(
            hit.trace.prompt,
            tenant,
            given,
            grounding=source.grounding,
            view=view,
            schema=None,
            tools=self._shared.asking.tools_with(source.catalog),
        )
        params = said(given, asked.mentions)
        lost = [p.name for p in params if p.mention is None and p.name in source.plan.carriers]
        return None if lost else params

    def _join(
        self, prompt: str, hit: Hit, source: Entry, params: Sequence[Parameter], planner: str
    ) -> None:
        try:
            kept = self._keeping.join(
                prompt, hit.plan, source=source, params=params, planner=planner
            )
        except StoreError:
            raise  # told by who guards against it
        except SemCacheError as error:
            log.debug("a confirmed prompt did not join its plan: %s", type(error).__name__)
        else:
            log.debug("a confirmed prompt %s", "joined its plan" if kept else kept.reason)


_INFERRED = frozenset({"semantic", "selected"})
"""Tiers whose hits say of a prompt what others like it taught: a wrong one is no wrong plan."""


class Feedback:
    """Takes judgments of hits: they count, label the risk, join, veto or remove. Thread-safe."""

    def __init__(
        self,
        shared: CacheContext,
        labels: TrainingLabels,
        corrections: Corrections,
        joining: Promotion,
    ) -> None:
        self._shared = shared
        self._labels = labels
        self._corrections = corrections
        self._joining = joining

    def feedback(self, found: Found, *, right: bool) -> Judgment:
        """Take a caller's word; see `PlanCache.feedback`."""
        hit = hit_of(found)
        check_right(right)
        self._shared.reports.count(hit.trace.tenant, "right" if right else "wrong")
        self.judged(hit, right=right)
        if not right:
            return self._take_back(hit)
        self._joining.right(hit)
        return Judgment("counted")

    def _take_back(self, hit: Hit) -> Judgment:
        tenant, entries = hit.trace.tenant, (hit.entry,)
        asked = TemplateText(hit.trace.template, ())
        if hit.tier in _INFERRED and not self._of_its_own(hit, asked.text):
            veto = Correction("veto", tenant, entries, template=asked.digest, why="feedback")
            made = self._corrections.make(veto)
            self._leave(tenant, asked.digest)
            return Judgment("vetoed", made.pending)
        removed = self._corrections.make(Correction("remove", tenant, entries, why="feedback"))
        return Judgment("removed", removed.pending)

    def _of_its_own(self, hit: Hit, template: str) -> bool:
        """Return whether the prompt has the template of the entry itself, as far as can be told."""
        with self._shared.trouble.guarded(hit.trace.tenant):
            seen = self._shared.views.current(hit.trace.tenant).entries.get(hit.entry)
            return seen is not None and seen.side.template.text == template
        return False

    def _leave(self, tenant: str, template: str) -> None:
        """Take back that a prompt joined a plan on somebody's word, by which it hits exactly."""
        joined: tuple[str, ...] = ()
        with self._shared.trouble.guarded(tenant):
            records = self._shared.store.find(tenant, f"template:{template}")
            joined = tuple(r.id for r in records if from_record(r).planner == "verified")
        if joined:
            self._corrections.make(Correction("remove", tenant, joined, why="feedback"))

    def audit(self, hit: Hit, plan: PlanSource) -> bool:
        """Compare a hit with the plan that was made all the same; see `PlanCache.audit`."""
        tenant = hit_of(hit).trace.tenant
        made = self._shared.volatile.without(decode(plan).to_dict())
        agrees = same(hit.plan.to_dict(), made)
        self._shared.reports.count(tenant, "explored")
        if not agrees:
            self._shared.reports.count(tenant, "explored_wrong")
        if hit.tier == "selected":
            self._shared.reports.count(tenant, f"selected:{'right' if agrees else 'wrong'}")
        self.judged(hit, right=agrees, explored=True)
        return agrees

    def judged(self, hit: Hit, *, right: bool, explored: bool = False) -> None:
        """Let the risk model know how a hit turned out; nothing is vetoed or removed."""
        check_right(right)
        with self._shared.trouble.guarded(hit_of(hit).trace.tenant):
            tenant, prompt = hit.trace.tenant, hit.trace.prompt
            self._labels.judged(tenant, prompt, hit.entry, right=right, explored=explored)
