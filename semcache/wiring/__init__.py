"""Wiring: from settings to a working cache; the only place that knows who implements what."""

from semcache.wiring.caches import open_plan_cache, open_responses
from semcache.wiring.clock import SystemClock
from semcache.wiring.models import open_embedder
from semcache.wiring.reporter import Reporter
from semcache.wiring.stores import open_store
from semcache.wiring.whole import open_semcache

__all__ = [
    "Reporter",
    "SystemClock",
    "open_embedder",
    "open_plan_cache",
    "open_responses",
    "open_semcache",
    "open_store",
]
