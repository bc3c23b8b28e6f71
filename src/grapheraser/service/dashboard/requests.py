"""The pages of requests: all of them, one with its steps, and its receipt to print."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(f"{HOME}/requests", summary="The requests", **PAGE)
def requests(visit: Annotated[Visit, Depends(Visiting("requests"))]) -> HTMLResponse:
    """The page."""
    return visit.page("requests")
