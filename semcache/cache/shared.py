"""What the parts of one cache share."""

from dataclasses import dataclass

from semcache.binding.volatile import NOTHING, Volatile
from semcache.cache.asking import Asking
from semcache.cache.reports import Reports
from semcache.cache.trouble import Trouble
from semcache.cache.views import Views
from semcache.ports import Clock, PlanStore
from semcache.settings import Settings


@dataclass(frozen=True, slots=True)
class Shared:
    """The truth, what is derived from it, and whom to tell. Each is safe from several threads."""

    store: PlanStore
    views: Views
    """What lookups see of the store."""
    asking: Asking
    """Reads prompts."""
    reports: Reports
    """Counts and tells what happens."""
    trouble: Trouble
    """Is told what fails."""
    clock: Clock
    settings: Settings
    volatile: Volatile = NOTHING
    """Fields of plans that are neither kept nor compared."""
