"""Weighings: families as they were weighed, for prompts that differ in nothing but values."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from semcache.cache.asked import Asked
from semcache.cache.evidence import Known
from semcache.cache.view import View
from semcache.cache.weighing import Weighed, weighed_alike
from semcache.forks import Lock
from semcache.ports import Neighbor


class _Weighing(NamedTuple):
    neighbors: Sequence[Neighbor]
    version: int
    """Of the evidence."""
    weighed: tuple[Weighed, ...]


class Weighings:
    """The last weighings of all tenants. Safe from several threads."""

    def __init__(self, keep: int = 512) -> None:
        self._keep = keep
        self._lock = Lock()
        self._kept: OrderedDict[_Key, _Weighing] = OrderedDict()

    def of(
        self,
        known: Known,
        view: View,
        asked: Asked,
        neighbors: Sequence[Neighbor],
        weigh: Callable[[], tuple[Weighed, ...]],
    ) -> tuple[Weighed, ...]:
        """Return what `weigh` would, without asking it if a prompt like `asked` was weighed before.

        Before: among the very same neighbors, of which `Nearby` has others once the view changed,
        and by the same evidence.
        """
        if asked.supposed:
            return weigh()
        key = _but_for_values(asked, view)
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and kept.neighbors is neighbors and kept.version == known.version:
            return weighed_alike(known, view, asked, kept.weighed)
        weighed = weigh()
        # Others than those handed out, which hold on to the evidence until their lookup is over.
        apart = tuple([one.judged_by(None) for one in weighed])
        with self._lock:
            self._kept[key] = _Weighing(neighbors, known.version, apart)
            self._kept.move_to_end(key)
            if len(self._kept) > self._keep:
                self._kept.popitem(last=False)
        return weighed

    def forget(self, tenant: str | None) -> None:
        """Drop what is kept of the tenant, or of all (None)."""
        with self._lock:
            for key in [key for key in self._kept if tenant in {None, key.tenant}]:
                del self._kept[key]


class _Key(NamedTuple):
    """All that weighing looks at in a prompt."""

    tenant: str
    text: str
    slots: tuple[tuple[str, str, str], ...]
    """Kind, name, and the word before, of each."""
    given: frozenset[str]
    catalog: str
    grounding: str
    said: frozenset[str]
    """Its values too where an entry holds on to some; empty where none does."""


def _but_for_values(asked: Asked, view: View) -> _Key:
    template = asked.given_template
    return _Key(
        asked.tenant,
        template.text,
        tuple([slot[:3] for slot in template.slots]),
        frozenset(asked.given),
        asked.catalog,
        asked.grounding,
        asked.side().said if view.fixed else frozenset(),
    )
