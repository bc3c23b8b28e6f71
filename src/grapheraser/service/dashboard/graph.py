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
    """The page; what it draws and lists is fetched by its script."""
    visit.parts.drawings.now()  # so that it is laid out while the page is loaded
    model, version, _ = visit.parts.served.now
    return visit.page(
        "graph",
        nodes=model.graph_.num_nodes,
        edges=model.graph_.num_edges,
        version=version,
        named=model.graph_.named,
        task="links" if visit.parts.served.is_for_links else "classes",
    )
