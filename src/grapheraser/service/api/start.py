"""Start an opened service: its worker, its application, and the socket that it listens on."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from grapheraser.errors import ParameterError
from grapheraser.service.api.app import create_app
from grapheraser.service.api.keys import Keys, Role
from grapheraser.service.api.parts import Parts
from grapheraser.service.api.problems import Problem
from grapheraser.service.logs import log
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings

_LOG = logging.getLogger(__name__)
_SHUTDOWN_SECONDS = 5  # that open connections have to end


@contextmanager
def started(service: Service, first_step: int | str | None = None) -> Iterator[FastAPI]:
    """Make the application of a service; ``first_step`` is a node that it offers to forget."""
    parts = Parts(service, first_step)
    service.start()
    parts.witnesses.start()
    if parts.callbacks is not None:
        parts.callbacks.start()
    try:
        yield create_app(parts)
    finally:
        parts.drawings.stop()
        parts.witnesses.stop()
        if parts.callbacks is not None:
            parts.callbacks.stop()
        service.stop()


def serve(service: Service, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Answer until the process is stopped; ``announce`` is called once that begins."""
    stopped = threading.Event()
    servers: list[uvicorn.Server] = []

    def stop(*_: object) -> None:
        stopped.set()
        for server in servers:
            server.should_exit = True

    for name in (signal.SIGINT, signal.SIGTERM):
        # From now on; once the server listens it stops at these itself, and raises them again.
        signal.signal(name, stop)
    with started(service) as app:
        servers.append(make_server(app, service.settings))
        if not stopped.is_set():
            listener.listen()  # connections wait for the server from now on
            announce()
            told = {"url": address_of(listener), "version": service.served.now.version}
            log(_LOG, logging.INFO, "service started", **told)
            servers[0].run(sockets=[listener])
        log(_LOG, logging.INFO, "service stops")
    log(_LOG, logging.INFO, "service stopped")


@contextmanager
def listening(app: ASGIApp, settings: Settings) -> Iterator[str]:
    """Listen in the background; yields the URL."""
    server = make_server(app, settings)
    with bound(settings) as listener:
        listener.listen()  # connections wait for the server from now on
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def bound(settings: Settings) -> Iterator[socket.socket]:
    """Bind the address of the settings. Port 0 is any free one."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    # With its protocol named: asyncio sends answers without delay (TCP_NODELAY) only then.
    with socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((settings.host, settings.port))
        except OSError as error:
            where = f"{settings.host}, port {settings.port}"
            raise ParameterError(
                f"the service can't listen on {where}: {error.strerror}.",
                hint="is another one running there? Choose another --port.",
            ) from error
        yield listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return url_of(host, port)


def make_server(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    """Make the server of an application, with the limits of the settings."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            access_log=False,  # its lines hold paths and addresses; `Measured` logs instead
            log_config=None,
            log_level=logging.WARNING,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
            http=limited(settings.header_seconds, settings.body_seconds, settings.connections),
            ws="none",
        )
    )


def first_key(service: Service) -> str | None:
    """Make the first key, an operator's, and return its text; None where there are keys.

    Refuses to make one where other machines could already connect.
    """
    keys = Keys(service.database)
    if keys:
        return None
    if not is_loopback(service.settings.host):
        raise ParameterError(
            f"the service does not listen on {service.settings.host} before there are API keys.",
            hint="make one first: `grapheraser access RUN --create operator`.",
        )
    return keys.create("first key", Role.OPERATOR)[1]


def url_of(host: str, port: int) -> str:
    """Return the URL of a host and port."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


HEALTH = frozenset({"/api/v1/health", "/api/v1/ready", "/v2/health/live", "/v2/health/ready"})
_RESERVE = 32  # connections beyond the bound, for health alone
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n"
    b"X-Content-Type-Options: nosniff\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
)


class Connection(H11Protocol):
    """A connection of a server; `limited` sets its limits.

    One that sends its headers or its body too slowly is closed. Where there are too many, the one
    that has waited for longest without a whole request makes room, so that half-sent headers keep
    nobody out. Where all are at work, a new one is only told about the health of the service.
    """

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
