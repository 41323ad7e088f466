"""Kindred: the families of entries whose plans can be compared, unpacked when first asked for."""

import json
import threading
from typing import TypeAlias

from semcache.matching.families import Families, Saying

Kin: TypeAlias = tuple[bool, str, str]
"""What makes plans comparable: whether values are given, the catalog, and the grounding."""


class Kindred:
    """Kin → the families there. Safe to read from several threads while one changes them."""

    def __init__(self, packed: bytes = b"") -> None:
        """Begin with what `pack` returned, or empty."""
        self._packed = packed
        self._families: dict[Kin, Families] = {}
        self._lock = threading.Lock()

    def of(self, kin: Kin) -> Families:
        """Return the families of `kin`, none if it is new."""
        known = self._families.get(kin)
        if known is not None:
            return known
        with self._lock:
            if self._packed:
                alone: dict[str, dict[str, int]] = {}
                for key, saying in json.loads(self._packed):
                    self._families[*key,] = Families(_shared(saying, alone))
                self._packed = b""
            return self._families.setdefault(kin, Families())

    def pack(self) -> bytes:
        """Return all of it as one line of JSON; what is still packed costs nothing."""
        if self._packed:
            return self._packed
        packed = [[kin, known.saying] for kin, known in self._families.items()]
        return json.dumps(packed, separators=(",", ":")).encode()


def _shared(saying: Saying, alone: dict[str, dict[str, int]]) -> Saying:
    """Return `saying` with one object for all that one entry of a family says alone.

    Most words are said by one entry, in one family with values given and without. Nobody changes
    such an object (`Families`); `alone` holds those of earlier calls.
    """
    for words, families in saying.items():
        if len(families) == 1 and (*families.values(),) == (1,):
            (family,) = families
            saying[words] = alone.setdefault(family, families)
    return saying
