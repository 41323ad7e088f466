"""Statistics: what a tenant's lookups came to, counted in memory and kept beside the records."""

import contextlib
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from semcache.canonical import dumps, loads
from semcache.errors import InvalidJson
from semcache.forks import Forked, Lock, follow_forks
from semcache.ports import Clock, PlanStore

NOTE = "statistics"


@dataclass(frozen=True, slots=True)
class Statistics:
    """Counts of one tenant since its first lookup."""

    entries: int
    """Entries that the tenant has now."""
    lookups: int
    """Prompts that were looked up; the lookups of one run count once, as what the last came to."""
    hits: Mapping[str, int]
    """Tier → hits."""
    misses: Mapping[str, int]
    """Reason → misses."""
    stored: int
    feedback_right: int
    feedback_wrong: int
    explored: int = 0
    """Hits whose prompts were planned all the same, to see whether they were right."""
    explored_wrong: int = 0
    """Those where the new plan was another."""
    verified: Mapping[str, int] = field(default_factory=dict)
    """What a verifier said of candidates in doubt → how often."""

    spent: Mapping[str, int] = field(default_factory=dict)
    """What plans cost that were made (`plan:`) or chosen among cached ones (`select:`), each by
    `calls`, `prompt_tokens`, `completion_tokens` and `milliseconds`."""

    @property
    def saved_by_selection(self) -> Mapping[str, float]:
        """Tokens and seconds that plan selection saved: what planning would have cost, less it.

        Planning as it was on average for this tenant; empty before a plan was made and one chosen.
        """
        made, chosen = self.spent.get("plan:calls", 0), self.hits.get("selected", 0)
        if not made or not chosen:
            return {}
        names = ("prompt_tokens", "completion_tokens", "milliseconds")
        saved = {
            name: chosen * self.spent.get(f"plan:{name}", 0) / made
            - self.spent.get(f"select:{name}", 0)
            for name in names
        }
        seconds = saved.pop("milliseconds") / 1000
        return {**saved, "seconds": seconds}

    @property
    def hit_rate(self) -> float:
        """Share of lookups that hit, in [0, 1]; 0 before the first."""
        return sum(self.hits.values()) / self.lookups if self.lookups else 0.0


@dataclass(slots=True)
class _Sums:
    """What is to be added to the store for one tenant."""

    counts: Counter[str] = field(default_factory=Counter)
    uses: Counter[str] = field(default_factory=Counter)
    """Id of an entry → how often it was served."""


class Counters(Forked):
    """Counts events of all tenants; adds them to the store now and then. Thread-safe.

    What happens is appended to a queue, which takes no lock, and is summed up when it is written:
    a lock here would be one that every thread wants on every hit.
    """

    def __init__(self, store: PlanStore, clock: Clock, *, every: int = 1024) -> None:
        self._store = store
        self._clock = clock
        self._every = every
        self._queue: deque[tuple[str, str, str, int]] = deque()
        """Tenant, name, id of the entry that was served, if one was, and how often."""
        self._sums: dict[str, _Sums] = {}
        self._lock = Lock()
        follow_forks(self)

    def add(self, tenant: str, name: str, *, served: str = "", by: int = 1) -> bool:
        """Count `name` `by` times, and one use of the entry `served`; return whether to `flush`."""
        self._queue.append((tenant, name, served, by))
        return len(self._queue) >= self._every

    def flush(self) -> None:
        """Write what is pending to the store.

        Raises:
            StoreUnavailable: the store cannot be written; what is pending waits for the next.
        """
        with self._lock:
            self._sum_up()
            for tenant, sums in list(self._sums.items()):
                self._write(tenant, sums)
                del self._sums[tenant]

    def _write(self, tenant: str, sums: _Sums) -> None:
        if sums.counts:
            self._store.update_note(tenant, NOTE, partial(_added, sums.counts))
            sums.counts = Counter()
        if sums.uses:
            self._store.use(tenant, sums.uses, now_s=self._clock.now())

    def _sum_up(self) -> None:
        with contextlib.suppress(IndexError):  # the queue is empty
            while True:
                tenant, name, served, by = self._queue.popleft()
                sums = self._sums.setdefault(tenant, _Sums())
                sums.counts[name] += by
                if served:
                    sums.uses[served] += 1

    def read(self, tenant: str) -> Counter[str]:
        """Return the tenant's counts, pending ones included."""
        counts = _read(self._store.get_note(tenant, NOTE))
        with self._lock:
            self._sum_up()
            counts.update(self._sums.get(tenant, _Sums()).counts)
        return counts

    def forget(self, tenant: str | None) -> None:
        """Drop what is pending for the tenant, or for all (None)."""
        with self._lock:
            self._sum_up()
            for known in list(self._sums) if tenant is None else [tenant]:
                self._sums.pop(known, None)

    def forked(self) -> None:
        """Leave what is pending to the parent, which will write it."""
        self._queue = deque()
        self._sums = {}


def _read(text: str | None) -> Counter[str]:
    try:
        doc = loads(text, what="statistics") if text else {}
    except InvalidJson:
        return Counter()  # counts are worth less than an error to a caller who wants an answer
    pairs = doc.items() if isinstance(doc, dict) else ()
    # Names are ours and ASCII; in an edited note there may be such as no store can keep.
    return Counter({name: n for name, n in pairs if isinstance(n, int) and name.isascii()})


def _added(new: Counter[str], old: str | None) -> str:
    return dumps(dict(_read(old) + new))


def statistics(counts: Counter[str], entries: int) -> Statistics:
    """Return `counts` by their names: `hit:<tier>`, `miss:<reason>`, `stored` and so on."""
    hits = {name[4:]: n for name, n in counts.items() if n and name.startswith("hit:")}
    misses = {name[5:]: n for name, n in counts.items() if n and name.startswith("miss:")}
    return Statistics(
        entries=entries,
        lookups=sum(hits.values()) + sum(misses.values()),
        hits=hits,
        misses=misses,
        stored=counts["stored"],
        feedback_right=counts["right"],
        feedback_wrong=counts["wrong"],
        explored=counts["explored"],
        explored_wrong=counts["explored_wrong"],
        verified={n[9:]: c for n, c in counts.items() if n.startswith("verified:")},
        spent={n[6:]: c for n, c in counts.items() if n.startswith("spent:")},
    )
