"""The views of all tenants over one store: loaded once, then caught up change by change."""

import contextlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from semcache.cache.entries.decoded_entries import DecodedEntries
from semcache.cache.single_flight import KeyLocks
from semcache.cache.view.snapshot import pack_view, unpack_view
from semcache.cache.view.view import View
from semcache.errors import StoreCorrupt, StoreError
from semcache.ports import Change, Neighbor, PlanStore, Snapshots, VectorIndex
from semcache.process.forks import Forked, Lock, follow_forks
from semcache.process.memo import Lru, forget_memos

log = logging.getLogger(__name__)

NOTE = "snapshot"
"""Beside a tenant's records: the checksum of its snapshot. So a snapshot counts only for the store
that it was taken of, and not for another one begun in the same directory."""

WORTHWHILE = 1_000
"""Entries, and changes since the last one, that are worth a snapshot; fewer are read in no time."""
_RUNNING, _AT_REST = 10, 50
"""One change for so many entries is worth a new snapshot: while a process works, and at its end,
since each process that comes after takes in what a snapshot lacks."""


SearchKey: TypeAlias = tuple[int, str, str, str]
"""Version of a view, catalog, grounding, and the text that was embedded."""
SEARCHED = 512
"""Searches whose neighbors are kept, some 6 KB each: a template text that hits by meaning comes
again with other values, and is near the same entries until one is added or dropped."""


@dataclass(slots=True)
class _Tenant:
    """A tenant's view, and what of the store's changes it has yet to take in."""

    view: View | None = None
    """None until it is loaded."""
    pending: list[Change] = field(default_factory=list)
    torn: bool = False
    """Whether changes are being taken in; found so by the next one, it says that an interrupt ended
    that, and the view is read anew."""

    def is_behind(self) -> bool:
        """Return whether reading the view anew costs no more than taking all that in."""
        entries = 0 if self.view is None else len(self.view.entries)
        return len(self.pending) > max(WORTHWHILE, entries)


