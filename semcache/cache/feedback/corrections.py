"""Corrections: what callers say is wrong or must go, and that must not be lost.

A correction that the store cannot take now (locked, hanging, full, gone) is kept in the process,
and beside the store where there is a place for it. It holds at once for this process, is made as
soon as the store answers, and is found again by the next process if this one ends.
Making one twice does no harm: a plan that was made anew meanwhile is made once more. A veto keeps
a pair of template and entry that feedback called wrong from being served ever again.
"""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from semcache.cache.entries.entry import Entry
from semcache.cache.feedback.correction import Correction, Removed
from semcache.cache.reports import HealthReporter
from semcache.canonical import Json, as_list, dumps, loads
from semcache.errors import InvalidJson, StoreCorrupt, StoreError
from semcache.ports import Journal, PlanStore
from semcache.process.forks import Forked, Lock, follow_forks
from semcache.process.memo import forget_texts

VETOES_NOTE = "vetoes"
VETOES_KEPT = 10_000
"""Vetoes a tenant keeps, oldest dropped first."""


class Vetoes:
    """Vetoes of all tenants, kept in the store's notes; every process sees them. Thread-safe.

    A veto counts as a change of its entry, so that a tenant's note is read again only after the
    store has changed: a lookup in a store that stands still reads none.
    """

    def __init__(self, store: PlanStore, *, frozen: bool = False) -> None:
        """`frozen`: whether no record can be written; then vetoes are this process's alone."""
        self._store = store
        self._frozen = frozen
        self._read: dict[str, _Read] = {}
        self.without: dict[str, int] = {}
        """Tenant that has no veto → number of the store's last change when that was seen."""
        self._lock = Lock()

    def stands(self, tenant: str, template: str, entry: str, *, change: int) -> bool:
        """Return whether `entry` was called wrong for the template with that digest.

        `change`: number of the store's last change that the caller has seen.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        known = self._read.get(tenant)
        if known is None or known.change != change:
            # Outside the lock: a store that hangs must not stop those who ask for other tenants.
            note = self._store.get_note(tenant, VETOES_NOTE)
            if known is not None and known.note == note:
                known = known._replace(change=change)
            else:
                known = _Read(change, note, frozenset(_pairs(note)))
            with self._lock:
                self._read[tenant] = known
                if not known.pairs:
                    self.without[tenant] = change
        return _pair(template, entry) in known.pairs

    def add(self, tenant: str, template: str, entry: str) -> None:
        """Remember that `entry` is wrong for the template.

        Raises:
            StoreUnavailable: the store cannot be read or written.
        """
        pair = _pair(template, entry)

        def added(note: str | None) -> str:
            pairs = [known for known in _pairs(note) if known != pair]
            kept: list[Json] = [*pairs, pair]
            return dumps(kept[-VETOES_KEPT:])

        self._store.update_note(tenant, VETOES_NOTE, added)
        self.forget(tenant)
        record = None if self._frozen else self._store.get(tenant, entry)
        if record is not None:
            # Over what was read: an entry that was written or removed meanwhile has changed anyway.
            self._store.put(record, over=record.change)

    def forget(self, tenant: str | None) -> None:
        """Drop what was read of the tenant, or of all (None)."""
        with self._lock:
            if tenant is None:
                self._read.clear()
                self.without.clear()
            else:
                self._read.pop(tenant, None)
                self.without.pop(tenant, None)


class _Read(NamedTuple):
    """What was read of a tenant's vetoes."""

    change: int
    """Number of the store's last change before the note was read."""
    note: str | None
    pairs: frozenset[str]


def _pair(template: str, entry: str) -> str:
    return f"{template[:32]}:{entry}"


def _pairs(note: str | None) -> list[str]:
    try:
        doc = loads(note, what="vetoes") if note else []
    except InvalidJson:
        return []  # a broken note forgets vetoes; it must not make every lookup fail
    return [pair for pair in as_list(doc) if isinstance(pair, str)]


