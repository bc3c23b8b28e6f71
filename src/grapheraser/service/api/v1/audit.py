"""The report of the last audit. An audit attacks the run for minutes: it is made outside."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field, ValidationError

from grapheraser.audit.report import latest_report
from grapheraser.service.api.access import Auditor
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses

router = APIRouter(tags=["audit"])


class FindingView(BaseModel):
    """One question, its answer, and what the answer means."""

    question: str
    level: str = Field(description="passed, failed, leak, noted or skipped.")
    measured: str
    meaning: str


class AuditView(BaseModel):
    """What the last audit found."""

    made_at: datetime | None = Field(default=None, description="When; null in older reports.")
    version: int = Field(description="The version that was audited.")
    served: int = Field(description="The version that is served now.")
    passed: bool = Field(description="Whether no proof failed; leaks are measured, not failures.")
    leaks: int
    not_run: list[str] = Field(description="Questions that were not put, with the reason.")
    findings: list[FindingView]
    minutes: float = Field(description="How long the attacks were allowed to take.")
    seconds: float = Field(description="How long it took.")


@router.get("/audit", summary="The last audit report", responses=responses(401, 403, 404, 429, 503))
def audit(key: Auditor, parts: Given) -> AuditView:
    """The last report that `grapheraser audit RUN` has put beside the run."""
    del key
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
    """Which version was audited, by its last receipt; None where that is not in the log."""
    run = report.get("run")
    if not isinstance(run, dict):
        return None
    last = run.get("last_receipt")
    if last is None:
        return 0
    receipts = parts.log.read()[0]
    return next((r.sequence for r in reversed(list(receipts)) if r.digest == last), None)
