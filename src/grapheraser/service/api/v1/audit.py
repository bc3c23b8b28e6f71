"""Auditing: the last report, verification jobs, receipts that somebody brings, and the log."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field, ValidationError

from grapheraser.audit.report import latest_report
from grapheraser.errors import VerificationError
from grapheraser.receipts import Part
from grapheraser.receipts.checking import UNSHOWN, VALID, check_part
from grapheraser.receipts.tree import consistency_proof, inclusion_proof, root_of
from grapheraser.service.api.access import ANYONE, AUDITORS, route
from grapheraser.service.api.forms import Form
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, unknown
from grapheraser.service.worker.verifying import VerificationView
from grapheraser.store.keys import known_keys
from grapheraser.untrusted import parse_json

router = APIRouter(tags=["audit"])


class FindingView(BaseModel):
    """One question, its answer, and what the answer means."""

    question: str
    level: str = Field(description="passed, failed, leak, noted or skipped.")
    measured: str
    meaning: str


class AuditView(BaseModel):
    """The findings of the last audit."""

    made_at: datetime | None = Field(default=None, description="When; null in older reports.")
    version: int = Field(description="The version that was audited.")
    served: int = Field(description="The version that is served now.")
    passed: bool = Field(description="Whether no proof failed; leaks are measured, not failures.")
    leaks: int
    not_run: list[str] = Field(description="Questions that were not put, with the reason.")
    findings: list[FindingView]
    minutes: float = Field(description="How long the attacks were allowed to take.")
    seconds: float = Field(description="How long it took.")


@router.get("/audit", **route("The last audit report", AUDITORS, 404))
def audit(parts: Given) -> AuditView:
    """The last report that `grapheraser audit RUN` has put beside the run."""
    found = latest_audit(parts)
    if found is None:
        raise Problem(
            404,
            "no-audit",
            "there is no report on this run yet.",
            hint=f"make one beside the run: `grapheraser audit {parts.run.name}`.",
        )
    return found


def latest_audit(parts: Parts) -> AuditView | None:
    """The last report on this run, if there is one that can be read."""
    report = latest_report(parts.run)
    version = None if report is None else _version(report, parts)
    if report is None or version is None:
        return None
    try:
        known = {"version": version, "served": parts.served.now.version}
        return AuditView.model_validate({**report, **known})
    except ValidationError:
        return None


def _version(report: Mapping[str, Any], parts: Parts) -> int | None:
    """Find the audited version by its last receipt; None where that is not in the log."""
    run = report.get("run")
    if not isinstance(run, dict):
        return None
    last = run.get("last_receipt")
    if last is None:
        return 0
    receipts = parts.log.read()[0]
    return next((r.sequence for r in reversed(list(receipts)) if r.digest == last), None)


class CheckedReceipt(BaseModel):
    """The outcome of checking a receipt."""

    valid: bool
    verdict: str = Field(
        default="refused",
        description="`valid`; `signed` where all holds that it shows, and it does not show that "
        "what it is about is gone; or `refused`.",
    )
    unshown: str | None = Field(default=None, description="What a signed one leaves to be shown.")
    wrong: str | None = Field(default=None, description="What is wrong with it.")
    hint: str | None = Field(default=None, description="What to do about it.")
    about: str | None = Field(default=None, description="What was asked.")
    statement: str | None = None
    reason: str | None = Field(default=None, description="The statement in words.")
    run: str | None = Field(default=None, description="The log that it is an entry of.")
    sequence: int | None = Field(default=None, description="Its number there.")
    completed_at: datetime | None = None
    key: str | None = Field(default=None, description="Id of the key that signed it.")
    checked: list[str] = Field(default_factory=list, description="What was checked, in words.")


@router.post(
    "/receipts/verify",
    openapi_extra={
        "requestBody": {
            "description": "The file that was handed out, as it is.",
            "required": True,
            "content": {"application/json": {"schema": {}}},
        }
    },
    **route("Check a receipt", ANYONE, 413),
)
async def verify(request: Request, parts: Given) -> CheckedReceipt:
    """Check a receipt with the keys of this machine, and against the log as it is now.

    Whoever trusts nobody here checks it offline: `grapheraser receipt verify FILE --key PUB`.
    """
    return await run_in_threadpool(_checked, await request.body(), parts)


def _checked(content: bytes, parts: Parts) -> CheckedReceipt:
    try:
        part = Part.from_json(content.decode())
        found = check_part(part, known_keys())
        _check_log(part, parts)
    except UnicodeDecodeError:
        return CheckedReceipt(valid=False, wrong="not a readable receipt, or a truncated one.")
    except VerificationError as error:
        return CheckedReceipt(valid=False, wrong=error.message, hint=error.hint)
    lines = [*found.lines, "the log as it is now holds it at its place"]
    facts = found.to_dict() | {"about": part.in_words, "checked": lines}
    facts |= {"valid": found.verdict == VALID}
    return CheckedReceipt(**facts, unshown=None if facts["valid"] else UNSHOWN)


def _check_log(part: Part, parts: Parts) -> None:
    """Refuse a receipt that is no entry of the log that is served."""
    receipts, ends = parts.log.read()
    receipt = part.receipt
    if receipt.run != ends.run:
        raise VerificationError(
            "the receipt is of another run than the one that is served here.",
            hint="check it offline: `grapheraser receipt verify FILE --key PUB`.",
        )
    if receipt.sequence > len(receipts) or receipts[receipt.sequence - 1] != receipt:
        raise VerificationError("the receipt is not in the log that is served here.")


class VerificationForm(Form):
    """A verification to start."""

    deep: bool = Field(
        default=False, description="Also search every file of the run for forgotten data."
    )


@router.post(
    "/verifications", status_code=202, **route("Verify what is served", AUDITORS, 409, 413)
)
def start(form: VerificationForm, response: Response, parts: Given) -> VerificationView:
    """Retrain from what is left and compare bit for bit, in the background; one at a time."""
    job = parts.verifications.start(deep=form.deep)
    response.headers["Location"] = f"/api/v1/verifications/{job.id}"
    return job


@router.get("/verifications", **route("List verifications", AUDITORS))
def list_verifications(parts: Given) -> list[VerificationView]:
    """The last ones of this process, newest first."""
    return parts.verifications.list()


@router.get("/verifications/{name}", **route("Look at a verification", AUDITORS, 404))
def show(
    name: Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="Id of a verification.")],
    parts: Given,
) -> VerificationView:
    """Return the progress of a verification, or its findings."""
    job = parts.verifications.get(name)
    if job is None:
        raise unknown("verification")
    return job


log_router = APIRouter(tags=["log"])
_Size = Annotated[int, Query(ge=1, lt=2**63)]


class LogEntry(BaseModel):
    """One receipt of the log, as it is kept: nobody is named in it."""

    sequence: int
    digest: str
    envelope: dict[str, Any] = Field(description="DSSE envelope with an in-toto statement.")


class LogPage(BaseModel):
    """Some entries of the log."""

    run: str = Field(description="The log's name.")
    size: int = Field(description="Of the log; the model's version.")
    checkpoint: str | None = Field(description="Signed, of this size; null where unsigned.")
    entries: list[LogEntry]
    next: int | None = Field(description="Where the next page starts; null on the last.")


class InclusionView(BaseModel):
    """The proof that an entry is in the log (RFC 9162)."""

    index: int
    size: int
    leaf: str
    proof: list[str]
    root: str
    checkpoint: str | None = Field(description="Of the log of this size, if it is the current.")


class ConsistencyView(BaseModel):
    """The proof that the log only grew (RFC 9162)."""

    first: int
    second: int
    proof: list[str]


@log_router.get("/log", **route("Export the log", AUDITORS))
def entries(
    parts: Given,
    start: Annotated[int, Query(ge=1, lt=2**63, description="The first entry.")] = 1,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> LogPage:
    """Receipts in order, with the checkpoint of the log."""
    receipts, ends = parts.log.read()
    found = receipts[start - 1 : start - 1 + limit]
    last = start - 1 + len(found)
    return LogPage(
        run=ends.run,
        size=ends.receipts,
        checkpoint=ends.checkpoint,
        entries=[
            LogEntry(sequence=r.sequence, digest=r.digest, envelope=parse_json(r.to_json()))
            for r in found
        ],
        next=last + 1 if found and last < ends.receipts else None,
    )


@log_router.get(
    "/log/checkpoint",
    response_class=Response,
    **route("The log's checkpoint", ANYONE, 404, ok={"content": {"text/plain": {}}}),
)
def checkpoint(parts: Given) -> Response:
    """The signed checkpoint of the log, with cosignatures of witnesses; keep it elsewhere."""
    ends = parts.log.read()[1]
    if ends.checkpoint is None:
        raise Problem(404, "no-checkpoint", "the log is empty, or its last receipt is unsigned.")
    return Response(parts.cosigned.best(ends.receipts) or ends.checkpoint, media_type="text/plain")


@log_router.get(
    "/log/keys",
    response_class=Response,
    **route("The keys that sign", ANYONE, ok={"content": {"application/x-pem-file": {}}}),
)
def public_keys() -> Response:
    """The public keys of the operator, the current one first, as PEM."""
    text = "".join(found.to_pem() for found in known_keys())
    return Response(text, media_type="application/x-pem-file")


@log_router.get("/log/consistency", **route("Prove that the log only grew", AUDITORS, 404))
def consistency(parts: Given, first: _Size, second: _Size) -> ConsistencyView:
    """The proof that the log of the second size begins as that of the first."""
    if not first <= second <= parts.log.read()[1].receipts:
        raise unknown("log size")
    proof = consistency_proof(parts.log.leaves(second), first)
    return ConsistencyView(first=first, second=second, proof=[part.hex() for part in proof])


@log_router.get(
    "/log/{sequence}/proof", **route("Prove that an entry is in the log", AUDITORS, 404)
)
def inclusion(
    sequence: Annotated[int, Path(ge=1, lt=2**63, description="Number of the receipt.")],
    parts: Given,
    size: Annotated[int | None, Query(ge=1, lt=2**63, description="Default: all of it.")] = None,
) -> InclusionView:
    """The proof that a receipt is in the log of this size."""
    ends = parts.log.read()[1]
    whole = size or ends.receipts
    if not sequence <= whole <= ends.receipts:
        raise unknown("log entry")
    leaves = parts.log.leaves(whole)
    return InclusionView(
        index=sequence - 1,
        size=whole,
        leaf=leaves[sequence - 1].hex(),
        proof=[part.hex() for part in inclusion_proof(leaves, sequence - 1)],
        root=root_of(leaves).hex(),
        checkpoint=ends.checkpoint if whole == ends.receipts else None,
    )
