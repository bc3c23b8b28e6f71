"""A worker in a process of its own, which is killed: at a step, or by whoever started it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import grapheraser.store.run as store_run
from grapheraser.service.database import Database
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.queue.vault import SECRET, Vault
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from grapheraser.service.worker.backup import make_backup, restore
from grapheraser.store.keys import KeyFolder

# Imported once; every worker is forked from there.
_IMPORTED = [
    "grapheraser.service.running",
    "alembic.command",
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


def start_serving(run: Path, url: str, keys: Path, told: Connection) -> ForkServerProcess:
    """Start a service and its worker in a process of its own; says which, whenever it changes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_serve, args=(run, url, keys, told))
    process.start()
    return process


def _serve(run: Path, url: str, keys: Path, told: Connection) -> None:
    os.setsid()
    os.environ["GRAPHERASER_KEYS"] = str(keys)
    settings = Settings(database=url, window=0.0, batch=3, retry_seconds=0.01, poll_seconds=0.05)
    service = Service.opened(run, settings, keys=KeyFolder(keys))
    assert service.process is not None
    service.start()
    known = None
    while True:
        if (pid := service.process.pid) != known:
            told.send(pid)
            known = pid
        time.sleep(0.005)


def start_backup(run: Path, url: str, keys: Path, out: Path) -> ForkServerProcess:
    """Start a process that makes a backup."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_back_up, args=(run, url, keys, out))
    process.start()
    return process


def _back_up(run: Path, url: str, keys: Path, out: Path) -> None:
    os.environ["GRAPHERASER_KEYS"] = str(keys)
    make_backup(run, out, database=url)


def start_restore(
    backup: Path, run: Path, url: str, keys: Path, kill_at: str | None = None
) -> ForkServerProcess:
    """Start a process that restores a run over itself; with ``kill_at`` it is killed there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_restore, args=(backup, run, url, keys, kill_at))
    process.start()
    return process


def _restore(backup: Path, run: Path, url: str, keys: Path, kill_at: str | None) -> None:
    os.environ["GRAPHERASER_KEYS"] = str(keys)

    def reached(step: str) -> None:
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    if kill_at == SWITCHED:
        setattr(store_run, "remove", lambda files: reached(SWITCHED))  # noqa: B010
        setattr(store_run, "sweep", lambda path: reached(SWITCHED))  # noqa: B010
    folder = KeyFolder(keys)
    restore(backup, run, database=url, keys=folder, replace=True, reached=reached)


def alive(pid: int) -> bool:
    """Whether there is a process that is not a mere entry of one that ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def start_submitting(
    url: str, keys: Path, run: str, accepted: Connection, nodes: Sequence[int]
) -> ForkServerProcess:
    """Start a process that submits requests and says which of them were accepted."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    process = context.Process(target=_submit, args=(url, keys, run, accepted, nodes))
    process.start()
    return process


def _submit(url: str, keys: Path, run: str, accepted: Connection, nodes: Sequence[int]) -> None:
    queue = Queue(Database(url), run, Vault(KeyFolder(keys).secret(SECRET)))

    def submit(some: Sequence[int]) -> None:
        for node in some:
            name = queue.submit(RequestContent(nodes=(node,)), key=str(node)).request.id
            with lock:
                accepted.send((node, name))

    lock = threading.Lock()
    threads = [threading.Thread(target=submit, args=(nodes[n::4],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
