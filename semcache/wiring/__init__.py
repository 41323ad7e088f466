"""Wiring: from settings to a working cache; the only place that knows who implements what."""

from semcache.wiring.caches import open_plan_cache, open_responses
from semcache.wiring.models import open_embedder
from semcache.wiring.parts import Reporter, SystemClock
from semcache.wiring.semcache import open_semcache
from semcache.wiring.stores import open_store

__all__ = [
    "Reporter",
    "SystemClock",
    "open_embedder",
    "open_plan_cache",
    "open_responses",
    "open_semcache",
    "open_store",
]
