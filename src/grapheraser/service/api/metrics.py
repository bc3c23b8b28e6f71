"""Prometheus metrics and OpenTelemetry spans, and the middleware that records both.

A span is made for every request where OpenTelemetry is installed; its own environment variables or
SDK say where spans go. A span names the template of a route, the status and the role: nobody, and
no node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.routing import compile_path
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from grapheraser.service.logs import log

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind

    is_available = True
except ImportError:  # pragma: no cover - a dependency of the tests
    is_available = False

_NAME = "grapheraser.service"
_LOG = logging.getLogger(__name__)


@contextmanager
def request_span(headers: dict[str, str]) -> Iterator[Any]:
    """Open the span of one request, in the trace that its headers name; None: not installed."""
    if not is_available:
        yield None
        return
    tracer = trace.get_tracer(_NAME)
    # The text of an exception may be personal.
    with tracer.start_as_current_span(
        "HTTP",
        context=propagate.extract(headers),
        kind=SpanKind.SERVER,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield span


MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5)
_OTHER = "other"


class Gauge(NamedTuple):
    """A current value, or several by a label."""

    name: str
    text: str
    value: float | Mapping[str, float]
    label: str = ""


class Metrics:
    """Counts and times of one application; ``gauges`` are asked for whenever they are read."""

    def __init__(self, gauges: Callable[[], Iterable[Gauge]] = list) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Gauges(gauges))
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
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class Templates:
    """The templates of routes, such as ``/api/v1/requests/{name}``, which name nobody."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._plain = {path for path in paths if "{" not in path}
        self._others = [(compile_path(path)[0], path) for path in paths if "{" in path]

    def of(self, path: str) -> str:
        """Return the template that a path follows."""
        if path in self._plain:
            return path
        return next((known for form, known in self._others if form.match(path)), _OTHER)


class Measured:
    """Middleware that counts and times every request, gives it a span and, if asked to, logs it."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, templates: Templates, *, logged: bool = False
    ) -> None:
        self.app = app
        self.metrics = metrics
        self.templates = templates
        self.logged = logged

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and record its outcome."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, began = 500, time.perf_counter()

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        headers = {n.decode(): v.decode("latin-1") for n, v in scope["headers"] if n in _TRACING}
        with request_span(headers) as span:
            try:
                await self.app(scope, receive, noted)
            finally:
                method = scope["method"] if scope["method"] in _METHODS else _OTHER
                route = self.templates.of(scope["path"])
                self.metrics.requests.labels(route, method, str(status)).inc()
                seconds = time.perf_counter() - began
                self.metrics.seconds.labels(route, method).observe(seconds)
                if self.logged:
                    told = {"method": method, "route": route, "status": status}
                    log(_LOG, logging.INFO, "http request", **told, ms=round(1000 * seconds, 1))
                if span is not None:
                    span.update_name(f"{method} {route}")
                    span.set_attribute("http.request.method", method)
                    span.set_attribute("http.route", route)
                    span.set_attribute("http.response.status.code", status)


_TRACING = (b"traceparent", b"tracestate")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _Gauges(Collector):
    def __init__(self, gauges: Callable[[], Iterable[Gauge]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[Metric]:
        for name, text, value, label in self._gauges():
            labels = [label] if label else []
            family = GaugeMetricFamily(f"grapheraser_{name}", text, labels=labels)
            values = value if isinstance(value, Mapping) else {None: value}
            for key, single in values.items():
                family.add_metric([] if key is None else [key], float(single))
            yield family
