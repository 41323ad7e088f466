"""Lookup: a prompt is asked for tier by tier, in doubt shown to a verifier, and accounted for."""

from collections.abc import Mapping
from dataclasses import replace

from semcache.cache.checks import check_schema, check_switch, check_word
from semcache.cache.entries.entry import Entry
from semcache.cache.lookup.context import Lookup, Parts
from semcache.cache.lookup.exact import by_alignment, by_schema, by_template
from semcache.cache.lookup.semantic import by_meaning, grey
from semcache.cache.lookup.verification import PendingVerification, VerificationQueue, said_now
from semcache.cache.result import Found, Miss, Trace
from semcache.cache.shared import CacheContext
from semcache.cache.tool_sets import Tools
from semcache.errors import InvalidSettings, StoreError
from semcache.events import Tier
from semcache.prompts.schema.schema import PromptSchema


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

    def __init__(
        self,
        shared: CacheContext,
        parts: Parts,
        *,
        verifying: VerificationQueue | None,
    ) -> None:
        self.parts = parts
        """What the tiers work with."""
        self._shared = shared
        self._verifying = verifying

    def find(
        self,
        prompt: str,
        *,
        tenant: str,
        params: Mapping[str, object] | None = None,
        schema: PromptSchema | None = None,
        grounding: str = "",
        threshold: float | None = None,
        run: str = "",
        what_if: bool = False,
        tools: Tools | None = None,
    ) -> Found:
        """Return a hit or a miss; see `PlanCache.lookup`."""
        text, given = self._shared.asking.checked(prompt, tenant, params)
        check_schema(schema)
        check_word("grounding", grounding)
        check_switch("what_if", what_if)
        above = self._stricter(threshold)
        tool_set = self._shared.asking.tools(tools)
        parts = self.parts if above is None else replace(self.parts, above=above)
        if what_if:
            parts = replace(parts, served=_unnoticed)
        start = parts.clock.monotonic()
        try:
            view = self._shared.views.current(tenant)
            change = view.change
            asked = self._shared.asking.read(
                text, tenant, given, grounding=grounding, view=view, schema=schema, tools=tool_set
            )
            looking = Lookup(parts, view, asked, change)
            found = find(looking)
            if self._verifying is not None and isinstance(found, Miss) and not what_if:
                found = self._verified(self._verifying, looking, found, above)
        except StoreError as error:
            self._shared.trouble.failed(tenant, "store", error)
            shown = self._shared.asking.redacted(text)
            found = Miss("store_failed", None, Trace(prompt=shown, tenant=tenant, template=""))
        else:
            self._shared.trouble.worked(found)
        if not what_if:
            self._shared.reports.looked_up(found, tenant, run, parts.clock.monotonic() - start)
        return found

    def _stricter(self, threshold: float | None) -> float | None:
        """Return the prompt's own threshold, if it has one that is no less than the cache's."""
        if threshold is None:
            return None
        if isinstance(threshold, bool) or not isinstance(threshold, int | float):
            raise InvalidSettings(f"threshold is {threshold!r}; expected a cosine in [-1, 1]")
        floor = self._shared.settings.threshold
        if not floor <= threshold <= 1:
            raise InvalidSettings(
                f"threshold is {threshold!r}; expected {floor:g} (the cache's own) to 1"
            )
        return float(threshold)

    def _verified(
        self, verifying: VerificationQueue, looking: Lookup, missed: Miss, above: float | None
    ) -> Found:
        """Show the nearest candidate in doubt to the verifier; a hit if it confirms at once."""
        hit = grey(looking, max(self._shared.settings.verify_from, above or -1.0))
        entry = None if hit is None else looking.known(hit.entry)
        if hit is None or entry is None:
            return missed
        asked = looking.asked
        doubt = PendingVerification(
            asked.text, entry.prompt, hit, said_now(entry, asked, hit), asked.grounding
        )
        if self._shared.settings.verify == "inline":
            return hit if verifying.settles(doubt) else missed
        verifying.later(doubt)
        return missed


def _unnoticed(tier: Tier, known: str, entry: Entry) -> None:
    """Let a hit make no entry live longer."""
