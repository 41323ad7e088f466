"""What the parts of one cache share."""

from dataclasses import dataclass

from semcache.binding.volatile import NOTHING, Volatile
from semcache.cache.query import QueryReader
from semcache.cache.reports import Health, Reports
from semcache.cache.view.views import Views
from semcache.ports import Clock, PlanStore
from semcache.settings import Settings


@dataclass(frozen=True, slots=True)
class CacheContext:
    """The truth, what is derived from it, and whom to tell. Each is safe from several threads."""

    store: PlanStore
    views: Views
    """What lookups see of the store."""
    asking: QueryReader
    """Reads prompts."""
    reports: Reports
    """Counts and tells what happens."""
    trouble: Health
    """Is told what fails."""
    clock: Clock
    settings: Settings
    volatile: Volatile = NOTHING
    """Fields of plans that are neither kept nor compared."""
