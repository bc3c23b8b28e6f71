"""What the routes stand on, as one value that an application carries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated

from fastapi import Depends
from fastapi import Request as HttpRequest

from grapheraser.errors import GraphEraserError
from grapheraser.service.api.access import Keys
from grapheraser.service.api.callbacks import Callbacks, Rules
from grapheraser.service.api.gathering import Gathering
from grapheraser.service.api.log import Log
from grapheraser.service.api.metrics import Metrics
from grapheraser.service.api.once import Once
from grapheraser.service.api.signatures import Processor
from grapheraser.service.drawing import Drawings
from grapheraser.service.queue import Queue
from grapheraser.service.scores import Scores
from grapheraser.service.serving import Served
from grapheraser.service.settings import Settings
from grapheraser.service.shards import MeasuredShards
from grapheraser.service.subjects import Subjects
from grapheraser.service.verifying import Verifications


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a running service.

    Attributes:
        settings: of the service.
        run: the folder of the run.
        queue: of its requests.
        subjects: who is which node.
        gathering: where requests are accepted.
        served: the published version.
        keys: who may ask.
        log: the receipts of the run.
        shards: what is measured of the shards.
        verifications: jobs that verify what is served.
        metrics: what is counted.
        scores: how good the versions were.
        processor: what OpenDSR answers are signed with; None: OpenDSR is off.
        callbacks: of OpenDSR; None where it is off.
        once: links that sign somebody in once.
        first_step: a node that the overview offers to forget; None: nothing is offered.
        worker_works: says whether requests are carried out here; None: they are elsewhere.
    """

    settings: Settings
    run: Path
    queue: Queue
    subjects: Subjects
    gathering: Gathering
    served: Served
    keys: Keys
    log: Log
    shards: MeasuredShards
    verifications: Verifications
    metrics: Metrics
    scores: Scores
    processor: Processor | None = None
    callbacks: Callbacks | None = None
    worker_works: Callable[[], bool] | None = None
    once: Once = field(default_factory=Once)
    first_step: int | str | None = None

    @cached_property
    def drawings(self) -> Drawings:
        """Where the nodes of the served version are drawn."""
        return Drawings(self.served)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.settings.name or self.run.absolute().name

    @property
    def callback_rules(self) -> Rules:
        """Where callbacks may go."""
        settings = self.settings
        hosts = tuple(filter(None, (host.strip() for host in settings.callback_hosts.split(","))))
        return Rules(hosts, settings.callback_attempts, settings.callback_seconds)

    def with_callbacks(self, callbacks: Callbacks) -> Parts:
        """The same parts, and callbacks of OpenDSR."""
        return replace(self, callbacks=callbacks)

    def checks(self) -> dict[str, bool]:
        """What has to work before requests can be answered."""
        found = {"database": self._database_works(), "model": True}
        return found if self.worker_works is None else {**found, "worker": self.worker_works()}

    def _database_works(self) -> bool:
        try:
            self.queue.last_event()
        except GraphEraserError:
            return False
        return True


async def _parts(request: HttpRequest) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Given = Annotated[Parts, Depends(_parts)]
