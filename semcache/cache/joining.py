"""Joining: a prompt that is known to have an entry's plan becomes one more entry of that plan.

So the next prompt like it is found by its words. Known is what a verifier confirmed or somebody
said was right; a hit that nobody looked at teaches nothing.
"""

import logging
from collections.abc import Sequence

from semcache.cache.admission import said
from semcache.cache.entry import Entry, from_record
from semcache.cache.found import Hit
from semcache.cache.keeping import Keeping
from semcache.cache.shared import Shared
from semcache.cache.verifying import Grey
from semcache.errors import SemCacheError, StoreError
from semcache.prompts.parameter import Parameter

log = logging.getLogger(__name__)


class Joining:
    """Lets confirmed prompts join a plan. Safe from several threads; nothing is raised."""

    def __init__(self, shared: Shared, keeping: Keeping) -> None:
        self._shared = shared
        self._keeping = keeping

    def verified(self, grey: Grey) -> None:
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
