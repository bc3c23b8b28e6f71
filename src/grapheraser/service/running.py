"""A service with all its parts, opened for one run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grapheraser.errors import ParameterError
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue import Queue
from grapheraser.service.serving import Served
from grapheraser.service.settings import Settings
from grapheraser.service.subjects import Subjects
from grapheraser.service.vault import SECRET, Vault
from grapheraser.service.worker import Worker
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
        worker: carries out requests once it is started.
    """

    settings: Settings
    keys: KeyFolder
    database: Database
    queue: Queue
    served: Served
    worker: Worker

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
            vault = Vault(keys.secret(SECRET))
            queue = Queue(
                database,
                served.run,
                vault,
                deadline=settings.deadline,
                grace=settings.grace,
            )
            queue.check_current()
        except BaseException:
            database.dispose()
            raise
        worker = Worker(queue, served, settings, keys, reached=reached)
        return cls(settings, keys, database, queue, served, worker)

    @property
    def subjects(self) -> Subjects:
        return self.queue.subjects

    def start(self) -> None:
        """Start the worker; where the settings say so, it only follows what others publish."""
        if self.settings.worker:
            # Whoever answers a prediction should not wait long for the worker's Python code.
            sys.setswitchinterval(min(sys.getswitchinterval(), _SWITCH_SECONDS))
        self.worker.start(follow=not self.settings.worker)

    def stop(self) -> None:
        """Let the worker finish its batch, and close the database."""
        self.worker.stop()
        self.database.dispose()


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
