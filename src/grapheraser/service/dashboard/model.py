"""The pages of the model: its graph, its shards, and the log with its proofs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.graphs import CollectionEraser
from grapheraser.reports.pages.audit import LEVELS
from grapheraser.service.api.parts import Parts
from grapheraser.service.api.v1.audit import latest_audit
from grapheraser.service.api.v1.shards import RetrainingView, ShardList, shard_list
from grapheraser.service.dashboard.shell import HOME, PAGE, Visit, Visiting, page_router
from grapheraser.service.served.measured import ScoreList

router = page_router()
_LISTED = 60  # graphs of a collection


@router.get(f"{HOME}/graph", summary="The graph", **PAGE)
def graph(visit: Annotated[Visit, Depends(Visiting("graph"))]) -> HTMLResponse:
    """The page; what it draws and lists is fetched by its script."""
    model, version, _ = visit.parts.served.now
    if isinstance(model, CollectionEraser):
        ids = model.graph_.ids[:_LISTED]
        listed = list(zip(model.graph_.names_of(ids), model.predict(ids).tolist(), strict=True))
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


@dataclass(frozen=True)
class Cell:
    """A figure of a shard; ``share`` is the length of the bar beside it."""

    value: float | None
    text: str
    share: float = 0.0


@dataclass(frozen=True)
class Row:
    """A shard as the table shows it."""

    shard: int
    nodes: Cell
    edges: Cell
    f1: Cell
    importance: Cell
    retrained: RetrainingView | None
    is_last: bool


@router.get(f"{HOME}/shards", summary="The shards", **PAGE)
def shards(visit: Annotated[Visit, Depends(Visiting("shards"))]) -> HTMLResponse:
    """The page. Scores that take a while are left to its script, which asks for them."""
    found = shard_list(visit.parts)
    scores = _known_scores(visit.parts)
    rows = list(_rows(found, scores))
    return visit.page(
        "shards",
        found=found,
        scores=scores,
        rows=rows,
        heard=_heard(scores),
        hit=[row.shard for row in rows if row.is_last],
    )


def _known_scores(parts: Parts) -> ScoreList | None:
    """Return the scores of the served version, where they are known already."""
    now = parts.served.now
    return parts.shards.scores(now) if parts.shards.scores.is_known(now) else None


def _heard(scores: ScoreList | None) -> float | None:
    """Return the share of decisions that all shards have together."""
    known = [] if scores is None else [one.importance for one in scores.shards]
    shares = [share for share in known if share is not None]
    return sum(shares) if shares else None


def _rows(found: ShardList, scores: ScoreList | None) -> Sequence[Row]:
    sizes = max((one.nodes for one in found.shards), default=0) or 1
    edges = max((one.edges for one in found.shards), default=0) or 1
    scored = {} if scores is None else {one.shard: one for one in scores.shards}
    weights = [one.importance for one in scored.values() if one.importance is not None]
    most = max(weights, default=0.0) or 1.0
    rows = []
    for one in found.shards:
        score = scored.get(one.shard)
        f1 = None if score is None else score.f1
        importance = None if score is None else score.importance
        rows.append(
            Row(
                shard=one.shard,
                nodes=Cell(one.nodes, f"{one.nodes:,}", one.nodes / sizes),
                edges=Cell(one.edges, f"{one.edges:,}", one.edges / edges),
                f1=_known(f1, "{:.3f}", 1.0),
                importance=_known(importance, "{:.2%}", most),
                retrained=one.retrained,
                is_last=one.retrained is not None and one.retrained.version == found.version,
            )
        )
    return rows


def _known(value: float | None, form: str, most: float) -> Cell:
    return Cell(None, "") if value is None else Cell(value, form.format(value), value / most)


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
