"""What the routes stand on, as one value that an application carries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends
from fastapi import Request as HttpRequest

from grapheraser.service.api.access import Keys
from grapheraser.service.api.log import Log
from grapheraser.service.api.metrics import Metrics
from grapheraser.service.api.signatures import Processor
from grapheraser.service.queue import Queue
from grapheraser.service.serving import Served
from grapheraser.service.settings import Settings
from grapheraser.service.subjects import Subjects


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a running service.

    Attributes:
        settings: of the service.
        run: the folder of the run.
        queue: of its requests.
        subjects: who is which node.
        served: the published version.
        keys: who may ask.
        log: the receipts of the run.
        metrics: what is counted.
        processor: what OpenDSR answers are signed with; None: OpenDSR is off.
    """

    settings: Settings
    run: Path
    queue: Queue
    subjects: Subjects
    served: Served
    keys: Keys
    log: Log
    metrics: Metrics
    processor: Processor | None = None


async def _parts(request: HttpRequest) -> Parts:
    parts: Parts = request.app.state.parts
    return parts


Given = Annotated[Parts, Depends(_parts)]
