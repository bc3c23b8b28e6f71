"""What is measured of the service, for Prometheus, and the middleware that measures it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.service.api.telemetry import request_span

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_OTHER = "other"

# Of every gauge: its help, its label, and its value by that label, or under "" without one.
Gauges = Mapping[str, tuple[str, str, Mapping[str, float]]]


class Metrics:
    """Counts and times of one application.

    Args:
        gauges: what holds at the moment, asked for whenever somebody reads the metrics.
    """

    def __init__(self, gauges: Callable[[], Gauges] = dict) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Now(gauges))
        self.requests = Counter(
            "grapheraser_http_requests",
            "HTTP requests by route, method and status.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "grapheraser_http_seconds",
            "Seconds until an HTTP request was answered.",
            ("route", "method"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.predictions = Counter(
            "grapheraser_predictions", "Nodes or pairs predicted.", registry=self.registry
        )
        self.callbacks = Counter(
            "grapheraser_opendsr_callbacks",
            "Callbacks of OpenDSR by outcome: delivered, retried or given up.",
            ("outcome",),
            registry=self.registry,
        )

    def page(self) -> bytes:
        """All of it, in Prometheus' text format."""
        return generate_latest(self.registry)


class Templates:
    """The templates of routes, such as ``/api/v1/requests/{name}``, which name nobody.

    Args:
        paths: all of them.
    """

    def __init__(self, paths: Iterable[str]) -> None:
        self._plain = {path for path in paths if "{" not in path}
        self._others = [(compile_path(path)[0], path) for path in paths if "{" in path]

    def of(self, path: str) -> str:
        """The template that a path follows."""
        if path in self._plain:
            return path
        return next((known for form, known in self._others if form.match(path)), _OTHER)


class Measured:
    """Middleware that counts and times every request, and gives it a span."""

    def __init__(self, app: ASGIApp, metrics: Metrics, templates: Templates) -> None:
        self.app = app
        self.metrics = metrics
        self.templates = templates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and note what came of it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with request_span(_traced(scope)) as span:
            try:
                await self.app(scope, receive, noted)
            finally:
                method = scope["method"] if scope["method"] in _METHODS else _OTHER
                route = self.templates.of(scope["path"])
                self.metrics.requests.labels(route, method, str(status)).inc()
                self.metrics.seconds.labels(route, method).observe(time.perf_counter() - began)
                span.done(
                    f"{method} {route}",
                    http_request_method=method,
                    http_route=route,
                    http_response_status_code=status,
                )


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def _traced(scope: Scope) -> dict[str, str]:
    """The headers that name a trace."""
    names = (b"traceparent", b"tracestate")
    return {n.decode(): v.decode("latin-1") for n, v in scope["headers"] if n in names}


class _Now(Collector):
    """Gauges that are read when they are asked for."""

    def __init__(self, gauges: Callable[[], Gauges]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for name, (text, label, values) in self._gauges().items():
            family = GaugeMetricFamily(
                f"grapheraser_{name}", text, labels=[label] if label else None
            )
            for key, value in values.items():
                family.add_metric([key] if label else [], value)
            yield family
