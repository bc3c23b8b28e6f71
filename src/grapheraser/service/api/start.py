"""Start an opened service: its worker, its application, and the socket that it listens on."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp

from grapheraser.errors import ParameterError
from grapheraser.service.api.app import create_app
from grapheraser.service.api.connections import limited
from grapheraser.service.api.keys import Keys, Role
from grapheraser.service.api.parts import Parts
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
