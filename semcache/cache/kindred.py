"""Kindred: the families of entries whose plans can be compared, unpacked when first asked for."""

import json
from typing import TypeAlias

from semcache.forks import Lock
from semcache.matching.families import Families, Saying

Kin: TypeAlias = tuple[bool, str, str]
"""What makes plans comparable: whether values are given, the catalog, and the grounding."""


class Kindred:
    """Kin → the families there. Safe to read from several threads while one changes them."""

    def __init__(self, packed: bytes = b"") -> None:
        """Begin with what `pack` returned, or empty."""
        self._packed = packed
        self._families: dict[Kin, Families] = {}
        self._lock = Lock()

    def of(self, kin: Kin) -> Families:
        """Return the families of `kin`, none if it is new."""
        known = self._families.get(kin)
        if known is not None:
            return known
        with self._lock:
            if self._packed:
                shared: dict[str, str] = {}
                for key, words, families, more in json.loads(self._packed):
                    # `json` makes new ones, and most words and families are there once more where
                    # values are given.
                    said = [shared.setdefault(one, one) for one in words]
                    alone = zip(said, [shared.setdefault(f, f) for f in families], strict=True)
                    self._families[*key,] = Families({**dict(alone), **more})
                self._packed = b""
            return self._families.setdefault(kin, Families())

    def pack(self) -> bytes:
        """Return all of it as one line of JSON; what is still packed costs nothing."""
        if self._packed:
            return self._packed
        packed = [[kin, *_packed(known.saying)] for kin, known in self._families.items()]
        return json.dumps(packed, separators=(",", ":")).encode()


def _packed(saying: Saying) -> tuple[list[str], list[str], Saying]:
    """Return words that one entry says, the families of those entries, and what the others say."""
    alone = {words: by for words, by in saying.items() if isinstance(by, str)}
    more = {words: by for words, by in saying.items() if words not in alone}
    return [*alone], [*alone.values()], more
