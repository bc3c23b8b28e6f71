"""The page of the log, its proofs and the audit.

The log is checked by the browser, in `static/log.js`: what this module renders about it is only
where to begin.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.reports.pages.audit import LEVELS
from grapheraser.service.api.v1.audit import latest_audit
from grapheraser.service.api.v1.verifications import view
from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(f"{HOME}/audit", summary="The log and its proofs", **PAGE)
def audit(visit: Annotated[Visit, Depends(Visiting("audit"))]) -> HTMLResponse:
    """The page."""
    parts = visit.parts
    _, ends = parts.log.read()
    jobs = parts.verifications.list()
    return visit.page(
        "audit",
        ends=ends,
        version=parts.served.now.version,
        job=view(jobs[0]).model_dump_json() if jobs else "",
        report=latest_audit(parts),
        levels=LEVELS,
        run=parts.run.name,
    )