RETRY_S = 1.0
"""Seconds after which a store that failed is tried again; twice as long each time, up to 30."""
_LONGEST_S = 30.0
_LINGER_S = 60.0
"""Seconds that a lookup may take which began before a correction reached the store."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Made:
    """A correction that reached the store, for lookups that began before."""

    correction: Correction
    change: int
    """Number of the last change when it was made: what came later is not meant."""
    until_s: float


class Corrections(Forked):
    """Makes corrections, and keeps those that cannot be made now. Safe from several threads."""

    def __init__(
        self,
        store: PlanStore,
        vetoes: Vetoes,
        health: HealthReporter,
        *,
        journal: Journal | None,
        forget: Sequence[Callable[[str | None], None]],
        forget_texts: Sequence[Callable[[str | None], None]],
        frozen: bool,
    ) -> None:
        """Take up what an earlier process could not make.

        `journal`: where corrections are kept beside the store; None: in this process alone.
        `forget`: each drops what is in memory of a tenant, or of all (None), once it is cleared;
        `forget_texts`: each drops prompts and words, once somebody has entries erased.
        `frozen`: nothing is ever written. What waits in the journal holds; nothing else does.
        """
        self._store = store
        self._vetoes = vetoes
        self._health = health
        self._journal = None if frozen else journal
        self._forget = tuple(forget)
        self._forget_texts = tuple(forget_texts)
        self._frozen = frozen
        self._lock = Lock()
        self._making = Lock()
        self._pending: dict[str, Correction] = {}
        self._made: tuple[_Made, ...] = ()
        self.is_any = False
        """Whether some correction may hide an entry."""
        self.without_veto: Mapping[str, int] = vetoes.without
        """Tenant that has no veto → number of the store's last change when that was seen."""
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None
        self._closed = False
        follow_forks(self)
        if self._journal is not None:
            self._journal.reserve()
        if journal is not None:
            self._take_up(journal)

    def _take_up(self, journal: Journal) -> None:
        for name, text in journal.texts().items():
            try:
                self._pending[name] = Correction.of(text)
            except StoreCorrupt as error:
                _log.warning("%s; it is left out", error)
        self.is_any = bool(self._pending)
        if self._pending and not self._frozen:
            self._go_on_trying()

    def forked(self) -> None:
        """Let a forked child try by itself: the thread that does is the parent's."""
        self._wake, self._thread = threading.Event(), None

    # Making --------------------------------------------------------------------------------

    def make(self, correction: Correction) -> Removed:
        """Make `correction`, or keep it and let it hold in this process until it can be made."""
        try:
            return Removed(self._do(correction))
        except StoreError as error:
            self._health.failed(correction.tenant or "", "store", error, doing="writing")
            if self._frozen:
                return Removed(0, str(error))
            return Removed(0, self._keep(correction, error))

    def _do(self, correction: Correction) -> int:
        tenant = correction.tenant
        if correction.kind == "veto":
            self._vetoes.add(tenant or "", correction.template, correction.entries[0])
            return 0
        removed = self._remove(correction)
        if correction.why != "feedback":  # it is wrong, and no secret
            for forget in self._forget_texts:
                forget(tenant)
            forget_texts()
        if removed or correction.kind == "clear":
            self._health.removed(tenant or "", removed, correction.why)
        return removed

    def _remove(self, correction: Correction) -> int:
        tenant = correction.tenant
        if correction.kind == "clear":
            removed = self._store.clear(tenant)
            for forget in self._forget:
                forget(tenant)
            return removed
        if tenant is None:
            return 0
        ids = set(correction.entries)
        for label in correction.labels:
            ids.update(self._store.labelled(tenant, label))
        return self._store.remove(tenant, sorted(ids))

    def _keep(self, correction: Correction, error: StoreError) -> str:
        name = secrets.token_hex(8)
        with self._lock:
            self._pending = {**self._pending, name: correction}
            self.is_any = True
            self._vetoes.without.clear()
        where = "in this process alone"
        if self._journal is not None:
            try:
                self._journal.keep(name, correction.to_text())
                where = "beside the store"
            except StoreError as second:
                self._health.failed(correction.tenant or "", "store", second, doing="writing")
        self._go_on_trying()
        return (
            f"the store failed ({error}); it holds for this process from now on, is kept {where}, "
            "and is done when the store answers"
        )

    # What is pending -----------------------------------------------------------------------

    @property
    def pending(self) -> int:
        """How many corrections wait for the store."""
        return len(self._pending)

    def hides(self, tenant: str, entry_id: str, entry: Entry, change: int) -> bool:
        """Return whether a correction keeps the entry, as that change wrote it, from being served.

        Who serves need not ask unless there `is_any`.
        """
        waiting = tuple(self._pending.values())
        if any(one.covers(tenant, entry_id, entry) for one in waiting):
            return True
        now = time.monotonic()
        with self._lock:
            self._made = tuple(made for made in self._made if made.until_s > now)
            self.is_any = bool(self._pending or self._made)
        return any(
            change <= made.change and made.correction.covers(tenant, entry_id, entry)
            for made in self._made
        )

    def vetoes(self, tenant: str, template: str, entry_id: str, *, change: int) -> bool:
        """Return whether a veto, made or waiting for the store, keeps the entry from that template.

        `change`: number of the store's last change that the caller has seen.

        Raises:
            StoreUnavailable: the store cannot be read.
        """
        waiting = self._pending and any(
            one.kind == "veto"
            and (one.tenant, one.template, one.entries) == (tenant, template, (entry_id,))
            for one in tuple(self._pending.values())
        )
        stands = self._vetoes.stands(tenant, template, entry_id, change=change)
        if self._pending:
            self._vetoes.without.clear()  # a note says nothing of those that wait
        return bool(waiting) or stands

    def retry(self) -> int:
        """Make what is pending, in order; return how many still are. Raises nothing."""
        if self._frozen:
            return len(self._pending)
        with self._making:
            for name, correction in [*self._pending.items()]:
                try:
                    self._do(correction)
                    change = self._store.last_change()
                except StoreError as error:
                    _log.debug("a correction still waits for the store: %s", error)
                    return len(self._pending)
                made = _Made(correction, change, time.monotonic() + _LINGER_S)
                with self._lock:
                    self._made = (*self._made, made)
                    self._pending = {k: one for k, one in self._pending.items() if k != name}
                if self._journal is not None:
                    self._journal.drop(name)
            if self._journal is not None:
                self._journal.reserve()
        return 0

    def close(self) -> None:
        """Try once more, and stop trying; what is left is for the next process."""
        if self._pending:
            self.retry()
        self._closed = True
        self._wake.set()

    def _go_on_trying(self) -> None:
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(
                target=self._try_again, name="semcache-corrections", daemon=True
            )
            self._thread.start()

    def _try_again(self) -> None:
        wait_s = RETRY_S
        while not self._wake.wait(wait_s) and not self._closed:
            if not self.retry():
                return
            wait_s = min(2 * wait_s, _LONGEST_S)
