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
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from grapheraser.errors import ConflictError, GraphEraserError, RunBusyError
from grapheraser.progress import told
from grapheraser.service.served.serving import Published, Served
from grapheraser.store import stray_files
from grapheraser.store.folder import hold
from grapheraser.store.residues.search import Search, search_run

_LOG = logging.getLogger(__name__)
_MAX_JOBS = 20  # that are remembered
_LOCK_SECONDS = 600.0  # to wait for the lock of a run that is being changed
_UNFORESEEN = "the service failed; its log says where."
Found = TypeVar("Found")


class JobState(StrEnum):
    """The state of a job."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class ResidueView(BaseModel):
    """Something in the files that should not be there."""

    kind: str
    file: str
    what: str


class SearchView(BaseModel):
    """The findings of the search of the files."""

    clean: bool
    files: int
    size: int = Field(description="Bytes that were read.")
    residues: list[ResidueView]
    notes: list[str]
    seconds: float


class SignaturesView(BaseModel):
    """The outcome of checking the signatures of the receipts."""

    verdict: str = Field(
        description="`verified`, `partly verified`, `not checked`, `unsigned`, `none` or `wrong`."
    )
    words: str = Field(description="The verdict in a line.")
    verified: int = Field(description="Receipts that are signed by a key of this machine.")
    unsigned: int
    others: int = Field(description="Receipts that are signed by other keys alone.")
    checkpoint: bool = Field(description="Whether the log's checkpoint is signed by such a key.")
    keys: list[str] = Field(description="Ids of the keys that the verified ones are signed with.")
    wrong: list[str]


class ResultView(BaseModel):
    """The findings of a verification."""

    passed: bool = Field(
        description="Bit-identical, no wrong signature, no stray file, nothing found in the files."
    )
    identical: bool = Field(description="Whether retraining from what is left gave the same bits.")
    verdict: str = Field(description="In words; `not comparable here` is no failure.")
    elsewhere: str | None = Field(description="Why bits can't be compared here; null: they can.")
    tensors: int
    values: int
    receipts: int
    signatures: SignaturesView
    differences: list[str]
    notes: list[str]
    seconds: float
    strays: list[str] = Field(description="Files in the folder that are not the run's.")
    search: SearchView | None = Field(default=None, description="Null unless `deep`.")


class VerificationView(BaseModel):
    """A verification, as it is now."""

    id: str
    version: int = Field(description="The version that is verified.")
    deep: bool
    state: JobState
    started: datetime
    finished: datetime | None = None
    step: str = Field(default="starting", description="What is being done.")
    done: int = Field(default=0, description="Parts of the step that are done.")
    total: int = Field(default=0, description="Parts of the step; 0: not counted.")
    result: ResultView | None = None
    reason: str | None = Field(default=None, description="Why it failed.")


class Verifications:
    """The last jobs of a service, which verify what is served; oldest first."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, VerificationView] = OrderedDict()

    def start(self, *, deep: bool) -> VerificationView:
        """Begin to verify what is served now; raise `ConflictError` while another job runs."""
        with self._lock:
            if any(job.state is JobState.RUNNING for job in self._jobs.values()):
                raise ConflictError(
                    "a verification is running already.", hint="wait for it; its result is listed."
                )
            published = self._served.now
            job = VerificationView(
                id=secrets.token_hex(8),
                version=published.version,
                deep=deep,
                state=JobState.RUNNING,
                started=datetime.now(UTC),
            )
            self._jobs[job.id] = job
            while len(self._jobs) > _MAX_JOBS:
                self._jobs.popitem(last=False)
        threading.Thread(
            target=self._run, args=(job, published), name="grapheraser-verify", daemon=True
        ).start()
        return job

    def get(self, name: str) -> VerificationView | None:
        """Return a job by its id, if it is known."""
        with self._lock:
            return self._jobs.get(name)

    def list(self) -> list[VerificationView]:
        """List all jobs, newest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def _run(self, job: VerificationView, published: Published) -> None:
        try:
            result = self._verified(job, published)
        except Exception as error:
            _LOG.warning("a verification failed: %s", type(error).__name__)
            # The text of any other error may be personal.
            reason = error.message if isinstance(error, GraphEraserError) else _UNFORESEEN
            self._change(job.id, state=JobState.FAILED, reason=reason)
        else:
            self._change(job.id, state=JobState.DONE, result=result)

    def _verified(self, job: VerificationView, published: Published) -> ResultView:
        with told(
            lambda step, done, total: self._change(job.id, step=step, done=done, total=total)
        ):
            verification = published.model.verify()
        path = self._served.path
        self._change(job.id, step="looking for stray files", done=0, total=0)
        strays = _retry_while_busy(lambda: stray_files(path))
        search = None
        if job.deep:
            self._change(job.id, step="searching every file")
            search = _retry_while_busy(lambda: _search_files(path))
        return ResultView(
            passed=verification.passed and not strays and (search is None or search.clean),
            **verification.to_dict(),
            strays=list(strays),
            search=None if search is None else SearchView.model_validate(search.to_dict()),
        )

    def _change(self, name: str, **fields: Any) -> None:
        with self._lock:
            job = self._jobs.get(name)
            if job is not None:
                ended = fields.get("state", JobState.RUNNING) is not JobState.RUNNING
                finished = datetime.now(UTC) if ended else None
                self._jobs[name] = job.model_copy(update={"finished": finished, **fields})


def _search_files(path: Path) -> Search:
    with hold(path):
        return search_run(path)


def _retry_while_busy(work: Callable[[], Found]) -> Found:
    """Do something that needs the lock of a run, which others may hold for a while."""
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            return work()
        except RunBusyError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
