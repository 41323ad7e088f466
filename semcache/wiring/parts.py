"""Parts of a cache: those of a caller are checked; the clock and the reporter are our own."""

import logging
import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidSettings
from semcache.events import Event
from semcache.ports import Embedder, Model, Observer, Verifier
from semcache.prompts.redaction import Redact
from semcache.runs.redaction import redacted_event
from semcache.settings import Settings


def check_parts(
    *,
    catalog: object = None,
    embedder: object = None,
    model: object = None,
    observer: object = None,
    redact: object = None,
    settings: object = None,
    verifier: object = None,
    needed: Collection[str] = (),
) -> None:
    """Return if each is of its kind, or None where it is not `needed`.

    Raises:
        InvalidSettings: one is not.
    """
    kinds: Iterable[tuple[str, object, Any, str]] = (
        ("catalog", catalog, Catalog, "a Catalog, as `catalog_from(functions)` makes one"),
        (
            "embedder",
            embedder,
            Embedder,
            "an Embedder such as `SentenceTransformersEmbedder(NAME)`",
        ),
        ("model", model, Model, "a Model such as `OpenAIModel(NAME)`"),
        ("observer", observer, Callable, "something to call with each event"),
        ("redact", redact, Callable, "a function from text to text"),
        ("settings", settings, Settings, "Settings"),
        ("verifier", verifier, Verifier, "a Verifier such as `CrossEncoderVerifier`"),
    )
    for name, part, kind, expected in kinds:
        if (part is not None or name in needed) and not isinstance(part, kind):
            raise InvalidSettings(f"{name} is {part!r}; expected {expected}")


# The clock of the machine.


class SystemClock:
    """The machine's own time; functions of `time`, as each lookup asks for it a dozen times."""

    now = staticmethod(time.time)
    """Return epoch seconds."""
    monotonic = staticmethod(time.perf_counter)
    """Return seconds that never run backwards."""

    def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        time.sleep(seconds)


# What stands between the core and observers that may raise.

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


def reporting(observer: Observer | None, redact: Redact | None = None) -> Reporter | None:
    """Return a reporter to the observer of a caller; None where there is none."""
    if observer is None or isinstance(observer, Reporter):
        return observer
    return Reporter(observer, redact=redact)
