"""Reports: what each lookup came to and what failed is counted, logged, and told to who listens.

A tenant's counts are kept in memory and, now and then, beside its records. `Reporting` is a part of
`PlanCache`, which has its methods as its own.
"""

import contextlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from semcache.cache.result import Found, Hit, Miss
from semcache.canonical import Json, dumps, loads
from semcache.errors import InvalidJson, StoreError
from semcache.events import EntriesRemoved, Event, LookupFinished, PhaseFinished, TierFailed
from semcache.matching.model.bound import Certificate
from semcache.ports import Clock, Observer, PlanStore
from semcache.process.forks import Forked, Lock, follow_forks
from semcache.process.memo import Lru

if TYPE_CHECKING:
    from semcache.cache.context import CacheContext

STATISTICS_NOTE = "statistics"


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

    certificate: Certificate | None = None
    """What is known now of how many hits by meaning are wrong."""

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
            self._store.update_note(tenant, STATISTICS_NOTE, partial(_added, sums.counts))
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
        counts = _read(self._store.get_note(tenant, STATISTICS_NOTE))
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
    return Counter({name: n for name, n in pairs if isinstance(n, int)})


def _added(new: Counter[str], old: str | None) -> str:
    return dumps(dict(_read(old) + new))


def statistics(
    counts: Counter[str], entries: int, certificate: Certificate | None = None
) -> Statistics:
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
        certificate=certificate,
    )


log = logging.getLogger(__name__)

Why = Literal["invalidated", "expired", "evicted", "cleared", "feedback", "failed"]


class HealthReporter:
    """Passes events on, and keeps in mind which parts fail so that each is warned of once.

    Safe from several threads: the worst of a race is one warning more.
    """

    def __init__(self, observer: Observer | None) -> None:
        self.observer = observer
        """What hears of everything; None: nobody listens."""
        self._failing: set[tuple[str, str]] = set()

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        if self.observer is not None:
            self.observer(event)

    def removed(self, tenant: str, count: int, why: Why) -> None:
        """Tell that entries are gone."""
        self.emit(EntriesRemoved(tenant=tenant, count=count, why=why))

    @contextlib.contextmanager
    def guarded(self, tenant: str) -> Iterator[None]:
        """Turn store trouble inside into an event and one warning."""
        try:
            yield
        except StoreError as error:
            self.failed(tenant, "store", error, doing="writing")

    def failed(self, tenant: str, part: str, error: Exception, *, doing: str = "") -> None:
        """Report a failure, and warn if the part worked up to now.

        Writing may go on failing where reading works (a full disk): each is told apart, or every
        lookup between two failing writes would bring the warning back.
        """
        self.emit(TierFailed(tenant=tenant, part=part, error=f"{type(error).__name__}: {error}"))
        warned = any(known == part for known, _ in tuple(self._failing))
        self._failing.add((part, doing))
        if not warned:
            log.warning("%s failed and is passed over until it works again: %s", part, error)

    def mended(self, part: str, *, doing: str = "") -> None:
        """Forget that `part` failed, so that its next failure is warned of again."""
        self._failing.discard((part, doing))

    def worked(self, found: Found) -> None:
        """Forget failures of what this lookup has just used."""
        if not self._failing:
            return
        self.mended("store")
        failed = isinstance(found, Miss) and found.reason == "embedder_failed"
        if "embed" in found.trace.seconds and not failed:
            self.mended("embedder")


RUNS = 1024
"""Runs whose last lookup is remembered: more than are under way at once."""


class Reports:
    """Counts and tells what happens. Safe from several threads."""

    def __init__(
        self, counters: Counters, health: HealthReporter, *, flush: Callable[[], None]
    ) -> None:
        """Keep the parts; `flush` is called when so much is counted that it is to be written."""
        self._counters = counters
        self._health = health
        self._flush = flush
        self._runs: Lru[tuple[str, str], str] = Lru(RUNS)
        """Tenant and run → what its last lookup was counted as."""

    def count(self, tenant: str, name: str, *, served: str = "", by: int = 1) -> None:
        """Count `name` `by` times, and one use of the entry `served`."""
        if self._counters.add(tenant, name, served=served, by=by):
            self._flush()

    def _count_run(self, tenant: str, run: str, name: str, served: str) -> None:
        """Count a lookup of a run in the place of the one before: a run may look up several times.

        It looks again once it has its turn to plan, and with the schema that a model told.
        """
        before = self._runs.pop((tenant, run))
        self._runs.put((tenant, run), name)
        if before is not None:
            self.count(tenant, before, by=-1)
        self.count(tenant, name, served=served)

    def looked_up(self, found: Found, tenant: str, run: str, seconds: float) -> None:
        """Tell what a lookup of a run came to, and how many seconds it and its phases took."""
        if isinstance(found, Hit):
            log.info("HIT %s %s (%.1f ms)", found.tier, found.key, seconds * 1000)
            counted, served = f"hit:{found.tier}", found.entry
        else:
            log.info("MISS %s (%s)", found.trace.key or found.trace.template, found.reason)
            counted, served = f"miss:{found.reason}", ""
        if run:
            self._count_run(tenant, run, counted, served)
        else:
            self.count(tenant, counted, served=served)
        if self._health.observer is None:
            return
        self._health.emit(_finished(found, tenant, run, seconds))
        for phase, took in found.trace.seconds.items():
            self._health.emit(PhaseFinished(tenant=tenant, run=run, phase=phase, seconds=took))


def _finished(found: Found, tenant: str, run: str, seconds: float) -> LookupFinished:
    if isinstance(found, Hit):
        return LookupFinished(
            tenant=tenant,
            run=run,
            key=found.key,
            tier=found.tier,
            reason="",
            score=found.score,
            seconds=seconds,
        )
    return LookupFinished(
        tenant=tenant,
        run=run,
        key=found.trace.key,
        tier=None,
        reason=found.reason,
        score=found.nearest.score if found.nearest else None,
        seconds=seconds,
    )


class Reporting:
    """What whoever plans beside a cache may tell, has counted, and must not write down."""

    _context: "CacheContext"

    def count(self, what: str, *, tenant: str = "default", by: int = 1) -> None:
        """Add to a count of the tenant that `stats` returns in `spent`: `plan:prompt_tokens`."""
        self._context.reports.count(tenant, f"spent:{what}", by=by)

    def without_ignored(self, plan: Json) -> Json:
        """Return `plan` without the fields that `ignore` of `open` names, as it would be kept."""
        return self._context.volatile.without(plan)

    def redacted(self, text: str, *, prompt: str = "", params: object = None) -> str:
        """Return `text` as it may be written down, for whoever tells of `prompt` elsewhere.

        What is hidden of the prompt and of its `params` is hidden in `text` too.
        """
        return self._context.queries.redacted(text, prompt=prompt, params=params)

    def emit(self, event: Event) -> None:
        """Hand `event` to the observer."""
        self._context.health.emit(event)

    def guarded(self, tenant: str) -> contextlib.AbstractContextManager[None]:
        """Turn store trouble inside into an event and one warning."""
        return self._context.health.guarded(tenant)
