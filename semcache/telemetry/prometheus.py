"""The counters of `OtelObserver` where Prometheus reads them."""

from typing import TYPE_CHECKING

from semcache.closing import Closing
from semcache.errors import MissingExtra
from semcache.telemetry.otel import OtelObserver
from semcache.telemetry.saved import Prices

if TYPE_CHECKING:
    from semcache.events import Event


class PrometheusObserver(Closing):
    """An observer whose counters are served as text over HTTP at `/metrics`, until it is closed."""

    def __init__(
        self,
        *,
        port: int = 9464,
        host: str = "127.0.0.1",
        prices: Prices | None = None,
        by_tenant: bool = False,
    ) -> None:
        """Serve at `host` and `port` (0: any that is free; see `port`).

        Raises:
            MissingExtra: the extra `otel` is not installed.
            OSError: the port is taken.
        """
        try:
            from opentelemetry.exporter.prometheus import (  # noqa: PLC0415 - an extra
                PrometheusMetricReader,
            )
            from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415 - an extra
            from prometheus_client import REGISTRY, start_http_server  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise MissingExtra(
                "Prometheus needs its exporter; pip install 'semcache[otel]'"
            ) from error
        self._server, self._thread = start_http_server(port, addr=host, registry=REGISTRY)
        self._meters = MeterProvider(metric_readers=[PrometheusMetricReader()])
        self._observe = OtelObserver(meters=self._meters, prices=prices, by_tenant=by_tenant)
        self.port = int(self._server.server_port)
        """Where it serves."""

    def __call__(self, event: "Event", /) -> None:
        """Count one event."""
        self._observe(event)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._meters.shutdown()
