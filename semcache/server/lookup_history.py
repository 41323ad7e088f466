"""The last lookups of each tenant: to judge what was found, and to look at."""

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from semcache.cache.result import Found, Hit
from semcache.canonical import JsonObject
from semcache.errors import UnknownLookup

MAX_KEPT = 1000
"""Lookups that a tenant may still judge and look at; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class KeptLookup:
    """What one lookup came to."""

    id: str
    found: Found
    at_s: float
    """Epoch seconds."""
    right: bool | None = None
    """What was said of it; None: nothing."""

    def summary(self) -> JsonObject:
        """Return it as JSON without plan and trace."""
        found, trace = self.found, self.found.trace
        hit = found if isinstance(found, Hit) else None
        near = found if isinstance(found, Hit) else found.nearest
        return {
            "id": self.id,
            "at": round(self.at_s, 3),
            "prompt": trace.prompt,
            "template": trace.template,
            "milliseconds": round(sum(trace.seconds.values()) * 1000, 3),
            "right": self.right,
            "hit": hit is not None,
            "tier": hit.tier if hit else "",
            "reason": "" if isinstance(found, Hit) else found.reason,
            "score": None if near is None else near.score,
            "risk": hit.risk if hit else None,
        }

    def details(self) -> JsonObject:
        """Return all of it as JSON, with the explanation for a person."""
        return {
            **self.summary(),
            "found": self.found.to_dict(),
            "explanation": self.found.explain(),
        }


class RecentLookups:
    """The last lookups of each tenant, in this process. Safe from several threads."""

    def __init__(self, *, now: Callable[[], float] = time.time) -> None:
        """Keep none; `now`: epoch seconds."""
        self._now = now
        self._lock = threading.Lock()
        self._kept: dict[str, OrderedDict[str, KeptLookup]] = {}

    def keep(self, tenant: str, found: Found) -> str:
        """Keep what was found, and return what it is called."""
        # By chance: a number would name another lookup after a restart, or in a second process.
        kept = KeptLookup(f"found-{secrets.token_hex(8)}", found, self._now())
        with self._lock:
            ours = self._of(tenant)
            ours[kept.id] = kept
            if len(ours) > MAX_KEPT:
                ours.popitem(last=False)
        return kept.id

    def get(self, tenant: str, name: str) -> KeptLookup:
        """Return what is called `name`.

        Raises:
            UnknownLookup: the tenant was given nothing of that name, or too long ago.
        """
        with self._lock:
            kept = self._of(tenant).get(name)
        if kept is None:
            raise UnknownLookup(
                f"nothing that you were given is called {name!r:.100}; this process keeps the last "
                f"{MAX_KEPT:,} lookups of a tenant"
            )
        return kept

    def judged(self, tenant: str, name: str, *, right: bool) -> None:
        """Note what was said of a lookup, if it is still kept."""
        with self._lock:
            ours = self._of(tenant)
            if name in ours:
                ours[name] = replace(ours[name], right=right)

    def newest(self, tenant: str, count: int) -> list[JsonObject]:
        """Return summaries of the last `count` lookups, newest first."""
        with self._lock:
            kept = [*self._of(tenant).values()]
        return [one.summary() for one in kept[: -count - 1 : -1]]

    def _of(self, tenant: str) -> OrderedDict[str, KeptLookup]:
        return self._kept.setdefault(tenant, OrderedDict())
