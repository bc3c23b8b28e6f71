"""The pages of the model: the overview, its graph, its shards, and the log with its proofs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import floor, log10
from typing import Annotated, Any

from fastapi import Depends
from fastapi.responses import HTMLResponse, RedirectResponse

from grapheraser.reports.figures.drawing import Drawing
from grapheraser.reports.pages.audit import LEVELS
from grapheraser.service.api.keys import Role
from grapheraser.service.api.parts import Parts
from grapheraser.service.api.v1 import model as served
from grapheraser.service.api.v1.audit import latest_audit
from grapheraser.service.api.v1.requests import owner_of
from grapheraser.service.dashboard.shell import HEADERS, HOME, PAGE, Visit, Visiting, page_router
from grapheraser.service.queue.lookup import summarize
from grapheraser.service.queue.requests import OPEN
from grapheraser.service.served.measured import Score

router = page_router()
_WATCHERS = (Role.OPERATOR, Role.AUDITOR, Role.REQUESTER)
_MAX_REQUESTS, _MAX_VERSIONS = 6, 8


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
    watches, owner = visit.may(*_WATCHERS), owner_of(key)
    may_audit = visit.may(Role.OPERATOR, Role.AUDITOR)
    scores = parts.scores.latest() if may_audit else []
    return visit.page(
        "overview",
        first=_first_step(parts),
        served=served.model(parts, key),
        scores=scores,
        charts=_charts(scores),
        summary=summarize(parts.queue, owner) if watches else None,
        latest=parts.queue.list(owner=owner, limit=_MAX_REQUESTS).requests if watches else (),
        due=parts.queue.list(states=OPEN, owner=owner, late=True, limit=1).requests
        if watches
        else (),
        versions=served.versions(parts, _MAX_VERSIONS) if may_audit else [],
        at_rest=may_audit and parts.worker_works is not None and not parts.worker_works(),
        now=parts.queue.clock(),
    )


def _charts(scores: Sequence[Score]) -> dict[str, Drawing]:
    """Draw charts by title; none before there are two versions."""
    if len(scores) < 2:
        return {}
    f1 = [(score.version, score.f1) for score in scores if score.f1 is not None]
    found = {"F1 of the test nodes": over_versions(f1, ".2f", "F1")} if len(f1) > 1 else {}
    nodes = [(score.version, float(score.nodes)) for score in scores]
    return found | {"Nodes left": over_versions(nodes, ",.0f", "Nodes left")}


def _first_step(parts: Parts) -> dict[str, Any] | None:
    """Describe the node that is offered to forget, to try the service out; None: none is."""
    node = parts.first_step
    if node is None:
        return None
    model = parts.served.now.model
    ids = model.graph_.ids_of([node])
    if not model.graph_.contains(ids)[0]:
        return {"node": node, "is_there": False}
    return {
        "node": node,
        "is_there": True,
        "neighbours": len(model.graph_.neighbours(node)),
        "shard": int(model.partition_.shard_of(ids)[0]),
        "shards": len(model.shards_),
    }


_WIDTH, _HEIGHT = 460.0, 170.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 8.0, 62.0, 16.0, 26.0
_MAX_POINTS = 80


def over_versions(points: Sequence[tuple[int, float]], form: str, what: str) -> Drawing:
    """Draw a line from version to version, values in the format ``form``."""
    shown = _thinned(points)
    versions, values = [version for version, _ in shown], [value for _, value in shown]
    low, high = _scale(min(values), max(values))
    about = (
        f"{what} over {len(points)} versions: from {values[0]:{form}} in version {versions[0]} "
        f"to {values[-1]:{form}} in version {versions[-1]}."
    )
    drawing = Drawing(_HEIGHT, about, _WIDTH)
    span = max(1, versions[-1] - versions[0])
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def place(version: int, value: float) -> tuple[float, float]:
        x = _LEFT + (right - _LEFT) * (version - versions[0]) / span
        return x, _TOP + (bottom - _TOP) * (high - value) / (high - low)

    for value in (low, (low + high) / 2, high):
        y = place(versions[0], value)[1]
        drawing.line(_LEFT, y, right, y, "grid")
        drawing.text(right + 8, y + 4, f"{value:{form}}", "small quiet")
    for before, after in pairwise(shown):
        drawing.line(*place(*before), *place(*after), "series")
    for version, value in shown:
        drawing.circle(*place(version, value), 3.4, "lit", f"version {version}: {value:{form}}")
    drawing.text(_LEFT, _HEIGHT - 6, f"version {versions[0]}", "small quiet")
    if versions[-1] > versions[0]:
        drawing.text(right, _HEIGHT - 6, f"{versions[-1]}", "small quiet", "end")
    return drawing


def _scale(low: float, high: float) -> tuple[float, float]:
    """Return round ends around some values, never closer than a hundredth of them."""
    room = max(high - low, abs(high) / 100, 1e-9)
    step = 10.0 ** floor(log10(room))
    return floor((low - room / 4) / step) * step, -floor(-(high + room / 4) / step) * step


def _thinned(points: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Choose so many points that they can be told apart, the last one among them."""
    step = -(-len(points) // _MAX_POINTS)
    return list(points[(len(points) - 1) % step :: step])


_LISTED = 60  # graphs of a collection


@router.get(f"{HOME}/graph", summary="The graph", **PAGE)
def graph(visit: Annotated[Visit, Depends(Visiting("graph"))]) -> HTMLResponse:
    """The page; what it draws and lists is fetched by its script."""
    model, version, _ = visit.parts.served.now
    if (asked := model.collector) is not None:
        ids = model.graph_.ids[:_LISTED]
        listed = list(zip(model.graph_.names_of(ids), asked.predict(ids).tolist(), strict=True))
        return visit.page(
            "collection",
            graphs=model.graph_.num_nodes,
            listed=listed,
            classes=model.graph_.label_kind.is_classes,
            version=version,
            named=model.graph_.named,
        )
    visit.parts.drawings.now()  # so that it is laid out while the page is loaded
    return visit.page(
        "graph",
        nodes=model.graph_.num_nodes,
        edges=model.graph_.num_edges,
        version=version,
        named=model.graph_.named,
        task=visit.parts.served.task,
        data_free=model.partition_.data_free,
    )


@router.get(f"{HOME}/shards", summary="The shards", **PAGE)
def shards(visit: Annotated[Visit, Depends(Visiting("shards"))]) -> HTMLResponse:
    """The page. Scores that take a while are left to its script, which asks for them."""
    found = served.shards(visit.parts)
    measured, now = visit.parts.shards.scores, visit.parts.served.now
    scores = measured(now) if measured.is_known(now) else None  # else the script asks for them
    scored = {} if scores is None else {one.shard: one for one in scores.shards}
    last = {one.shard: one.retrained for one in found.shards if one.retrained is not None}
    return visit.page(
        "shards",
        found=found,
        scores=scores,
        scored=scored,
        shares=[one.importance for one in scored.values() if one.importance is not None],
        hit=[shard for shard, retrained in last.items() if retrained.version == found.version],
    )


@router.get(f"{HOME}/audit", summary="The log and its proofs", **PAGE)
def audit(visit: Annotated[Visit, Depends(Visiting("audit"))]) -> HTMLResponse:
    """The log is checked by the browser, in `static/log.js`, which begins with these values."""
    parts = visit.parts
    _, ends = parts.log.read()
    jobs = parts.verifications.list()
    return visit.page(
        "audit",
        ends=ends,
        version=parts.served.now.version,
        job=jobs[0].model_dump_json() if jobs else "",
        report=latest_audit(parts),
        levels=LEVELS,
        run=parts.run.name,
    )
