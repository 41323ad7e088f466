"""Spans and counters by OpenTelemetry, out of the events of a cache.

    semcache.lookups          hits by `tier`, misses by `reason`
    semcache.lookup.seconds   a histogram by `result`
    semcache.phase.seconds    a histogram by `phase`
    semcache.model.calls, .tokens, .cost            what models were asked, by `model` and `purpose`
    semcache.saved.calls, .tokens, .cost            what hits spared: see `SavingsEstimate`
    semcache.stored, .removed, .failures, .operation.seconds

A span stands for each node of a run tree, under the span of the node above it. None of them, and no
attribute, holds words of a prompt or values unless that is asked for.
"""

import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from semcache.canonical import dumps
from semcache.errors import MissingExtra
from semcache.events import (
    EntriesRemoved,
    EntryStored,
    Event,
    LookupFinished,
    ModelCalled,
    NodeClosed,
    NodeFinished,
    NodeOpened,
    PhaseFinished,
    TierFailed,
    TokenPrices,
)
from semcache.telemetry.savings import SavingsEstimate, spent

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

OPEN_SPANS = 10_000
"""Spans that are open at once at most; the oldest ends when there are more."""
BUCKETS_S = tuple(n * 10**e for e in range(-4, 2) for n in (1, 2.5, 5))
"""Bounds of the histograms: hits take fractions of a millisecond, planning takes seconds."""


