"""Hooks for OpenTelemetry: a span for every request, where the package is installed.

Where spans go is up to whoever starts the service, with OpenTelemetry's own environment variables
or SDK. A span names the template of a route, the status and the role: nobody, and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

try:
    from opentelemetry import propagate, trace
    from opentelemetry.trace import SpanKind

    is_available = True
except ImportError:  # pragma: no cover - a dependency of the tests
    is_available = False

_NAME = "grapheraser.service"


class Span:
    """A span that may be there or not.

    Args:
        real: OpenTelemetry's, None where it is not installed.
    """

    def __init__(self, real: Any = None) -> None:
        self._real = real

    def done(self, name: str, **attributes: str | int) -> None:
        """Name the span and say what came of it."""
        if self._real is not None:
            self._real.update_name(name)
            for key, value in attributes.items():
                self._real.set_attribute(key.replace("_", "."), value)


@contextmanager
def request_span(headers: dict[str, str]) -> Iterator[Span]:
    """The span of one request; continues the trace that its headers name, if any."""
    if not is_available:
        yield Span()
        return
    tracer = trace.get_tracer(_NAME)
    # What an exception says may be personal.
    with tracer.start_as_current_span(
        "HTTP",
        context=propagate.extract(headers),
        kind=SpanKind.SERVER,
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        yield Span(span)
