"""The page of the log, its proofs and the audit."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(f"{HOME}/audit", summary="The log and its proofs", **PAGE)
def audit(visit: Annotated[Visit, Depends(Visiting("audit"))]) -> HTMLResponse:
    """The page."""
    return visit.page("audit")
