import sys
from typing import Any, Literal
from urllib.request import urlopen

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from semcache import PlanCache, SemCache, catalog_from, operation
from semcache.errors import InvalidSettings, MissingExtra, PlanningError
from semcache.events import (
    EntriesRemoved,
    ModelCalled,
    NodeOpened,
    PhaseFinished,
    TierFailed,
    TokenPrices,
)
from semcache.telemetry.otel import OtelObserver
from semcache.telemetry.prometheus import PrometheusObserver
from semcache.testing import HashEmbedder


@operation(effect="read")
def list_invoices(customer: Literal["Acme", "Initech"]) -> str:
    """List the invoices of a customer."""
    return f"many of {customer}"


class Watched:
    """An observer, and what came of it."""

    def __init__(self, **more: Any) -> None:
        self._reader = InMemoryMetricReader()
        self.exported = InMemorySpanExporter()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self.exported))
        self.observe = OtelObserver(
            meters=MeterProvider(metric_readers=[self._reader]), tracers=tracers, **more
        )

    def metric(self, name: str, **said: object) -> float:
        """Return a counter, or how often a histogram was recorded, over points with `said`."""
        data: Any = self._reader.get_metrics_data()
        found = [
            getattr(point, "value", None) if hasattr(point, "value") else point.count
            for of_resource in (data.resource_metrics if data else ())
            for scope in of_resource.scope_metrics
            for metric in scope.metrics
            if metric.name == f"semcache.{name}"
            for point in metric.data.data_points
            if said.items() <= dict(point.attributes).items()
        ]
        return float(sum(filter(None, found)))

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exported.get_finished_spans()}


def call(**more: Any) -> ModelCalled:
    told: dict[str, Any] = {"purpose": "plan", "model": "m", "prompt_tokens": 100}
    told |= {"run": "", "attempt": 1, "seconds": 1.0, "completion_tokens": 10, **more}
    return ModelCalled(**told)


def test_hits_are_counted_by_tier_and_misses_by_reason() -> None:
    watched = Watched()
    with PlanCache.open(embedder=HashEmbedder(), observer=watched.observe) as cache:
        cache.lookup("sales in 2024")
        cache.store("sales in 2024", {"year": "2024"}, params={"year": "2024"})
        cache.lookup("sales in 2023")
        cache.lookup("please show me the sales in 2023")
    assert watched.metric("lookups", result="miss", reason="empty") == 1
    assert watched.metric("lookups", result="hit", tier="template") == 1
    assert watched.metric("lookups", result="hit", tier="semantic") == 1
    assert watched.metric("lookup.seconds", result="hit") == 2
    assert watched.metric("phase.seconds", phase="embed") >= 1
    assert watched.metric("stored") == 1


def test_other_events_are_counted_as_what_they_are() -> None:
    watched = Watched(by_tenant=True)
    watched.observe(EntriesRemoved(tenant="acme", count=3, why="evicted"))
    watched.observe(TierFailed(tenant="acme", part="store", error="StoreUnavailable: locked"))
    assert watched.metric("removed", why="evicted", tenant="acme") == 3
    assert watched.metric("failures", part="store") == 1


def test_a_hit_saves_what_a_planned_miss_cost_on_average() -> None:
    watched = Watched(prices=TokenPrices(prompt=2.0, completion=20.0))
    with PlanCache.open(embedder=HashEmbedder(), observer=watched.observe) as cache:
        cache.store("sales in 2024", {"year": "2024"}, params={"year": "2024"})
        cache.lookup("sales in 2023")  # nothing is known of what planning costs yet
        assert watched.metric("saved.calls") == 0
        for event in (call(), call(attempt=2), call(cached=True), call()):
            watched.observe(event)
        for error in ("", "", "PlanningError"):
            watched.observe(
                PhaseFinished(tenant="t", run="r", phase="plan", seconds=1.0, error=error)
            )
        cache.lookup("sales in 2022")
        cache.lookup("sales in 2021")
    assert watched.metric("model.calls") == 4
    assert watched.metric("model.calls", cached=True) == 1
    assert watched.metric("model.tokens", kind="prompt") == 300
    assert watched.metric("model.cost") == pytest.approx(3 * 400e-6)
    assert watched.metric("saved.calls") == pytest.approx(2 * 3 / 2)
    assert watched.metric("saved.tokens", kind="prompt") == pytest.approx(2 * 300 / 2)
    assert watched.metric("saved.cost") == pytest.approx(2 * 1200e-6 / 2)


