"""What is known of a tenant in memory: derived from the store, caught up by change number."""

import logging
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from semcache.cache.entry import Entry, from_record, template_key
from semcache.errors import InvalidVector, StoreCorrupt
from semcache.matching.pair import Side
from semcache.ports import Change, PlanStore, Record, VectorIndex
from semcache.prompts.alignment import Skeletons
from semcache.prompts.learned import LearnedValues
from semcache.prompts.parameter import Parameter
from semcache.prompts.template import TemplateText
from semcache.prompts.words import tokens

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seen:
    """What the gates need of an entry, so that most refusals read nothing from the store."""

    side: Side
    label: str
    examples: tuple[tuple[Parameter, ...], ...]
    words: frozenset[str]
    """Words of the template text, slots apart."""
    fixed: tuple[int, ...]
    """Positions of the slots whose words must stay what they were."""


@dataclass(slots=True)
class View:
    """One tenant's derived state. Changed only under the lock of `Views`."""

    index: VectorIndex
    learned: LearnedValues = field(default_factory=LearnedValues)
    skeletons: Skeletons = field(default_factory=Skeletons)
    vocabulary: Counter[str] = field(default_factory=Counter)
    """Word → how many templates use it."""
    entries: dict[str, Seen] = field(default_factory=dict)
    fixed: dict[str, Counter[tuple[int, ...]]] = field(default_factory=dict)
    """Digest of a template text → which of its slots its entries fix, and how many entries do."""

    def template_keys(self, template: TemplateText) -> list[str]:
        """Return the exact keys under which entries of this template text may stand."""
        ways = dict(self.fixed.get(template.digest, ()))
        return [template_key(template, fixed) for fixed, count in ways.items() if count > 0]

    def put(self, record: Record, embedder: str) -> None:
        """Take in a record, replacing what was known under its id."""
        self.drop(record.id)
        try:
            entry = from_record(record)
        except StoreCorrupt as error:
            log.warning("passed over: %s", error)
            return
        seen = _seen(entry)
        self.entries[record.id] = seen
        self.vocabulary.update(seen.words)
        self.fixed.setdefault(entry.template.digest, Counter())[seen.fixed] += 1
        self.skeletons.add(record.id, entry.template)
        for group in seen.examples:
            for parameter in group:
                self.learned.add(parameter)
        if record.vector is not None and record.embedder == embedder:
            self._add_vector(record)

    def _add_vector(self, record: Record) -> None:
        assert record.vector is not None  # noqa: S101 - the caller looked
        try:
            self.index.add(record.id, record.vector)
        except InvalidVector as error:
            log.warning("entry %r is found by exact keys only: %s", record.id, error)

    def drop(self, entry_id: str) -> None:
        """Forget an entry; an unknown id is fine."""
        seen = self.entries.pop(entry_id, None)
        if seen is None:
            return
        self.vocabulary.subtract(seen.words)
        self.vocabulary += Counter()  # drops the zeros
        fixed = self.fixed[seen.side.template.digest]
        fixed[seen.fixed] -= 1
        if not +fixed:
            del self.fixed[seen.side.template.digest]
        self.skeletons.remove(entry_id)
        for group in seen.examples:
            for parameter in group:
                self.learned.discard(parameter)
        self.index.remove(entry_id)


def _seen(entry: Entry) -> Seen:
    return Seen(
        side=entry.side(),
        label=entry.label,
        examples=entry.examples,
        words=template_words(entry.template),
        fixed=entry.fixed_slots,
    )


def template_words(template: TemplateText) -> frozenset[str]:
    """Return the words of a template text, slots apart."""
    return frozenset(word for word in tokens(template.text) if not word.startswith("<"))


class Views:
    """The views of all tenants over one store. Safe from several threads.

    The store is the truth: each `current` first asks it for its last change and takes in what is
    new, so that a change by any thread or process is seen by the next lookup.
    """

    def __init__(
        self, store: PlanStore, *, make_index: Callable[[], VectorIndex], embedder: str
    ) -> None:
        self._store = store
        self._make_index = make_index
        self._embedder = embedder
        self._views: dict[str, View] = {}
        self._change = 0
        self._lock = threading.RLock()

    def current(self, tenant: str) -> View:
        """Return the tenant's view, caught up with the store.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        last = self._store.last_change()
        view = self._views.get(tenant)
        if view is not None and last == self._change:
            return view
        with self._lock:
            self._catch_up()
            if tenant not in self._views:
                self._views[tenant] = self._load(tenant)
            return self._views[tenant]

    def _catch_up(self) -> None:
        last = self._store.last_change()
        if last == self._change:
            return
        changes = self._store.changes(self._change) if self._views else None
        if changes is None:
            # Too far behind, or nothing loaded yet: views are read whole when next asked for.
            self._views.clear()
            self._change = last
            return
        for change in changes:
            self._apply(change)
        self._change = max([last, *(change.number for change in changes)])

    def _apply(self, change: Change) -> None:
        view = self._views.get(change.tenant)
        if view is None:
            return
        record = None
        if change.kind == "put":
            try:
                record = self._store.get(change.tenant, change.id)
            except StoreCorrupt as error:
                log.warning("passed over: %s", error)
        if record is None:
            view.drop(change.id)
        else:
            view.put(record, self._embedder)

    def _load(self, tenant: str) -> View:
        view = View(index=self._make_index())
        for record in self._store.scan(tenant):
            view.put(record, self._embedder)
        return view

    def forget(self) -> None:
        """Drop every view; the next lookup reads the store again."""
        with self._lock:
            self._views.clear()
            self._change = 0
