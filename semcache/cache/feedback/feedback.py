"""Feedback: what a caller, or a plan made anew, says of a hit, and what becomes of it."""

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import expired, from_record
from semcache.cache.feedback.corrections import Correction, Judgment, Removed
from semcache.cache.feedback.promotion import Promotion
from semcache.cache.query import check_right, check_tenant, check_word, hit_of
from semcache.cache.result import Found, Hit
from semcache.canonical import same
from semcache.errors import InvalidInput
from semcache.plans.codec import PlanSource, decode
from semcache.prompts.template import TemplateText

_INFERRED = frozenset({"semantic", "selected"})
"""Tiers whose hits say of a prompt what others like it taught: a wrong one is no wrong plan."""


class Feedback:
    """Takes judgments of hits: they count, label the risk, join, veto or remove. Thread-safe."""

    def __init__(
        self,
        context: CacheContext,
        promotion: Promotion,
    ) -> None:
        self._context = context
        self._promotion = promotion

    def feedback(self, found: Found, *, right: bool) -> Judgment:
        """Take a caller's word; see `PlanCache.feedback`."""
        hit = hit_of(found)
        check_right(right)
        self._context.reports.count(hit.trace.tenant, "right" if right else "wrong")
        self.judged(hit, right=right)
        if not right:
            return self._take_back(hit)
        self._promotion.right(hit)
        return Judgment("counted")

    def _take_back(self, hit: Hit) -> Judgment:
        tenant, entries = hit.trace.tenant, (hit.entry,)
        query = TemplateText(hit.trace.template, ())
        if hit.tier in _INFERRED and not self._of_its_own(hit, query.text):
            veto = Correction("veto", tenant, entries, template=query.digest, why="feedback")
            made = self._context.corrections.make(veto)
            self._leave(tenant, query.digest)
            return Judgment("vetoed", made.pending)
        removed = self._context.corrections.make(
            Correction("remove", tenant, entries, why="feedback")
        )
        return Judgment("removed", removed.pending)

    def _of_its_own(self, hit: Hit, template: str) -> bool:
        """Return whether the prompt has the template of the entry itself, as far as can be told."""
        with self._context.health.guarded(hit.trace.tenant):
            seen = self._context.views.current(hit.trace.tenant).entries.get(hit.entry)
            return seen is not None and seen.side.template.text == template
        return False

    def _leave(self, tenant: str, template: str) -> None:
        """Take back that a prompt joined a plan on somebody's word, by which it hits exactly."""
        joined: tuple[str, ...] = ()
        with self._context.health.guarded(tenant):
            records = self._context.store.find(tenant, f"template:{template}")
            joined = tuple(r.id for r in records if from_record(r).planner == "verified")
        if joined:
            self._context.corrections.make(Correction("remove", tenant, joined, why="feedback"))

    def audit(self, hit: Hit, plan: PlanSource) -> bool:
        """Compare a hit with the plan that was made all the same; see `PlanCache.audit`."""
        tenant = hit_of(hit).trace.tenant
        made = self._context.volatile.without(decode(plan).to_dict())
        agrees = same(hit.plan.to_dict(), made)
        self._context.reports.count(tenant, "explored")
        if not agrees:
            self._context.reports.count(tenant, "explored_wrong")
        if hit.tier == "selected":
            self._context.reports.count(tenant, f"selected:{'right' if agrees else 'wrong'}")
        self.judged(hit, right=agrees, explored=True)
        return agrees

    def judged(self, hit: Hit, *, right: bool, explored: bool = False) -> None:
        """Let the risk model know how a hit turned out; nothing is vetoed or removed."""
        check_right(right)
        with self._context.health.guarded(hit_of(hit).trace.tenant):
            tenant, prompt = hit.trace.tenant, hit.trace.prompt
            self._context.labels.judged(tenant, prompt, hit.entry, right=right, explored=explored)


# Removal: entries go by what they are called, by age, or all at once.


class Removal:
    """Removes entries and tells of it. Safe from several threads; trouble removes none."""

    def __init__(self, context: CacheContext) -> None:
        self._corrections = context.corrections
        self._store = context.store
        self._clock = context.clock
        self._health = context.health

    def named(
        self,
        tenant: str,
        *,
        entry: str | None,
        tag: str | None,
        operation: str | None,
        key: str | None,
    ) -> Removed:
        """Remove what any of these names; return how many entries. See `PlanCache.invalidate`."""
        check_tenant(tenant)
        labels = {"tag": tag, "operation": operation, "key": key}
        wanted = [f"{name}:{value}" for name, value in labels.items() if value is not None]
        if not wanted and entry is None:
            raise InvalidInput("name an id, a tag, an operation or a key; `clear` removes all")
        for name, value in {**labels, "id": entry}.items():
            if value is not None:
                check_word(name, value)
        ids = () if entry is None else (entry,)
        return self._corrections.make(Correction("remove", tenant, ids, tuple(wanted)))

    def expired(self, tenant: str) -> int:
        """Remove what has expired by now; return how many entries."""
        check_tenant(tenant)
        removed = 0
        with self._health.guarded(tenant):
            now = self._clock.now()
            old = [r.id for r in self._store.scan(tenant) if expired(r, now)]
            removed = self._store.remove(tenant, old)
            if removed:
                self._health.removed(tenant, removed, "expired")
        return removed

    def everything(self, tenant: str | None) -> Removed:
        """Remove and forget everything of the tenant, or of all (None); return how many entries."""
        if tenant is not None:
            check_tenant(tenant)
        return self._corrections.make(Correction("clear", tenant, why="cleared"))
