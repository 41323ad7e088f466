"""The counters of `OtelObserver` where Prometheus reads them."""

from semcache.errors import InvalidSettings, MissingExtra
from semcache.events import Event, TokenPrices
from semcache.process.forks import Closeable
from semcache.telemetry.otel import OtelObserver


class PrometheusCounters(Closeable):
    """An observer whose counters can be read as text, in the format of Prometheus.

    Beside its own it tells those of the process: memory, open files, garbage collected.
    """

    def __init__(self, *, prices: TokenPrices | None = None, by_tenant: bool = False) -> None:
        """Begin at zero; for `prices` and `by_tenant` see `OtelObserver`.

        Raises:
            MissingExtra: the extra `otel` is not installed.
        """
        try:
            from opentelemetry.exporter.prometheus import (  # noqa: PLC0415 - an extra
                PrometheusMetricReader,
            )
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - an extra
            from prometheus_client import (  # noqa: PLC0415 - an extra
                CollectorRegistry,
                GCCollector,
                PlatformCollector,
                ProcessCollector,
            )
        except ImportError as error:
            raise MissingExtra(
                "Prometheus needs its exporter; pip install 'semcache-plans[otel]'"
            ) from error
        # Of its own: what shares a registry is served by all, and twice where two count the same.
        self.registry = CollectorRegistry()
        """What is read."""
        for collector in (GCCollector, PlatformCollector, ProcessCollector):
            collector(registry=self.registry)
        self._meters = MeterProvider(
            metric_readers=[PrometheusMetricReader(registry=self.registry)]
        )
        self._open = True
        self._observe = OtelObserver(meters=self._meters, prices=prices, by_tenant=by_tenant)

    def __call__(self, event: Event, /) -> None:
        """Count one event."""
        self._observe(event)

    def text(self) -> str:
        """Return all counters."""
        from prometheus_client import generate_latest  # noqa: PLC0415 - an extra

        return generate_latest(self.registry).decode()

    def close(self) -> None:
        """Count no more; calling it twice is fine."""
        if self._open:
            self._open = False
            self._meters.shutdown()


class PrometheusObserver(PrometheusCounters):
    """An observer whose counters are served as text over HTTP at `/metrics`, until it is closed."""

    def __init__(
        self,
        *,
        port: int = 9464,
        host: str = "127.0.0.1",
        prices: TokenPrices | None = None,
        by_tenant: bool = False,
    ) -> None:
        """Serve at `host` and `port` (0: any that is free; see `port`).

        Raises:
            MissingExtra: the extra `otel` is not installed.
            InvalidSettings: there can be no server at `host` and `port`, or another is there.
        """
        super().__init__(prices=prices, by_tenant=by_tenant)
        from prometheus_client import start_http_server  # noqa: PLC0415 - an extra

        try:
            self._server, self._thread = start_http_server(port, addr=host, registry=self.registry)
        except (OSError, OverflowError, TypeError) as error:
            super().close()
            raise InvalidSettings(
                f"metrics cannot be served at {host!r}, port {port!r}: {error}; name a port from 0 "
                "(any) to 65535 that is free"
            ) from error
        self.port = int(self._server.server_port)
        """Where it serves."""

    def close(self) -> None:
        """Stop serving; calling it twice is fine."""
        if self._open:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()
        super().close()
