"""The page of the graph."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(f"{HOME}/graph", summary="The graph", **PAGE)
def graph(visit: Annotated[Visit, Depends(Visiting("graph"))]) -> HTMLResponse:
    """The page."""
    return visit.page("graph")