def run_once(watched: Watched) -> None:
    with SemCache.open(
        catalog=catalog_from(list_invoices), embedder=HashEmbedder(), observer=watched.observe
    ) as semcache:
        semcache.run("List the invoices of Acme")
        with pytest.raises(PlanningError):
            semcache.run("who knows Acme well")


def test_a_run_is_a_tree_of_spans_without_a_word_of_the_prompt() -> None:
    watched = Watched()
    run_once(watched)
    spans = watched.spans
    finished = watched.exported.get_finished_spans()
    top = next(span for span in finished if span.name == "semcache.run")
    assert spans.keys() >= {"semcache.run", "semcache.step lookup", "semcache.step plan"}
    lookup = next(
        span for span in finished
        if span.name == "semcache.step lookup" and span.context.trace_id == top.context.trace_id
    )  # fmt: skip
    assert lookup.parent is not None
    assert lookup.parent.span_id == top.context.span_id
    assert top.start_time is not None
    assert lookup.start_time is not None
    assert top.start_time <= lookup.start_time
    assert watched.metric("operation.seconds", operation="list_invoices") == 1
    said = repr([span.to_json() for span in watched.exported.get_finished_spans()])
    assert "Acme" not in said
    assert "PlanningError" in said


def test_texts_are_in_spans_if_asked_for() -> None:
    watched = Watched(texts=True)
    run_once(watched)
    said = repr([span.to_json() for span in watched.exported.get_finished_spans()])
    assert "many of Acme" in said


def test_a_lookup_outside_a_run_is_a_span_of_its_own() -> None:
    watched = Watched()
    with PlanCache.open(embedder=HashEmbedder(), observer=watched.observe) as cache:
        cache.lookup("sales in 2024")
    attributes = watched.spans["semcache.lookup"].attributes
    assert attributes is not None
    assert attributes["reason"] == "empty"


def test_spans_that_never_end_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("semcache.telemetry.otel.OPEN_SPANS", 3)
    watched = Watched()
    for n in range(10):
        watched.observe(
            NodeOpened(tree="t", run="t", id=str(n), parent="", tenant="x", name="n",
                       kind="step", started_s=1.0)
        )  # fmt: skip
    assert len(watched.exported.get_finished_spans()) == 7


def test_prometheus_reads_the_counters_as_text() -> None:
    with PrometheusObserver(port=0) as observer:
        with PlanCache.open(embedder=HashEmbedder(), observer=observer) as cache:
            cache.lookup("sales in 2024")
        with urlopen(f"http://127.0.0.1:{observer.port}/metrics") as answer:
            text = answer.read().decode()
    (line,) = [one for one in text.splitlines() if one.startswith("semcache_lookups_total{")]
    assert 'reason="empty"' in line
    assert line.endswith(" 1.0")
    assert "semcache_lookup_seconds_bucket{" in text


def served(observer: PrometheusObserver) -> list[str]:
    with urlopen(f"http://127.0.0.1:{observer.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return [line for line in lines if line.startswith("semcache_lookups_total{")]


def test_two_observers_of_one_process_count_for_themselves_alone() -> None:
    with PrometheusObserver(port=0) as one, PrometheusObserver(port=0) as other:
        for observer, times in ((one, 1), (other, 2)):
            with PlanCache.open(embedder=HashEmbedder(), observer=observer) as cache:
                for _ in range(times):
                    cache.lookup("sales in 2024")
        assert [line[-4:] for line in served(one)] == [" 1.0"]
        assert [line[-4:] for line in served(other)] == [" 2.0"]


def test_an_observer_that_was_closed_may_be_closed_again_and_its_port_is_free() -> None:
    observer = PrometheusObserver(port=0)
    with pytest.raises(InvalidSettings, match=f"port {observer.port}.*that is free"):
        PrometheusObserver(port=observer.port)
    observer.close()
    observer.close()
    with PrometheusObserver(port=observer.port) as again:
        assert served(again) == []


@pytest.mark.parametrize("port", [-1, 70_000, "metrics", None])
def test_a_port_that_is_none_is_refused(port: Any) -> None:
    with pytest.raises(InvalidSettings, match="port"):
        PrometheusObserver(port=port)


@pytest.mark.parametrize("make", [OtelObserver, PrometheusObserver])
def test_without_the_extra_it_is_named(
    make: type[OtelObserver], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("opentelemetry", "opentelemetry.exporter.prometheus"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"semcache-plans\[otel\]"):
        make()
