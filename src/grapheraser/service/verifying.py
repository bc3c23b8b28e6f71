"""Verification as a job: `verify` in a thread of its own, one at a time, while requests go on.

What is verified is the version that was served when the job began: nobody changes it. The files of
the run are searched under its lock, so that no half-written change is taken for a residue; requests
wait that long. Jobs are known to the process that ran them, until it ends.
"""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from grapheraser.audit.residues.search import Search, search_run
from grapheraser.eraser.verify import Verification
from grapheraser.errors import ConflictError, GraphEraserError, RunBusyError
from grapheraser.progress import told
from grapheraser.service.serving import Published, Served
from grapheraser.store import stray_files
from grapheraser.store.folder import hold

_LOG = logging.getLogger(__name__)
_MOST_KEPT = 20
_MOST_WAITED = 600.0  # seconds for the lock of a run that is being changed
_UNFORESEEN = "the service failed; its log says where."
Found = TypeVar("Found")


class JobState(StrEnum):
    """How far a job has come."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Result:
    """What a job found.

    Attributes:
        verification: of the version.
        strays: files in the folder that are not the run's.
        search: of all files, where that was asked for.
    """

    verification: Verification
    strays: tuple[str, ...]
    search: Search | None

    @property
    def passed(self) -> bool:
        """Whether all is as it should be."""
        clean = self.search is None or self.search.clean
        return self.verification.identical and not self.strays and clean


@dataclass(frozen=True)
class Job:
    """A verification, as it is at one moment.

    Attributes:
        id: its name.
        version: that is verified.
        deep: whether the files are searched too.
        state: running, done or failed.
        started, finished: when.
        step: what is being done, in words.
        done, total: how many parts of the step are done, of how many; 0 of 0: not counted.
        result: of a job that is done.
        reason: of one that failed.
    """

    id: str
    version: int
    deep: bool
    state: JobState
    started: datetime
    finished: datetime | None = None
    step: str = "starting"
    done: int = 0
    total: int = 0
    result: Result | None = None
    reason: str | None = None


class Verifications:
    """The jobs of a service, oldest first; the last few are remembered.

    Args:
        served: what is verified.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, Job] = OrderedDict()

    def start(self, *, deep: bool) -> Job:
        """Begin to verify what is served now; a `ConflictError` while another job runs."""
        with self._lock:
            if any(job.state is JobState.RUNNING for job in self._jobs.values()):
                raise ConflictError(
                    "a verification is running already.", hint="wait for it; its result is listed."
                )
            published = self._served.now
            begun = datetime.now(UTC)
            job = Job(secrets.token_hex(8), published.version, deep, JobState.RUNNING, begun)
            self._jobs[job.id] = job
            while len(self._jobs) > _MOST_KEPT:
                self._jobs.popitem(last=False)
        threading.Thread(
            target=self._run, args=(job, published), name="grapheraser-verify", daemon=True
        ).start()
        return job

    def get(self, name: str) -> Job | None:
        """One job by its id, if it is known."""
        with self._lock:
            return self._jobs.get(name)

    def list(self) -> list[Job]:
        """All jobs, newest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def _run(self, job: Job, published: Published) -> None:
        try:
            result = self._verified(job, published)
        except Exception as error:
            _LOG.warning("a verification failed: %s", type(error).__name__)
            # What an error of another kind says may be personal.
            reason = error.message if isinstance(error, GraphEraserError) else _UNFORESEEN
            self._change(job.id, state=JobState.FAILED, reason=reason)
        else:
            self._change(job.id, state=JobState.DONE, result=result)

    def _verified(self, job: Job, published: Published) -> Result:
        with told(
            lambda step, done, total: self._change(job.id, step=step, done=done, total=total)
        ):
            verification = published.model.verify()
        path = self._served.path
        self._change(job.id, step="looking for stray files", done=0, total=0)
        strays = _patiently(lambda: stray_files(path))
        search = None
        if job.deep:
            self._change(job.id, step="searching every file")
            search = _patiently(lambda: _searched(path))
        return Result(verification, tuple(strays), search)

    def _change(self, name: str, **fields: Any) -> None:
        with self._lock:
            job = self._jobs.get(name)
            if job is not None:
                ended = fields.get("state", JobState.RUNNING) is not JobState.RUNNING
                finished = datetime.now(UTC) if ended else None
                self._jobs[name] = replace(job, finished=finished, **fields)


def _searched(path: Path) -> Search:
    with hold(path):
        return search_run(path)


def _patiently(work: Callable[[], Found]) -> Found:
    """Do something that needs the lock of a run, which others have now and then."""
    until = time.monotonic() + _MOST_WAITED
    while True:
        try:
            return work()
        except RunBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
