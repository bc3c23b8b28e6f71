"""The first page: what is served, how good it is, and what waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse, RedirectResponse

from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import HEADERS, PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(
    "/",
    summary="To the dashboard",
    response_class=HTMLResponse,
    status_code=303,
    responses={303: {"description": "To the dashboard."}},
)
async def root() -> RedirectResponse:
    """Leads whoever opens the service in a browser to its pages."""
    return RedirectResponse(HOME, 303, headers=HEADERS)


@router.get(HOME, summary="The overview", **PAGE)
def overview(visit: Annotated[Visit, Depends(Visiting("overview"))]) -> HTMLResponse:
    """The page."""
    return visit.page("overview")
