"""The parts of a cache: those of a caller are checked, those of settings are made."""

import logging
import time
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

from semcache.catalog.catalog import Catalog
from semcache.errors import InvalidSettings, WeightsUnavailable
from semcache.events import Event
from semcache.matching.gates import STRICT
from semcache.models.difference import FOLDER, MANIFEST, Cryption, LowRankDifference
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.openai import OpenAIModel
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.models.weights import shipped_weights
from semcache.ports import Embedder, Model, Observer, Vectors, Verifier
from semcache.prompts.redaction import Redact, checked
from semcache.runs.redaction import redacted_event
from semcache.settings import Settings
from semcache.stores.cipher import Cipher


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


# The models that the settings name.

log = logging.getLogger(__name__)

SEALED = "embedder difference"
"""What a difference is encrypted for: elsewhere it cannot be decrypted."""


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder of these settings; it loads no weights before it is used.

    To the default one a difference is added that `semcache train` left. One that cannot be used is
    warned of, and the plain embedder serves.
    """
    if settings.embedder:
        return SentenceTransformersEmbedder(settings.embedder, threads=settings.embedder_threads)
    weights, threads = shipped_weights(), settings.embedder_threads
    folder = difference_folder(settings)
    if folder is not None and (folder / MANIFEST).exists():
        try:
            difference = LowRankDifference.read(folder, decrypt=difference_keys(settings)[1])
            return MiniLMEmbedder(weights, difference=difference, threads=threads)
        except WeightsUnavailable as error:
            log.warning("%s; the plain embedder serves", error)
    return MiniLMEmbedder(weights, threads=threads)


def difference_folder(settings: Settings) -> Path | None:
    """Return where the difference for the default embedder is, or would be; None: nowhere."""
    if settings.embedder_difference is not None:
        return settings.embedder_difference
    return None if settings.directory is None else settings.directory / FOLDER


def difference_keys(settings: Settings) -> tuple[Cryption, Cryption] | tuple[None, None]:
    """Return what encrypts and decrypts a difference; two None without an encryption key."""
    if not settings.encryption_key:
        return None, None
    cipher = Cipher(settings.encryption_key)

    def encrypt(content: bytes) -> bytes:
        return cipher.encrypt(b64encode(content).decode(), SEALED).encode()

    def decrypt(content: bytes) -> bytes:
        return b64decode(cipher.decrypt(content.decode(), SEALED))

    return encrypt, decrypt


def open_model(settings: Settings) -> Model | None:
    """Return the model of these settings; None if they name none."""
    if not settings.model:
        return None
    return OpenAIModel(
        settings.model,
        api_key=settings.api_key or None,
        base_url=settings.base_url or None,
        timeout_s=settings.model_timeout_s,
        max_retries=settings.model_retries,
        temperature=settings.temperature,
        arguments=settings.model_arguments,
    )


class RedactingEmbedder:
    """An embedder that is shown only what may be embedded; as safe from threads as it is."""

    def __init__(self, embedder: Embedder, redact: Redact) -> None:
        self._embedder = embedder
        self._redact = redact

    @property
    def fingerprint(self) -> str:
        """The embedder's own: what it makes of a text is the same."""
        return self._embedder.fingerprint

    @property
    def strict_cosine(self) -> float:
        """The embedder's own, if it has one; see `ports.Embedder`."""
        return getattr(self._embedder, "strict_cosine", STRICT)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, in order. Raises as the embedder does."""
        return self._embedder.embed([checked(self._redact, text) for text in texts])
