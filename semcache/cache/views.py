"""The views of all tenants over one store: loaded once, then caught up change by change."""

import logging
import threading
from collections.abc import Callable

from semcache.cache.snapshot import pack_view, unpack_view
from semcache.cache.view import View
from semcache.errors import StoreCorrupt, StoreError
from semcache.forks import Forked, follow_forks
from semcache.ports import Change, PlanStore, Snapshots, VectorIndex

log = logging.getLogger(__name__)

NOTE = "snapshot"
"""Beside a tenant's records: the checksum of its snapshot. So a snapshot counts only for the store
that it was taken of, and not for another one begun in the same directory."""

WORTHWHILE = 1_000
"""Entries, and changes since the last one, that are worth a snapshot; fewer are read in no time."""


class Views(Forked):
    """The views of all tenants over one store. Safe from several threads.

    The store is the truth: each `current` first asks it for its last change and takes in what is
    new, so that a change by any thread or process is seen by the next lookup.
    """

    def __init__(
        self,
        store: PlanStore,
        *,
        make_index: Callable[[str], VectorIndex],
        embedder: str,
        snapshots: Snapshots | None = None,
        note: str = NOTE,
        keep: bool = False,
    ) -> None:
        """`keep`: whether a view that had to be derived leaves a snapshot at once."""
        self._store = store
        self._make_index = make_index
        self._embedder = embedder
        self._snapshots = snapshots
        self._note = note
        self._keep = keep
        self._views: dict[str, View] = {}
        self._saved: dict[str, int] = {}
        """Tenant → number of the change that its snapshot holds."""
        self._change = 0
        self._lock = threading.RLock()
        follow_forks(self)

    def forked(self) -> None:
        """Begin anew in a forked child: a thread of the parent may be in the middle of a change."""
        self._lock = threading.RLock()
        self._views = {}
        self._saved = {}
        self._change = 0

    @property
    def change(self) -> int:
        """Number of the last change that the views hold."""
        return self._change

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
            if change.tenant in self._views:
                self._apply(change, self._views[change.tenant])
        self._change = max([last, *(change.number for change in changes)])

    def _apply(self, change: Change, view: View) -> None:
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
        view = self._kept(tenant)
        if view is not None:
            return view
        view = View(index=self._make_index(tenant))
        for page in self._store.pages(tenant):
            for record in page:
                view.put(record, self._embedder)
            view.entries.pack([record.id for record in page])
        if self._keep and self._snapshots is not None and len(view.entries) >= WORTHWHILE:
            # It took ten times as long to derive as this takes, and who is killed never closes.
            try:
                self._save(self._snapshots, tenant, view)
            except StoreError as error:
                log.warning("no snapshot of tenant %r: %s", tenant, error)
        return view

    def _kept(self, tenant: str) -> View | None:
        """Return the view of the tenant's snapshot, caught up; None if there is none to rely on."""
        checksum = self._store.get_note(tenant, self._note) if self._snapshots else None
        if self._snapshots is None or checksum is None:
            return None
        kept = self._snapshots.load(tenant, checksum)
        if kept is None:
            return None
        try:
            view, change = unpack_view(kept.content, kept.index, embedder=self._embedder)
        except StoreCorrupt as error:
            log.warning("%s; it is derived from the store again", error)
            return None
        changes = self._store.changes(change) if change == kept.change else None
        if changes is None or len(changes) > len(view.entries):
            return None
        for later in changes:
            if later.tenant == tenant:
                self._apply(later, view)
        self._saved[tenant] = change
        return view

    def save(self) -> None:
        """Take snapshots of the views that are worth one and have changed a good deal since theirs.

        Raises:
            StoreUnavailable: one cannot be written.
        """
        if self._snapshots is None:
            return
        with self._lock:
            for tenant, view in self._views.items():
                behind = self._change - self._saved.get(tenant, 0)
                if min(len(view.entries), behind) >= max(WORTHWHILE, len(view.entries) // 10):
                    self._save(self._snapshots, tenant, view)

    def _save(self, snapshots: Snapshots, tenant: str, view: View) -> None:
        content = pack_view(view, change=self._change, embedder=self._embedder)
        checksum = snapshots.save(tenant, content, view.index, change=self._change)
        self._store.put_note(tenant, self._note, checksum)
        self._saved[tenant] = self._change

    def forget(self, tenant: str | None) -> None:
        """Drop the view and the snapshot of the tenant, or of all (None)."""
        with self._lock:
            for known in (self._views, self._saved):
                if tenant is None:
                    known.clear()
                else:
                    known.pop(tenant, None)
            if self._snapshots is not None:
                self._snapshots.discard(tenant)
