"""The vectors of the texts that were embedded last, and the counts that embedders are made with."""

from collections.abc import Callable, Sequence

import numpy as np

from semcache.errors import InvalidSettings
from semcache.ports import Vector, Vectors
from semcache.process.memo import Lru, TextKeeper


class VectorMemo(TextKeeper):
    """Text → vector, forgetting what was asked for longest ago. Safe from several threads."""

    def __init__(self, size: int) -> None:
        """Keep at most `size` texts; 0 remembers nothing."""
        super().__init__()
        self._rows: Lru[str, Vector] = Lru(size)

    def embed(self, texts: Sequence[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
        """Return one row a text, in order, asking `encode` once for those not known, each once.

        No lock is held while `encode` works: two threads may encode the same new text.
        """
        if not texts:
            return encode([])
        known = {text: row for text in texts if (row := self._rows.use(text)) is not None}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            for text, row in zip(missing, encode(missing), strict=True):
                known[text] = row
                # A row is a view into its batch; a copy lets the rest of the batch go.
                self._rows.put(text, row.copy())
        return np.stack([known[text] for text in texts])

    def forget_texts(self) -> None:
        """Forget all texts and their vectors."""
        self._rows.clear()


def check_counts(*, threads: int, memo: int, batch_size: int) -> None:
    """Check the counts that an embedder of this machine is made with.

    Raises:
        InvalidSettings: `threads` or `batch_size` under 1, or `memo` under 0.
    """
    for name, value, least in (
        ("threads", threads, 1),
        ("memo", memo, 0),
        ("batch_size", batch_size, 1),
    ):
        if value < least:
            raise InvalidSettings(f"{name} is {value!r}; expected {least} or more")
