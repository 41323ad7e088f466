"""What stands between the core and observers that may raise."""

import logging

from semcache.events import Event
from semcache.ports import (
    Observer,
)
from semcache.prompts.redaction import Redact
from semcache.runs.redaction import redacted_event

log = logging.getLogger(__name__)


class Reporter:
    """Hands events to observers that must not break a run: what one raises is logged once."""

    def __init__(self, *observers: Observer | None, redact: Redact | None = None) -> None:
        self._redact = redact
        self._observers = tuple(observer for observer in observers if observer is not None)
        self._warned: set[int] = set()

    def __call__(self, event: Event, /) -> None:
        """Pass `event` on to each."""
        if self._redact is not None:
            event = redacted_event(event, self._redact)
        for number, observer in enumerate(self._observers):
            try:
                observer(event)
            except Exception:  # a caller's observer may raise anything; a run goes on
                if number not in self._warned:
                    self._warned.add(number)
                    log.warning("the observer raised and is ignored where it does", exc_info=True)
