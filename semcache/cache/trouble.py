"""What becomes of trouble with a part of the cache: an event each time, a warning the first."""

import contextlib
import logging
from collections.abc import Iterator
from typing import Literal

from semcache.cache.found import Found, Miss
from semcache.errors import StoreError
from semcache.events import EntriesRemoved, Event, TierFailed
from semcache.ports import Observer

log = logging.getLogger(__name__)

Why = Literal["invalidated", "expired", "evicted", "cleared", "feedback", "failed"]


class Trouble:
    """Passes events on, and keeps in mind which parts fail so that each is warned of once.

    Safe from several threads: the worst of a race is one warning more.
    """

    def __init__(self, observer: Observer | None) -> None:
        self.observer = observer
        """What hears of everything; None: nobody listens."""
        self._failing: set[tuple[str, str]] = set()

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        if self.observer is not None:
            self.observer(event)

    def removed(self, tenant: str, count: int, why: Why) -> None:
        """Tell that entries are gone."""
        self.emit(EntriesRemoved(tenant=tenant, count=count, why=why))

    @contextlib.contextmanager
    def guarded(self, tenant: str) -> Iterator[None]:
        """Turn store trouble inside into an event and one warning."""
        try:
            yield
        except StoreError as error:
            self.failed(tenant, "store", error, doing="writing")

    def failed(self, tenant: str, part: str, error: Exception, *, doing: str = "") -> None:
        """Report a failure, and warn if the part worked up to now.

        Writing may go on failing where reading works (a full disk): each is told apart, or every
        lookup between two failing writes would bring the warning back.
        """
        self.emit(TierFailed(tenant=tenant, part=part, error=f"{type(error).__name__}: {error}"))
        warned = any(known == part for known, _ in tuple(self._failing))
        self._failing.add((part, doing))
        if not warned:
            log.warning("%s failed and is passed over until it works again: %s", part, error)

    def mended(self, part: str, *, doing: str = "") -> None:
        """Forget that `part` failed, so that its next failure is warned of again."""
        self._failing.discard((part, doing))

    def worked(self, found: Found) -> None:
        """Forget failures of what this lookup has just used."""
        self.mended("store")
        failed = isinstance(found, Miss) and found.reason == "embedder_failed"
        if "embed" in found.trace.seconds and not failed:
            self.mended("embedder")
