"""The page of the shards."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@router.get(f"{HOME}/shards", summary="The shards", **PAGE)
def shards(visit: Annotated[Visit, Depends(Visiting("shards"))]) -> HTMLResponse:
    """The page."""
    return visit.page("shards")
