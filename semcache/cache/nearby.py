"""Nearby: what was near the last texts searched for, so that it need not be searched again."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import TypeAlias

from semcache.forks import Lock
from semcache.ports import Neighbor

Searched: TypeAlias = tuple[str, str, str]
"""Catalog, grounding, and the text that was embedded."""


class Nearby:
    """The neighbors of the last texts of all tenants, as long as views stay what they are.

    A template text that hits by meaning comes again with other values, and is near the same
    entries until one is added or dropped. It keeps about 6 KB a text. Thread-safe.
    """

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._lock = Lock()
        self._found: OrderedDict[tuple[int, Searched], Sequence[Neighbor]] = OrderedDict()

    def get(self, searched: Searched, version: int) -> Sequence[Neighbor] | None:
        """Return what was found in that version of a view; None if nobody searched."""
        return self._found.get((version, searched))

    def put(self, searched: Searched, version: int, neighbors: Sequence[Neighbor]) -> None:
        """Keep what was found; what was searched longest ago makes room."""
        with self._lock:
            self._found[version, searched] = neighbors
            if len(self._found) > self._keep:
                self._found.popitem(last=False)
