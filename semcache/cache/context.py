"""The context that the parts of one cache share: the store, what follows from it, whom to tell."""

import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass

from semcache.binding.volatile import Ignore, Volatile
from semcache.cache.entries.decoded_entries import DecodedEntries
from semcache.cache.entries.writer import EntryWriter
from semcache.cache.evidence.training_labels import TrainingLabels
from semcache.cache.feedback.corrections import Corrections, Vetoes
from semcache.cache.query import QueryReader
from semcache.cache.reports import Counters, HealthReporter, Reports
from semcache.cache.view.views import NOTE, Views
from semcache.catalog.catalog import Catalog
from semcache.matching.gates import risk_gates
from semcache.matching.model.risk import USUAL_WRONG, shipped
from semcache.ports import (
    Bounds,
    Clock,
    Embedder,
    Journal,
    Normalizer,
    Observer,
    PlanStore,
    Snapshots,
    VectorIndex,
)
from semcache.process.forks import Lock
from semcache.prompts.redaction import Redact
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
    counters: Counters
    """Counts of what happened."""
    reports: Reports
    """Counts and tells what happens."""
    health: HealthReporter
    """Is told what fails."""
    volatile: Volatile
    """Fields of plans that are neither kept nor compared."""
    behind: "WriteBehind"
    """Writes what is kept in memory once there is much of it."""

    @classmethod
    def of(
        cls,
        settings: Settings,
        *,
        store: PlanStore,
        embedder: Embedder,
        clock: Clock,
        make_index: Callable[[str], VectorIndex],
        observer: Observer | None = None,
        catalog: Catalog | None = None,
        normalizer: Normalizer | None = None,
        snapshots: Snapshots | None = None,
        redact: Redact | None = None,
        ignore: Ignore = (),
        snapshot_note: str = NOTE,
        journal: Journal | None = None,
    ) -> "CacheContext":
        """Return the parts of a cache over `store`, which know of one another.

        `make_index`: returns an empty index for a tenant. `snapshot_note`: name of the note that
        holds the checksums of `snapshots`. `journal`: where corrections wait for the store.
        """

        def write() -> None:
            context.write(at_rest=False)

        behind = WriteBehind(write)
        counters, health = Counters(store, clock), HealthReporter(observer)
        decoded = DecodedEntries()
        views = Views(
            store,
            make_index=make_index,
            embedder=embedder.fingerprint,
            snapshots=snapshots,
            note=snapshot_note,
            keep=not settings.frozen,
            decoded=decoded,
        )
        labels = TrainingLabels(
            store,
            shipped(),
            max_wrong=USUAL_WRONG if settings.max_wrong is None else settings.max_wrong,
            gates=risk_gates(),
            embedder=embedder.fingerprint,
            adapts=not settings.frozen,
        )
        queries = QueryReader(
            clock=clock, settings=settings, catalog=catalog, normalizer=normalizer, redact=redact
        )
        vetoes = Vetoes(store, frozen=settings.frozen)
        corrections = Corrections(
            store,
            vetoes,
            health,
            journal=journal,
            forget=[counters.forget, vetoes.forget, labels.forget, views.forget, decoded.drop],
            forget_texts=[part.forget_texts for part in (views, queries, labels)],
            frozen=settings.frozen,
        )
        context = cls(
            store=store,
            embedder=embedder,
            clock=clock,
            settings=settings,
            views=views,
            entries=decoded,
            queries=queries,
            labels=labels,
            corrections=corrections,
            writer=EntryWriter(store, embedder, health, bounds=_bounds(settings)),
            counters=counters,
            reports=Reports(counters, health, flush=behind.begin),
            health=health,
            volatile=Volatile.of(ignore),
            behind=behind,
        )
        return context

    def flush(self) -> None:
        """Write what is kept in memory; see `PlanCache.flush`."""
        self.behind.wait()
        self.write(at_rest=True)

    def write(self, *, at_rest: bool) -> None:
        """Write what is kept in memory; trouble with the store is told, and it waits there.

        `at_rest`: see `Views.save`.
        """
        if self.corrections.pending:
            self.corrections.retry()
        with self.health.guarded(""):
            self.counters.flush()
            self.labels.notes.flush()
            self.health.mended("store", doing="writing")
        with self.health.guarded(""):
            if not self.settings.frozen:
                self.views.save(at_rest=at_rest)


class WriteBehind:
    """Writes on a thread of its own, one at a time, so that no lookup waits for the store."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._lock = Lock()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begin to write, unless that is under way."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            # Not a daemon: an interpreter that ends waits for it.
            thread = threading.Thread(target=self._write, name="semcache-counts")
            with contextlib.suppress(RuntimeError):  # no more threads: it is written another time
                thread.start()
                self._thread = thread

    def wait(self) -> None:
        """Return once what was begun is written, or could not be."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            thread.join()


def _bounds(settings: Settings) -> Bounds:
    return Bounds(
        tenant_entries=settings.max_entries,
        tenant_bytes=settings.max_bytes,
        entries=settings.max_total_entries,
        bytes=settings.max_total_bytes,
    )
