"""Verification as a job: begin one, see how far it is, and what it found."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Auditor
from grapheraser.service.api.forms import Form
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import responses, unknown
from grapheraser.service.verifying import Job, JobState, Result

router = APIRouter(tags=["audit"])


class VerificationForm(Form):
    """What to verify."""

    deep: bool = Field(
        default=False, description="Also search every file of the run for forgotten data."
    )


class ResidueView(BaseModel):
    """Something in the files that should not be there."""

    kind: str
    file: str
    what: str


class SearchView(BaseModel):
    """What the search of the files found."""

    clean: bool
    files: int
    size: int = Field(description="Bytes that were read.")
    residues: list[ResidueView]
    notes: list[str]
    seconds: float


class ResultView(BaseModel):
    """What a verification found."""

    passed: bool = Field(description="Bit-identical, no stray file, nothing found in the files.")
    identical: bool = Field(description="Whether retraining from what is left gave the same bits.")
    tensors: int
    values: int
    receipts: int
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
    finished: datetime | None
    step: str = Field(description="What is being done.")
    done: int = Field(description="Parts of the step that are done.")
    total: int = Field(description="Parts of the step; 0: not counted.")
    result: ResultView | None = None
    reason: str | None = Field(default=None, description="Why it failed.")


@router.post(
    "/verifications",
    status_code=202,
    summary="Verify what is served",
    responses=responses(401, 403, 409, 413, 429, 503),
)
def start(
    form: VerificationForm, response: Response, key: Auditor, parts: Given
) -> VerificationView:
    """Retrain from what is left and compare bit for bit, in the background; one at a time."""
    del key
    job = parts.verifications.start(deep=form.deep)
    response.headers["Location"] = f"/api/v1/verifications/{job.id}"
    return view(job)


@router.get("/verifications", summary="List verifications", responses=responses(401, 403, 429))
def list_verifications(key: Auditor, parts: Given) -> list[VerificationView]:
    """The last ones of this process, newest first."""
    del key
    return [view(job) for job in parts.verifications.list()]


@router.get(
    "/verifications/{name}",
    summary="Look at a verification",
    responses=responses(401, 403, 404, 429),
)
def show(
    name: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Id of a verification.")],
    key: Auditor,
    parts: Given,
) -> VerificationView:
    """How far it is, or what it found."""
    del key
    job = parts.verifications.get(name)
    if job is None:
        raise unknown("verification")
    return view(job)


def view(job: Job) -> VerificationView:
    """A job as it is shown."""
    result = None if job.result is None else _result(job.result)
    return VerificationView.model_validate({**job.__dict__, "result": result})


def _result(found: Result) -> ResultView:
    search = found.search
    return ResultView(
        passed=found.passed,
        **found.verification.to_dict(),
        strays=list(found.strays),
        search=None if search is None else SearchView.model_validate(search.to_dict()),
    )
