"""Connections: how long they may take to say what they want, and how many there may be.

A connection that sends its headers or its body too slowly is closed. Where there are too many, the
one that has waited for longest without a whole request makes room, so that half-sent headers keep
nobody out. Where all are at work, a new one is only told about the health of the service.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import h11
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from grapheraser.service.api.problems import Problem

HEALTH = frozenset({"/api/v1/health", "/api/v1/ready", "/v2/health/live", "/v2/health/ready"})
_RESERVE = 32  # connections beyond the bound, for health alone
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
)


class Connection(H11Protocol):
    """A connection of a server; `limited` sets its limits."""

    header_seconds: float
    body_seconds: float
    most: int
    _timer: asyncio.TimerHandle | None = None
    _phase: object = None  # h11's state that the timer is for
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for headers; make room where there are too many connections."""
        super().connection_made(transport)
        self._review()
        if len(self.connections) <= self.most:
            return
        others: Any = self.connections - {self}
        if waiting := [one for one in others if one.is_waiting]:
            oldest = min(waiting, key=lambda one: one._since)
            self.connections.discard(oldest)
            oldest.transport.abort()
        elif len(self.connections) <= self.most + _RESERVE:
            self.app = _OnlyHealth(self.app)
        else:
            transport.abort()

    @property
    def is_waiting(self) -> bool:
        """Tell whether it owes the rest of a request, or is idle between two."""
        return self._timer is not None or self.timeout_keep_alive_task is not None

    def data_received(self, data: bytes) -> None:
        """Read what has come."""
        super().data_received(data)
        self._review()

    def on_response_complete(self) -> None:
        """Go on with the next request, which may have come in part."""
        super().on_response_complete()
        self._review()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._wait(None, 0.0)
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, unless an answer has begun."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(_REFUSAL % (len(msg), msg.encode()))
        self.transport.close()

    def _review(self) -> None:
        """Give headers that are being sent their time, then the body its own."""
        state = self.conn.their_state
        if state is h11.SEND_BODY:
            self._wait(state, self.body_seconds)
        elif state is h11.IDLE and self.timeout_keep_alive_task is None:
            self._wait(state, self.header_seconds)
        else:
            self._wait(None, 0.0)

    def _wait(self, phase: object, seconds: float) -> None:
        """Close the connection so many seconds after a phase began, unless another follows."""
        if phase is self._phase:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._phase, self._since, self._timer = phase, time.monotonic(), None
        if phase is not None:
            self._timer = self.loop.call_later(seconds, self.transport.abort)


def limited(header_seconds: float, body_seconds: float, most: int) -> type[Connection]:
    """Return the connections of a server; ``body_seconds`` begin with the end of the headers."""
    limits = {"header_seconds": header_seconds, "body_seconds": body_seconds, "most": most}
    return type("Connection", (Connection,), limits)


class _OnlyHealth:
    """Answers questions about health, and refuses all others."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["path"] in HEALTH:
            await self._app(scope, receive, send)
            return
        headers = {"Connection": "close", "Retry-After": "1", "X-Content-Type-Options": "nosniff"}
        said = "there are too many connections."
        problem = Problem(503, "too-many-connections", said, headers=headers)
        await problem.response(scope["path"])(scope, receive, send)
