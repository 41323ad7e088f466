"""Lookup: a prompt is asked for tier by tier, in doubt shown to a verifier, and accounted for."""

from semcache.cache.checks import check_switch
from semcache.cache.context import CacheContext
from semcache.cache.feedback.promotion import PendingVerification, parameters_now
from semcache.cache.lookup.context import Lookup
from semcache.cache.lookup.exact import by_alignment, by_schema, by_template
from semcache.cache.lookup.semantic import by_meaning, candidate_in_doubt
from semcache.cache.lookup.verification import VerificationQueue
from semcache.cache.query import PromptRequest
from semcache.cache.result import Found, Miss, Trace
from semcache.errors import InvalidSettings, StoreError


def find(lookup: Lookup) -> Found:
    """Return the hit of the first tier that has one, or a miss."""
    for tier in (
        by_template,
        by_schema,
        by_alignment,
        by_meaning,
    ):
        hit = tier(lookup)
        if hit is not None:
            return hit
    return lookup.miss()


class Tiers:
    """Finds plans for prompts. Safe from several threads; trouble with the store is a miss."""

    def __init__(self, context: CacheContext, verification: VerificationQueue | None) -> None:
        self._context = context
        self._verification = verification

    def lookup(
        self,
        request: PromptRequest,
        *,
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
    ) -> Found:
        """Return a hit or a miss; see `PlanCache.lookup`."""
        check_switch("what_if", what_if)
        above = self._above(threshold)
        context, tenant = self._context, request.tenant
        start = context.clock.monotonic()
        try:
            view = context.views.current(tenant)
            change = view.change
            query = context.queries.read(request, view)
            lookup = Lookup(context, view, query, change, above=above, renews=not what_if)
            found = find(lookup)
            if self._verification is not None and isinstance(found, Miss) and not what_if:
                found = self._verified(self._verification, lookup, found, threshold)
        except StoreError as error:
            context.health.failed(tenant, "store", error)
            shown = context.queries.redacted(request.text)
            found = Miss("store_failed", None, Trace(prompt=shown, tenant=tenant, template=""))
        else:
            context.health.worked(found)
        if not what_if:
            context.reports.looked_up(found, tenant, run, context.clock.monotonic() - start)
        return found

    def _above(self, threshold: float | None) -> float | None:
        """Return the cosine that must be exceeded; None where risk alone decides.

        Raises:
            InvalidSettings: the prompt's own `threshold` is no cosine, or less than the cache's.
        """
        settings = self._context.settings
        if threshold is None:
            return settings.threshold if settings.max_wrong is None else None
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise InvalidSettings(f"threshold is {threshold!r}; expected a cosine in [-1, 1]")
        floor = settings.threshold
        if not floor <= threshold <= 1:
            raise InvalidSettings(
                f"threshold is {threshold!r}; expected {floor:g} (the cache's own) to 1"
            )
        return float(threshold)

    def _verified(
        self, verification: VerificationQueue, lookup: Lookup, missed: Miss, above: float | None
    ) -> Found:
        """Show the nearest candidate in doubt to the verifier; a hit if it confirms at once.

        `above`: the prompt's own threshold, if it has one.
        """
        settings, query = self._context.settings, lookup.query
        hit = candidate_in_doubt(lookup, max(settings.verify_from, above or -1.0))
        entry = None if hit is None else lookup.known(hit.entry)
        if hit is None or entry is None:
            return missed
        doubt = PendingVerification(
            query.text, entry.prompt, hit, parameters_now(entry, query, hit), query.grounding
        )
        if settings.verify == "inline":
            return hit if verification.settles(doubt) else missed
        verification.later(doubt)
        return missed
