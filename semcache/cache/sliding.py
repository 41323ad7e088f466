"""Sliding: hits may make the time that an entry has to live begin anew."""

from semcache.cache.entries.entry import Entry
from semcache.cache.entries.writer import EntryWriter
from semcache.cache.shared import CacheContext
from semcache.events import Tier


class Renewal:
    """Extends entries that are served, as `settings.ttl_slides` says. Safe from several threads."""

    def __init__(self, shared: CacheContext, writer: EntryWriter) -> None:
        self._clock = shared.clock
        self._settings = shared.settings
        self._writer = writer

    def served(self, tier: Tier, known: str, entry: Entry) -> None:
        """Begin the TTL of an entry anew if hits of that tier do so, at most 16 times a TTL."""
        slides, ttl_s = self._settings.ttl_slides, self._settings.ttl_s
        frozen = self._settings.frozen
        if frozen or slides == "never" or (tier == "semantic" and slides != "always"):
            return
        if ttl_s is None or entry.expires_s is None or entry.plan.perishable:
            return
        until = self._clock.now() + ttl_s
        least = until - ttl_s / 16
        if entry.expires_s <= least:
            self._writer.extend(entry.tenant, known, until, least_s=least)
