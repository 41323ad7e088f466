"""The context that the parts of one cache share: the store, what follows from it, whom to tell."""

from dataclasses import dataclass

from semcache.binding.volatile import Volatile
from semcache.cache.entries.writer import EntryWriter
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.feedback.corrections import Corrections
from semcache.cache.query import QueryReader
from semcache.cache.reports import HealthReporter, Reports
from semcache.cache.view.summaries import DecodedEntries
from semcache.cache.view.views import Views
from semcache.ports import Clock, Embedder, PlanStore
from semcache.settings import Settings


@dataclass(frozen=True, slots=True)
class CacheContext:
    """The parts of one cache that others work with. Each is safe from several threads."""

    store: PlanStore
    """The truth; all else is derived from it."""
    embedder: Embedder
    clock: Clock
    settings: Settings
    views: Views
    """The tenants' entries in memory, as lookups see them."""
    entries: DecodedEntries
    """The entries that were served last."""
    queries: QueryReader
    """Reads prompts."""
    labels: TrainingLabels
    """The risk of plan groups and of values, and what prompts teach about it."""
    corrections: Corrections
    """Vetoes and removals."""
    writer: EntryWriter
    """Writes entries."""
    reports: Reports
    """Counts and tells what happens."""
    health: HealthReporter
    """Is told what fails."""
    volatile: Volatile
    """Fields of plans that are neither kept nor compared."""
