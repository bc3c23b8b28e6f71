"""An opened service: the database, the queue, the served version and the worker of one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
from grapheraser.receipts.secret import FOLDER_VARIABLE
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.logs import configure
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.vault import SECRET, Vault
from grapheraser.service.served.serving import Served
from grapheraser.service.settings import NO_WORKER, PROCESS, Settings
from grapheraser.service.worker.process import Announced, Channel, WorkerProcess
from grapheraser.service.worker.worker import Worker
from grapheraser.store.files import make_folder
from grapheraser.store.keys import KeyFolder

_SWITCH_SECONDS = 0.0005


@dataclass(frozen=True)
class Service:
    """An opened service."""

    settings: Settings
    keys: KeyFolder
    database: Database
    queue: Queue
    served: Served
    worker: Worker  # carries out requests, in a thread once it is started, or round by round
    # A worker in a process of its own, where the settings say so.
    process: WorkerProcess | None = None

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

        ``own`` are parts of the user's own, by argument of `GraphEraser.load`; ``keys`` is by
        default ``GRAPHERASER_KEYS``; ``reached`` is called after every step of the worker, for
        tests.
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
        process = None
        if settings.worker == PROCESS:
            opener = partial(_process_worker, path.absolute(), settings, own, keys)
            process = WorkerProcess(opener, served, queue.woken, settings)
        return cls(settings, keys, database, queue, served, worker, process)

    @property
    def works(self) -> Callable[[], bool] | None:
        """Tells whether requests are carried out; None where other services do so."""
        if self.settings.worker == NO_WORKER:
            return None
        return lambda: (self.worker if self.process is None else self.process).is_alive

    @property
    def trouble(self) -> str | None:
        """The reason why the worker can't work, for the operator; None: it can."""
        return (self.worker if self.process is None else self.process).trouble

    @property
    def restarts(self) -> int:
        """The number of times that the worker's process was started again."""
        return 0 if self.process is None else self.process.restarts

    def start(self) -> None:
        """Start the worker; where the settings say so, only follow what others publish."""
        # A prediction should not wait long for other Python code.
        sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        if self.process is not None:
            self.process.start()
        else:
            self.worker.start(follow=self.settings.worker == NO_WORKER)

    def stop(self) -> None:
        """Let the worker finish its batch, and close the database."""
        if self.process is not None:
            self.process.stop()
        self.worker.stop()
        self.database.dispose()


def _queue(database: Database, run: str, settings: Settings, keys: KeyFolder) -> Queue:
    vault = Vault(keys.secret(SECRET))
    deadline = timedelta(days=settings.deadline_days)
    grace = timedelta(hours=settings.collected_hours)
    return Queue(database, run, vault, deadline=deadline, grace=grace)


def _process_worker(
    path: Path, settings: Settings, own: Mapping[str, Any] | None, keys: KeyFolder, channel: Channel
) -> Worker:
    """Open the worker of a service in a process of its own."""
    configure(settings)
    served = Announced(path, own, settings.answered, channel)
    database = Database(settings.database or database_beside(path))
    queue = _queue(database, served.run, settings, keys)
    return Worker(queue, served, settings, keys, troubled=channel.tell)


def service_keys() -> KeyFolder:
    """Return the folder of the keys, which the service can't do without."""
    if os.environ.get(FOLDER_VARIABLE) == "":
        raise ParameterError(
            f"the service needs a folder for its keys, and {FOLDER_VARIABLE} is empty.",
            hint=f"unset {FOLDER_VARIABLE}, or name a folder outside all runs.",
        )
    return KeyFolder()


def database_beside(path: Path) -> str:
    """Return the URL of the SQLite database in a folder beside a run; make the folder."""
    folder = path.absolute().with_name(f"{path.absolute().name}.service")
    make_folder(folder)
    return sqlite_url(folder / "queue.db")
