"""The models that the settings name."""

from semcache.models.minilm import MiniLMEmbedder
from semcache.models.openai import OpenAIModel
from semcache.models.sentence_transformers import SentenceTransformersEmbedder
from semcache.ports import (
    Embedder,
    Model,
)
from semcache.settings import Settings


def open_embedder(settings: Settings) -> Embedder:
    """Return the embedder of these settings; it loads nothing before it is used."""
    if not settings.embedder:
        return MiniLMEmbedder(threads=settings.embedder_threads)
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
    )
