"""Nearby: what was near the last texts searched for, so that it need not be searched again."""

from collections import OrderedDict
from collections.abc import Sequence

from semcache.forks import Lock
from semcache.ports import Neighbor


class Nearby:
    """The neighbors of the last texts, for as long as a view stays what it is. Thread-safe.

    A template text that hits by meaning comes again with other values, and is near the same
    entries until one is added or dropped. It keeps about 6 KB a text.
    """

    def __init__(self, keep: int = 256) -> None:
        self._keep = keep
        self._lock = Lock()
        self._found: OrderedDict[str, tuple[int, Sequence[Neighbor]]] = OrderedDict()

    def get(self, text: str, version: int) -> Sequence[Neighbor] | None:
        """Return what was near `text` in that version of the view; None if nobody searched."""
        known = self._found.get(text)
        return known[1] if known is not None and known[0] == version else None

    def put(self, text: str, version: int, neighbors: Sequence[Neighbor]) -> None:
        """Keep what is near `text`; what was searched longest ago makes room."""
        with self._lock:
            self._found[text] = (version, neighbors)
            self._found.move_to_end(text)
            if len(self._found) > self._keep:
                self._found.popitem(last=False)
