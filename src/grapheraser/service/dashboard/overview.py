"""The first page: what is served, how good it is, and what waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse, RedirectResponse

from grapheraser.reports.figures.drawing import Drawing
from grapheraser.service.api.access import Role
from grapheraser.service.api.v1.model import model, versions
from grapheraser.service.api.v1.requests import owner_of
from grapheraser.service.dashboard.charts import over_versions
from grapheraser.service.dashboard.first_step import first_step
from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import HEADERS, PAGE, Visit, Visiting, page_router
from grapheraser.service.requests import OPEN
from grapheraser.service.scores import Score
from grapheraser.service.summary import summarize

router = page_router()
_WATCHERS = (Role.OPERATOR, Role.AUDITOR, Role.REQUESTER)
_LATEST, _VERSIONS = 6, 8


@router.get(
    "/",
    summary="To the dashboard",
    response_class=RedirectResponse,
    status_code=303,
    responses={303: {"description": "To the dashboard."}},
)
async def root() -> RedirectResponse:
    """Leads whoever opens the service in a browser to its pages."""
    return RedirectResponse(HOME, 303, headers=HEADERS)


@router.get(HOME, summary="The overview", **PAGE)
def overview(visit: Annotated[Visit, Depends(Visiting("overview"))]) -> HTMLResponse:
    """Model, F1, what is left, requests, deadlines and versions, as far as the role may see."""
    key, parts = visit.key, visit.parts
    scores = parts.scores.latest()
    watches, owner = visit.may(*_WATCHERS), owner_of(key)
    may_audit = visit.may(Role.OPERATOR, Role.AUDITOR)
    return visit.page(
        "overview",
        first=first_step(parts),
        served=model(key, parts),
        scores=scores,
        charts=_charts(scores),
        summary=summarize(parts.queue, owner) if watches else None,
        latest=parts.queue.list(owner=owner, limit=_LATEST).requests if watches else (),
        due=parts.queue.list(states=OPEN, owner=owner, late=True, limit=1).requests
        if watches
        else (),
        versions=versions(key, parts, _VERSIONS) if may_audit else [],
        at_rest=may_audit and parts.worker_works is not None and not parts.worker_works(),
        now=parts.queue.clock(),
    )


def _charts(scores: Sequence[Score]) -> dict[str, Drawing]:
    """By title; nothing to draw before there are two versions."""
    if len(scores) < 2:
        return {}
    f1 = [(score.version, score.f1) for score in scores if score.f1 is not None]
    found = {"F1 of the test nodes": over_versions(f1, ".3f", "F1")} if len(f1) > 1 else {}
    nodes = [(score.version, float(score.nodes)) for score in scores]
    return found | {"Nodes left": over_versions(nodes, ",.0f", "Nodes left")}