class Views(Forked):
    """The views of all tenants over one store. Safe from several threads.

    The store is the truth: each `current` first asks it for its last change and takes in what is
    new, so that a change by any thread or process is seen by the next lookup. Changes are handed to
    their tenants as they are read, and taken in by who next asks for that tenant: one that loads,
    or has much to take in, delays nobody but itself.
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
        decoded: DecodedEntries | None = None,
    ) -> None:
        """Begin with no view.

        `keep`: whether a view that had to be derived leaves a snapshot at once. `decoded`: entries
        that were served, from which those go that are replaced or removed.
        """
        self._store = store
        self._make_index = make_index
        self._embedder = embedder
        self._snapshots = snapshots
        self._note = note
        self._keep = keep
        self.neighbors: Lru[SearchKey, Sequence[Neighbor]] = Lru(SEARCHED)
        """What was near the texts that were searched for last."""
        self._decoded = DecodedEntries() if decoded is None else decoded
        self._tenants: dict[str, _Tenant] = {}
        self._saved: dict[str, int] = {}
        """Tenant → number of the change that its snapshot holds."""
        self._removed = 0
        """Entries that went since memos were emptied."""
        self._change = 0
        self._lock = Lock()
        """Held while changes are handed out, never while the store is asked."""
        self._loading = KeyLocks()
        """Who loads a tenant's view, or takes changes into it, at the moment."""
        follow_forks(self)

    def forked(self) -> None:
        """Begin anew in a forked child: a thread of the parent may be in the middle of a change."""
        self._tenants = {}
        self._saved = {}
        self._change = 0

    @property
    def change(self) -> int:
        """Number of the last change that was handed to the views."""
        return self._change

    def current(self, tenant: str) -> View:
        """Return the tenant's view, caught up with the store.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        if self._store.last_change() != self._change:
            self._hand_out()
        change = self._change  # before looking at what is pending: all up to it was handed out
        known = self._tenants.get(tenant)
        view = None if known is None else known.view
        damaged = view is None or view.entries.damaged or view.groups.damaged
        if known is not None and view is not None and not known.pending and not damaged:
            view.change = change
            return view
        with self._loading.enter(tenant):
            with self._lock:
                known = self._tenants.setdefault(tenant, _Tenant())
                change = self._change
            if known.view is not None and known.view.damaged and self._snapshots is not None:
                self._snapshots.discard(tenant)
                known.torn = True
            if known.view is None or known.torn:
                # Registered before it is read, so that what changes meanwhile is handed to it.
                known.view = None
                known.view, known.torn = self._load(tenant, change), False
            self._take_in(known, known.view)
            known.view.change = change
            return known.view

    def _hand_out(self) -> None:
        """Hand the store's latest changes to the tenants whose views are loaded."""
        while (last := self._store.last_change()) != (since := self._change):
            changes = self._store.changes(since) if self._tenants else None
            with self._lock:
                if self._change != since:
                    continue  # another thread handed them out
                if changes is None:
                    # Too far behind, or nothing loaded yet: views are read whole when asked for.
                    self._tenants.clear()
                    self._change = last
                    self._decoded.drop(None)
                    forget_memos()
                    return
                for change in changes:
                    self._decoded.drop(change.tenant, change.id)
                    known = self._tenants.get(change.tenant)
                    if known is not None:
                        known.pending.append(change)
                        if known.is_behind():
                            del self._tenants[change.tenant]
                self._change = max([last, *(change.number for change in changes)])
                return

    def _take_in(self, known: _Tenant, view: View) -> None:
        """Take pending changes into a view; whoever calls has entered `_loading`."""
        # They stay pending until they are in the view: another thread would pass them over.
        pending = tuple(known.pending)
        known.torn = bool(pending)
        for change in pending:
            self._apply(change, view)
        known.torn = False
        with self._lock:
            del known.pending[: len(pending)]

    def _apply(self, change: Change, view: View) -> None:
        record = None
        if change.kind == "put":
            try:
                record = self._store.get(change.tenant, change.id)
            except StoreCorrupt as error:
                log.warning("passed over: %s", error)
        if record is None:
            view.drop(change.id)
            self._count_removed()
        else:
            view.put(record, self._embedder)

    def _count_removed(self) -> None:
        """Empty what is remembered of words once as many entries went as there are.

        So it costs a removed entry no more than reading one that is left.
        """
        self._removed += 1
        if self._removed % WORTHWHILE == 0:
            views = [known.view for known in [*self._tenants.values()]]
            if self._removed >= sum(len(view.entries) for view in views if view is not None):
                self._removed = 0
                forget_memos()

    def _load(self, tenant: str, change: int) -> View:
        """Return the tenant's view, which holds all changes up to number `change`."""
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
                self._save(self._snapshots, tenant, view, change)
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

    def save(self, *, at_rest: bool) -> None:
        """Take snapshots of the views that are worth one and have changed a good deal since theirs.

        `at_rest`: nothing more is to come soon, so that less is a good deal.

        Raises:
            StoreUnavailable: one cannot be written.
        """
        if self._snapshots is None:
            return
        for tenant, known in [*self._tenants.items()]:
            with self._loading.enter(tenant):
                if known.view is None or known.torn or known.view.damaged:
                    continue
                self._take_in(known, known.view)
                with self._lock:
                    caught_up, change = not known.pending, self._change
                behind = change - self._saved.get(tenant, 0)
                entries = len(known.view.entries)
                most = max(WORTHWHILE, entries // _RUNNING)
                enough = max(1, entries // _AT_REST) if at_rest else most
                if caught_up and entries >= WORTHWHILE and behind >= enough:
                    self._save(self._snapshots, tenant, known.view, change)

    def _save(self, snapshots: Snapshots, tenant: str, view: View, change: int) -> None:
        content = pack_view(view, change=change, embedder=self._embedder)
        checksum = snapshots.save(tenant, content, view.index, change=change)
        self._store.put_note(tenant, self._note, checksum)
        self._saved[tenant] = change

    def forget_texts(self, tenant: str | None) -> None:
        """Take in what was removed of the tenant, and forget the texts that were searched for."""
        if tenant is not None and tenant in self._tenants:
            with contextlib.suppress(StoreError):  # then the next lookup takes it in
                self.current(tenant)
        self.neighbors.forget(lambda _: True)

    def forget(self, tenant: str | None) -> None:
        """Drop the view and the snapshot of the tenant, or of all (None)."""
        for known in [*self._tenants] if tenant is None else [tenant]:
            with self._loading.enter(known):  # a snapshot on its way would come after
                self._tenants.pop(known, None)
                self._saved.pop(known, None)
        if self._snapshots is not None:
            self._snapshots.discard(tenant)