class OtelObserver:
    """An observer that counts and traces; give it to `open` as `observer`. Safe from threads."""

    def __init__(
        self,
        *,
        meters: "MeterProvider | None" = None,
        tracers: "TracerProvider | None" = None,
        prices: TokenPrices | None = None,
        texts: bool = False,
        by_tenant: bool = False,
    ) -> None:
        """Make the instruments; nothing is sent anywhere by them.

        Args:
            meters: Where counters go; None: the provider that the process has set.
            tracers: Where spans go; None: the provider that the process has set.
            prices: What tokens cost; None: cost is 0.
            texts: Whether spans may hold the words of prompts, inputs and outputs.
            by_tenant: Whether counters and spans name the tenant; with many tenants that is a lot.

        Raises:
            MissingExtra: the extra `otel` is not installed.
        """
        try:
            from opentelemetry import metrics, trace  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra(
                "telemetry needs OpenTelemetry; pip install 'semcache-plans[otel]'"
            ) from error
        self._tracer = trace.get_tracer("semcache", tracer_provider=tracers)
        self._spans: OrderedDict[str, Span] = OrderedDict()
        self._lock = threading.Lock()
        self._prices = prices or TokenPrices()
        self._estimate = SavingsEstimate()
        self._texts = texts
        self._by_tenant = by_tenant
        meter = metrics.get_meter("semcache", meter_provider=meters)

        def count(name: str, says: str) -> metrics.Counter:
            return meter.create_counter(f"semcache.{name}", description=says)

        def seconds(name: str, says: str) -> metrics.Histogram:
            return meter.create_histogram(
                f"semcache.{name}.seconds",
                unit="s",
                description=says,
                explicit_bucket_boundaries_advisory=BUCKETS_S,
            )

        self._lookups = count("lookups", "Prompts looked up, by tier or reason")
        self._stored = count("stored", "Plans stored")
        self._removed = count("removed", "Entries removed, by why")
        self._failures = count("failures", "Parts of the cache that failed and were passed over")
        self._calls = count("model.calls", "Calls of language models")
        self._tokens = count("model.tokens", "Tokens that models took and gave")
        self._cost = count("model.cost", "What those tokens cost")
        self._saved_calls = count("saved.calls", "Calls of models that hits spared, estimated")
        self._saved_tokens = count("saved.tokens", "Tokens that hits spared, estimated")
        self._saved_cost = count("saved.cost", "What hits spared, estimated")
        self._lookup_s = seconds("lookup", "How long lookups take")
        self._phase_s = seconds("phase", "How long each phase takes")
        self._operation_s = seconds("operation", "How long operations take")

    def __call__(self, event: Event, /) -> None:
        """Count and trace one event."""
        match event:
            case LookupFinished():
                self._looked_up(event)
            case PhaseFinished():
                self._phase(event)
            case ModelCalled():
                self._called(event)
            case NodeOpened():
                self._open(event)
            case NodeClosed():
                self._close(event)
            case NodeFinished() if event.operation:
                said = {"operation": event.operation, "error": _class(event.error)}
                self._operation_s.record(event.seconds, said)
            case _:
                self._count(event)

    def _count(self, event: Event) -> None:
        match event:
            case EntryStored():
                self._stored.add(1, self._of(event.tenant))
            case EntriesRemoved():
                self._removed.add(event.count, {"why": event.why, **self._of(event.tenant)})
            case TierFailed():
                self._failures.add(1, {"part": event.part, **self._of(event.tenant)})
            case _:
                pass

    def _of(self, tenant: str) -> dict[str, str]:
        return {"tenant": tenant} if self._by_tenant else {}

    def _looked_up(self, event: LookupFinished) -> None:
        hit = event.tier is not None
        result = "hit" if hit else "miss"
        said = {"result": result, "tier": event.tier or "", "reason": event.reason}
        self._lookups.add(1, {**said, **self._of(event.tenant)})
        self._lookup_s.record(event.seconds, {"result": result, **self._of(event.tenant)})
        if hit:
            self._save()
        if not event.run:  # inside a run there is a node for it
            ended = time.time_ns()
            span = self._tracer.start_span(
                "semcache.lookup",
                start_time=ended - int(event.seconds * 1e9),
                attributes={**said, **self._of(event.tenant)},
            )
            span.end(ended)

    def _save(self) -> None:
        saved = self._estimate.hit()
        self._saved_calls.add(saved.calls)
        self._saved_tokens.add(saved.prompt_tokens, {"kind": "prompt"})
        self._saved_tokens.add(saved.completion_tokens, {"kind": "completion"})
        self._saved_cost.add(saved.cost)

    def _phase(self, event: PhaseFinished) -> None:
        said = {"phase": event.phase, "error": event.error, **self._of(event.tenant)}
        self._phase_s.record(event.seconds, said)
        if event.phase == "plan" and not event.error:
            self._estimate.planned()

    def _called(self, event: ModelCalled) -> None:
        said = {"model": event.model, "purpose": event.purpose}
        self._calls.add(1, {**said, "cached": event.cached, "error": event.error})
        cost = spent(event, self._prices)
        self._estimate.called(cost)
        self._tokens.add(cost.prompt_tokens, {**said, "kind": "prompt"})
        self._tokens.add(cost.completion_tokens, {**said, "kind": "completion"})
        self._cost.add(cost.cost, said)

    # Spans ---------------------------------------------------------------------------------

    def _open(self, event: NodeOpened) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - an extra

        with self._lock:
            above = self._spans.get(event.parent)
        # The name of a run is its prompt; the names of what is inside are those of phases.
        told = event.kind != "run" or self._texts
        span = self._tracer.start_span(
            f"semcache.{event.kind}{f' {event.name}' if told else ''}",
            context=None if above is None else trace.set_span_in_context(above),
            start_time=int(event.started_s * 1e9),
            attributes={"semcache.run": event.run, **self._of(event.tenant)},
        )
        if self._texts:
            span.set_attribute("semcache.input", dumps(event.input))
        with self._lock:
            self._spans[event.id] = span
            _, oldest = (
                self._spans.popitem(last=False) if len(self._spans) > OPEN_SPANS else ("", None)
            )
        if oldest is not None:
            oldest.end()

    def _close(self, event: NodeClosed) -> None:
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an extra

        with self._lock:
            span = self._spans.pop(event.id, None)
        if span is None:
            return
        span.set_attribute("semcache.status", event.status)
        for name in ("tier", "reason"):
            if isinstance(value := event.notes.get(name), str):
                span.set_attribute(f"semcache.{name}", value)
        if event.error:
            span.set_status(Status(StatusCode.ERROR, self._error(event.error)))
        if self._texts:
            span.set_attribute("semcache.output", dumps(event.output))
        started: int | None = getattr(span, "start_time", None)
        span.end(None if started is None else started + int(event.seconds * 1e9))

    def _error(self, error: str) -> str:
        return error if self._texts else _class(error)


def _class(error: str) -> str:
    """Return the class of an error alone: its message may quote values."""
    return error.partition(":")[0]
