"""A worker in a process of its own, which is killed: at a step, or by whoever started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import grapheraser.store.run as store_run
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from grapheraser.store.keys import KeyFolder

# Imported once; every worker is forked from there.
_IMPORTED = [
    "grapheraser.service.running",
    "grapheraser.service.database.migrate",
    "alembic.autogenerate",
    "numba.np.arraymath",
    "psycopg",
    "scipy.linalg",
]
# Beside the worker's own steps: the manifest is switched, and no old file is removed yet.
SWITCHED = "switched"
NOBODY = 65_534


def start(
    run: Path, url: str, keys: Path, kill_at: str | None = None, *, as_nobody: bool = False
) -> ForkServerProcess:
    """Start a worker; with ``kill_at`` it kills itself when it reaches that step."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_work, args=(run, url, keys, kill_at, as_nobody))
    process.start()
    return process


def _work(run: Path, url: str, keys: Path, kill_at: str | None, as_nobody: bool) -> None:
    os.environ["GRAPHERASER_KEYS"] = str(keys)
    if as_nobody and os.getuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)

    def reached(step: str) -> None:
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if kill_at == SWITCHED:
        setattr(store_run, "remove", lambda files: reached(SWITCHED))  # noqa: B010
    settings = Settings(database=url, window=0.0, batch=3, retry_seconds=0.01)
    service = Service.opened(run, settings, keys=KeyFolder(keys), reached=reached)
    while service.worker.round():
        pass
