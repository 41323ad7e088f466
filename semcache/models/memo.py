"""The vectors of the texts that were embedded last."""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from semcache.errors import InvalidSettings
from semcache.forks import Lock
from semcache.memo import TextKeeper
from semcache.ports import Vector, Vectors


class VectorMemo(TextKeeper):
    """Text → vector, forgetting what was asked for longest ago. Safe from several threads."""

    def __init__(self, size: int) -> None:
        """Keep at most `size` texts; 0 remembers nothing."""
        super().__init__()
        self._size = size
        self._rows: OrderedDict[str, Vector] = OrderedDict()
        self._lock = Lock()

    def embed(self, texts: Sequence[str], encode: Callable[[list[str]], Vectors]) -> Vectors:
        """Return one row a text, in order, asking `encode` once for those not known, each once.

        No lock is held while `encode` works: two threads may encode the same new text.
        """
        known = self._get(texts)
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not texts:
            return encode([])
        if missing:
            fresh = dict(zip(missing, encode(missing), strict=True))
            self._put(fresh)
            known.update(fresh)
        return np.stack([known[text] for text in texts])

    def forget_texts(self) -> None:
        """Forget all texts and their vectors."""
        with self._lock:
            self._rows.clear()

    def _get(self, texts: Sequence[str]) -> dict[str, Vector]:
        found: dict[str, Vector] = {}
        with self._lock:
            for text in texts:
                row = self._rows.get(text)
                if row is not None:
                    self._rows.move_to_end(text)
                    found[text] = row
        return found

    def _put(self, rows: Mapping[str, Vector]) -> None:
        with self._lock:
            for text, row in rows.items():
                # A row is a view into its batch; a copy lets the rest of the batch go.
                self._rows[text] = row.copy()
                self._rows.move_to_end(text)
            while len(self._rows) > self._size:
                self._rows.popitem(last=False)


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
