"""Wiring: from settings to a working cache; the only place that knows who implements what.

`semcache.wiring.semcache` is not imported here: its planners take a tenth of a second, which a plan
cache need not pay.
"""

from semcache.wiring.caches import open_plan_cache, open_response_store, open_store
from semcache.wiring.models import Reporter, SystemClock, open_embedder, reporting

__all__ = [
    "Reporter",
    "SystemClock",
    "open_embedder",
    "open_plan_cache",
    "open_response_store",
    "open_store",
    "reporting",
]
