"""The models that the settings name."""

from collections.abc import Sequence

from semcache.models.minilm import MiniLMEmbedder
from semcache.models.openai import OpenAIModel
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.models.weights import shipped_weights
from semcache.ports import Embedder, Model, Vectors
from semcache.prompts.redaction import Redact, checked
from semcache.settings import Settings


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder of these settings; it loads nothing before it is used."""
    if not settings.embedder:
        return MiniLMEmbedder(shipped_weights(), threads=settings.embedder_threads)
    return SentenceTransformersEmbedder(settings.embedder, threads=settings.embedder_threads)


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

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row a text, in order. Raises as the embedder does."""
        return self._embedder.embed([checked(self._redact, text) for text in texts])
