"""From an opened service to an application that listens."""

from __future__ import annotations

import ipaddress
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from grapheraser.errors import ParameterError
from grapheraser.service.api.access import Keys, Role
from grapheraser.service.api.app import create_app
from grapheraser.service.api.callbacks import Callbacks
from grapheraser.service.api.gathering import Gathering
from grapheraser.service.api.log import Log
from grapheraser.service.api.metrics import Gauges, Metrics
from grapheraser.service.api.parts import Parts
from grapheraser.service.api.signatures import Processor
from grapheraser.service.requests import OPEN
from grapheraser.service.running import Service
from grapheraser.service.scores import Scores
from grapheraser.service.settings import Settings
from grapheraser.service.shards import MeasuredShards
from grapheraser.service.verifying import Verifications

_SHUTDOWN = 5  # seconds that open connections have to come to an end


def parts_of(service: Service) -> Parts:
    """What the routes stand on, from the parts of a service."""
    settings, queue = service.settings, service.queue
    metrics = Metrics(lambda: gauges(service))
    parts = Parts(
        settings=settings,
        run=service.served.path,
        queue=queue,
        subjects=service.subjects,
        gathering=Gathering(queue.intake),
        served=service.served,
        keys=Keys(service.database),
        log=Log(service.served.path),
        shards=MeasuredShards(service.served),
        verifications=Verifications(service.served),
        metrics=metrics,
        scores=_scores(service),
        processor=_processor(settings),
        worker_works=service.works,
    )
    if parts.processor is None:
        return parts
    callbacks = Callbacks(queue, parts.processor, parts.callback_rules, metrics)
    return parts.with_callbacks(callbacks)


@contextmanager
def started(service: Service, first_step: int | str | None = None) -> Iterator[FastAPI]:
    """The application of a service, whose worker and callbacks run while it is used.

    Args:
        service: all its parts.
        first_step: a node that the dashboard offers to forget, to try it out.
    """
    parts = replace(parts_of(service), first_step=first_step)
    service.start()
    if parts.callbacks is not None:
        parts.callbacks.start()
    try:
        yield create_app(parts)
    finally:
        parts.drawings.stop()
        if parts.callbacks is not None:
            parts.callbacks.stop()
        service.stop()


def serve(service: Service, listener: socket.socket, announce: Callable[[], None]) -> None:
    """Answer until somebody stops the process; then let the worker finish its batch.

    Args:
        service: all its parts.
        listener: where to listen, from `bound`.
        announce: called once whoever connects is answered.
    """
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
        servers.append(_server(app, service.settings))
        if not stopped.is_set():
            listener.listen()  # who connects from now on waits for the server
            announce()
            servers[0].run(sockets=[listener])


@contextmanager
def listening(app: FastAPI, settings: Settings) -> Iterator[str]:
    """Listen in the background; gives the URL."""
    server = _server(app, settings)
    with bound(settings) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield address_of(listener)
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def bound(settings: Settings) -> Iterator[socket.socket]:
    """Take the address of the settings, so that nobody else can. Port 0 is any that is free."""
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
    """The URL of what listens here."""
    host, port = listener.getsockname()[:2]
    return url_of(host, port)


def _server(app: FastAPI, settings: Settings) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            access_log=False,  # its lines hold paths and addresses; metrics count what is needed
            log_level=logging.WARNING,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=_SHUTDOWN,
        )
    )


def first_key(service: Service) -> str | None:
    """The text of the first key, an operator's, which is made where there is none yet.

    Refuses to make one where others than this machine could already ask.
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
    """Where a service is reached."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def gauges(service: Service) -> Gauges:
    """What holds at the moment."""
    queue = service.queue
    counts, now, due = queue.counts(), queue.clock(), queue.due(service.settings.alert)
    late = sum(request.is_late(now) for request in due)
    return {
        "requests": (
            "Requests by state.",
            "state",
            {state.value: float(count) for state, count in counts.items()},
        ),
        "requests_open": (
            "Requests that are not completed.",
            "",
            {"": float(sum(counts[state] for state in OPEN))},
        ),
        "requests_late": ("Open requests past their deadline.", "", {"": float(late)}),
        "requests_due_soon": (
            "Open requests close to their deadline or past it.",
            "",
            {"": float(len(due))},
        ),
        "worker_trouble": (
            "Whether something keeps the worker from working; the log says what.",
            "",
            {"": float(service.trouble is not None)},
        ),
        "worker_restarts": (
            "How often the worker's process has ended by itself and was started again.",
            "",
            {"": float(service.restarts)},
        ),
        "model_version": ("Version that is served.", "", {"": float(service.served.now.version)}),
    }


def _scores(service: Service) -> Scores:
    """The scores of the versions, with the one that is served and all that follow."""
    scores = Scores(service.queue)
    scores.record(service.served.now)
    service.served.watch(lambda old, new: scores.record(new))
    return scores


def _processor(settings: Settings) -> Processor | None:
    domain, certificate = settings.opendsr_domain, settings.opendsr_certificate
    given = [domain, certificate, settings.opendsr_key]
    if not any(given):
        return None
    if not all(given):
        raise ParameterError(
            "OpenDSR needs opendsr_domain, opendsr_certificate and opendsr_key, or none of them."
        )
    return Processor.read(domain, Path(certificate), Path(settings.opendsr_key))
