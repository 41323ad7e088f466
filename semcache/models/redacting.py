"""An embedder that is shown only what may be embedded."""

from collections.abc import Sequence

from semcache.ports import Embedder, Vectors
from semcache.prompts.redaction import Redact, checked


class RedactingEmbedder:
    """Any embedder, each text redacted before it. Safe from several threads if that one is."""

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
