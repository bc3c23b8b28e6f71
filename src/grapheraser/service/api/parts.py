"""Everything that the routes use, made once from an opened service."""

from __future__ import annotations

import threading
from functools import cached_property
from pathlib import Path
from typing import Annotated

from fastapi import Depends
from fastapi import Request as HttpRequest

from grapheraser.errors import GraphEraserError, ParameterError
from grapheraser.receipts import Ends, Receipts
from grapheraser.service.api.keys import Keys, SignInLinks
from grapheraser.service.api.metrics import Gauge, Metrics
from grapheraser.service.api.opendsr.callbacks import Callbacks, Processor, Rules
from grapheraser.service.api.witnesses import Cosigned, Remote, Witnesses
from grapheraser.service.queue.requests import OPEN
from grapheraser.service.running import Service
from grapheraser.service.served.drawing import Drawings
from grapheraser.service.served.measured import MeasuredShards, Scores
from grapheraser.service.settings import Settings
from grapheraser.service.worker.verifying import Verifications
from grapheraser.store import load_receipts


class Parts:
    """The parts of a running service that its routes use.

    Attributes:
        first_step: a node that the overview offers to forget; None: nothing is offered.
        processor, callbacks: of OpenDSR; None where it is off.
        worker_works: tells whether the worker is alive; None where this service has none.
    """

    def __init__(self, service: Service, first_step: int | str | None = None) -> None:
        self.settings, self.queue, self.served = service.settings, service.queue, service.served
        self.run, self.subjects = service.served.path, service.queue.subjects
        self.first_step, self.worker_works = first_step, service.works
        self.keys, self.sign_in_links = Keys(service.database), SignInLinks()
        self.log, self.shards = Log(self.run), MeasuredShards(service.served)
        self.verifications = Verifications(service.served)
        self.metrics = Metrics(lambda: [*_gauges(service), self._refusals()])
        remotes = [Remote(one) for one in service.settings.witnesses]
        self.cosigned = Cosigned(self.queue, service.settings.witness_quorum or len(remotes))
        self.witnesses = Witnesses(remotes, self.cosigned, self.log, self.served)
        self.scores = Scores(service.queue)
        self.scores.record(service.served.now)
        self.served.watch(lambda old, new: self.scores.record(new))
        self.processor, self.callbacks = _processor(service.settings), None
        if self.processor is not None:
            rules = self.callback_rules
            self.callbacks = Callbacks(self.queue, self.processor, rules, self.metrics)

    def _refusals(self) -> Gauge:
        said = "Witnesses that refuse to cosign the log; the log of the service says why."
        return Gauge("witnesses_refusing", said, len(self.witnesses.refused))

    @cached_property
    def drawings(self) -> Drawings:
        return Drawings(self.served)

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.settings.name or self.run.absolute().name

    @property
    def callback_rules(self) -> Rules:
        settings = self.settings
        hosts = tuple(filter(None, (host.strip() for host in settings.callback_hosts.split(","))))
        return Rules(hosts, settings.callback_attempts, settings.callback_seconds)

    def checks(self) -> dict[str, bool]:
        """Check what has to work before requests can be answered."""
        found = {"database": True, "model": True}
        try:
            self.queue.last_event()
        except GraphEraserError:
            found["database"] = False
        return found if self.worker_works is None else {**found, "worker": self.worker_works()}


class Log:
    """The receipts of a run, read from its folder."""

    def __init__(self, run: Path) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._leaves: list[bytes] = []

    def read(self) -> tuple[Receipts, Ends]:
        """Return all receipts, which are loaded on access, and where they end."""
        return load_receipts(self._run)

    def leaves(self, size: int) -> list[bytes]:
        """Return the hashes of the first entries. A log only grows, so they are read once."""
        with self._lock:
            if size > len(self._leaves):
                self._leaves = [receipt.leaf for receipt in self.read()[0]]
            return self._leaves[:size]


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


def _gauges(service: Service) -> list[Gauge]:
    queue = service.queue
    counts, now, due = queue.counts(), queue.clock(), queue.due(service.settings.alert)
    late = sum(request.is_late(now) for request in due)
    by_state = {state.value: count for state, count in counts.items()}
    count_open = sum(counts[state] for state in OPEN)
    trouble = service.trouble is not None
    return [
        Gauge("requests", "Requests by state.", by_state, "state"),
        Gauge("requests_open", "Requests that are not completed.", count_open),
        Gauge("requests_late", "Open requests past their deadline.", late),
        Gauge("requests_due_soon", "Open requests close to their deadline or past it.", len(due)),
        Gauge(
            "worker_trouble",
            "Whether something keeps the worker from working; the log says what.",
            trouble,
        ),
        Gauge(
            "worker_restarts",
            "How often the worker's process has ended by itself and was started again.",
            service.restarts,
        ),
        Gauge("model_version", "Version that is served.", service.served.now.version),
    ]


async def _parts(request: HttpRequest) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Given = Annotated[Parts, Depends(_parts)]
