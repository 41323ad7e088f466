"""Feedback and removal: what becomes of a hit that was judged, and how entries go.

Both are parts of `PlanCache`, which has these methods as its own.
"""

from semcache.cache.context import CacheContext
from semcache.cache.entries.entry import expired, from_record
from semcache.cache.feedback.correction import Correction, Judgment, Removed
from semcache.cache.feedback.promotion import Promotion
from semcache.cache.query import check_switch, check_tenant, check_word, hit_of
from semcache.cache.result import Found, Hit
from semcache.canonical import same
from semcache.errors import InvalidInput
from semcache.plans.codec import PlanSource, decode
from semcache.prompts.template import TemplateText

_INFERRED = frozenset({"semantic", "selected"})
"""Tiers whose hits say of a prompt what others like it taught: a wrong one is no wrong plan."""


class Feedback:
    """What a cache makes of judged hits: they count, label the risk, join, veto or remove."""

    _context: CacheContext
    _promotion: Promotion

    def feedback(self, found: Found, *, right: bool) -> Judgment:
        """Take a caller's word that a hit was right or wrong; return what became of it.

        The prompt of a right semantic hit joins the plan, so that others like it are found by their
        words; that costs one embedding. A wrong semantic hit is never served to that template
        again. A wrong hit of any other tier, or of the entry's own template, says that the plan
        itself is wrong: its entry is removed. If the store cannot take it now, it holds for this
        process all the same, is kept beside the store, and is done when the store answers.

        Raises:
            InvalidInput: `found` is a miss; there is nothing to judge.
        """
        hit = hit_of(found)
        check_switch("right", right)
        self._context.reports.count(hit.trace.tenant, "right" if right else "wrong")
        self._label(hit, right=right)
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
        """Take in the plan that was made for a prompt although it hit; return whether it agrees.

        Such labels are of hits as they come, and so keep the bound honest. Whether a plan that
        differs is better, nobody says: nothing is removed.

        Raises:
            InvalidInput: `hit` is none.
            InvalidPlan: `plan` is none; nothing is counted.
        """
        tenant = hit_of(hit).trace.tenant
        made = self._context.volatile.without(decode(plan).to_dict())
        agrees = same(hit.plan.to_dict(), made)
        self._context.reports.count(tenant, "explored")
        if not agrees:
            self._context.reports.count(tenant, "explored_wrong")
        if hit.tier == "selected":
            self._context.reports.count(tenant, f"selected:{'right' if agrees else 'wrong'}")
        self._label(hit, right=agrees, explored=True)
        return agrees

    def judged(self, hit: Hit, *, right: bool) -> None:
        """Let the risk model know how a hit turned out; nothing is vetoed or removed.

        Raises:
            InvalidInput: `hit` is none, or `right` is neither True nor False.
        """
        check_switch("right", right)
        self._label(hit_of(hit), right=right)

    def _label(self, hit: Hit, *, right: bool, explored: bool = False) -> None:
        tenant, prompt = hit.trace.tenant, hit.trace.prompt
        with self._context.health.guarded(tenant):
            self._context.labels.judged(tenant, prompt, hit.entry, right=right, explored=explored)


class Removal:
    """The removal of entries: by what they are called, by age, or all at once."""

    _context: CacheContext

    def invalidate(
        self,
        *,
        tenant: str = "default",
        id: str | None = None,  # noqa: A002 - the word of the entry
        tag: str | None = None,
        operation: str | None = None,
        key: str | None = None,
    ) -> Removed:
        """Remove the tenant's entries with that id, tag, operation or key; return how many.

        `key` is a Prompt Schema Key. Several of them remove what any of them names. If the store
        cannot take it now, `pending` of the number says so: the entries are not served by this
        process from now on, and go when the store answers, in a later process if need be.

        Raises:
            InvalidInput: nothing is named; `clear` removes all.
        """
        check_tenant(tenant)
        labels = {"tag": tag, "operation": operation, "key": key}
        wanted = [f"{name}:{value}" for name, value in labels.items() if value is not None]
        if not wanted and id is None:
            raise InvalidInput("name an id, a tag, an operation or a key; `clear` removes all")
        for name, value in {**labels, "id": id}.items():
            if value is not None:
                check_word(name, value)
        ids = () if id is None else (id,)
        return self._context.corrections.make(Correction("remove", tenant, ids, tuple(wanted)))

    def remove_expired(self, *, tenant: str = "default") -> int:
        """Remove the tenant's expired entries, which are never served anyway; return how many."""
        check_tenant(tenant)
        context, removed = self._context, 0
        with context.health.guarded(tenant):
            now = context.clock.now()
            old = [r.id for r in context.store.scan(tenant) if expired(r, now)]
            removed = context.store.remove(tenant, old)
            if removed:
                context.health.removed(tenant, removed, "expired")
        return removed

    def clear(self, *, tenant: str | None = None) -> Removed:
        """Remove everything of the tenant, or of every tenant (None); return how many entries.

        If the store cannot do it now, `pending` of the number says so; see `invalidate`.
        """
        if tenant is not None:
            check_tenant(tenant)
        return self._context.corrections.make(Correction("clear", tenant, why="cleared"))
