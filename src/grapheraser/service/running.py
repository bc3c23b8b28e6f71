"""A service with all its parts, opened for one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue import Queue
from grapheraser.service.serving import Served
from grapheraser.service.settings import NO_WORKER, PROCESS, Settings
from grapheraser.service.subjects import Subjects
from grapheraser.service.vault import SECRET, Vault
from grapheraser.service.worker import Worker
from grapheraser.service.worker_process import Announced, Channel, WorkerProcess
from grapheraser.store.files import make_folder
from grapheraser.store.keys import FOLDER_VARIABLE, KeyFolder

_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True)
class Service:
    """The parts of a running service.

    Attributes:
        settings: of the service.
        keys: the folder of the keys.
        database: holds the queue.
        queue: of the run.
        served: the published version.
        worker: carries out requests, in a thread once it is started, or round by round.
        apart: does so in a process of its own, where the settings say so.
    """

    settings: Settings
    keys: KeyFolder
    database: Database
    queue: Queue
    served: Served
    worker: Worker
    apart: WorkerProcess | None = None

    @classmethod
    def opened(
        cls,
        path: Path,
        settings: Settings | None = None,
        *,
        own: Mapping[str, Any] | None = None,
        keys: KeyFolder | None = None,
        reached: Callable[[str], None] = lambda step: None,
    ) -> Service:
        """Open what a service needs for a run, and bring its database up to date.

        Args:
            path: the folder of the run.
            settings: of the service.
            own: parts of the user's own, by argument of `GraphEraser.load`.
            keys: the folder of the keys; None: ``GRAPHERASER_KEYS``.
            reached: is told of every step of the worker; for tests.
        """
        settings = settings or Settings()
        keys = keys or service_keys()
        served = Served(path, own, settings.answered)
        database = Database.opened(settings.database or database_beside(path))
        try:
            queue = _queue(database, served.run, settings, keys)
            queue.check_current()
        except BaseException:
            database.dispose()
            raise
        worker = Worker(queue, served, settings, keys, reached=reached)
        apart = None
        if settings.worker == PROCESS:
            opener = partial(_worker_apart, path.absolute(), settings, own, keys)
            apart = WorkerProcess(opener, served, queue.woken, settings)
        return cls(settings, keys, database, queue, served, worker, apart)

    @property
    def subjects(self) -> Subjects:
        return self.queue.subjects

    @property
    def works(self) -> Callable[[], bool] | None:
        """Says whether requests are carried out; None where that is not up to this service."""
        if self.settings.worker == NO_WORKER:
            return None
        return lambda: (self.worker if self.apart is None else self.apart).is_alive

    @property
    def trouble(self) -> str | None:
        """What keeps the worker from working, in words for the operator; None: nothing."""
        return (self.worker if self.apart is None else self.apart).trouble

    @property
    def restarts(self) -> int:
        """How often the worker's process has ended by itself and was started again."""
        return 0 if self.apart is None else self.apart.restarts

    def start(self) -> None:
        """Start the worker; where the settings say so, only follow what others publish."""
        # Whoever answers a prediction should not wait long for other Python code.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        if self.apart is not None:
            self.apart.start()
        else:
            self.worker.start(follow=self.settings.worker == NO_WORKER)

    def stop(self) -> None:
        """Let the worker finish its batch, and close the database."""
        if self.apart is not None:
            self.apart.stop()
        self.worker.stop()
        self.database.dispose()


def _queue(database: Database, run: str, settings: Settings, keys: KeyFolder) -> Queue:
    vault = Vault(keys.secret(SECRET))
    return Queue(database, run, vault, deadline=settings.deadline, grace=settings.grace)


def _worker_apart(
    path: Path,
    settings: Settings,
    own: Mapping[str, Any] | None,
    keys: KeyFolder,
    channel: Channel,
) -> Worker:
    """The worker of a service, in the process that it has for itself."""
    served = Announced(path, own, settings.answered, channel)
    database = Database(settings.database or database_beside(path))
    queue = _queue(database, served.run, settings, keys)
    return Worker(queue, served, settings, keys, troubled=channel.tell)


def service_keys() -> KeyFolder:
    """The folder of the keys, which the service can't do without."""
    if os.environ.get(FOLDER_VARIABLE) == "":
        raise ParameterError(
            f"the service needs a folder for its keys, and {FOLDER_VARIABLE} is empty.",
            hint=f"unset {FOLDER_VARIABLE}, or name a folder outside all runs.",
        )
    return KeyFolder()


def database_beside(path: Path) -> str:
    """The URL of the SQLite database in a folder beside a run, which is made if need be."""
    folder = path.absolute().with_name(f"{path.absolute().name}.service")
    make_folder(folder)
    return sqlite_url(folder / "queue.db")
