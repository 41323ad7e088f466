"""The models that the settings name."""

import logging
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path

from semcache.errors import WeightsUnavailable
from semcache.matching.gates import STRICT
from semcache.models.difference import FOLDER, MANIFEST, Cryption, LowRankDifference
from semcache.models.minilm import MiniLMEmbedder
from semcache.models.openai import OpenAIModel
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.models.weights import shipped_weights
from semcache.ports import Embedder, Model, Vectors
from semcache.prompts.redaction import Redact, checked
from semcache.settings import Settings
from semcache.stores.cipher import Cipher

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
