"""The page of the shards: how large, how good, how balanced, and when they were last retrained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends
from fastapi.responses import HTMLResponse

from grapheraser.service.api.parts import Parts
from grapheraser.service.api.v1.shards import (
    RetrainingView,
    ScoreList,
    ShardList,
    score_list,
    shard_list,
)
from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import PAGE, Visit, Visiting, page_router

router = page_router()


@dataclass(frozen=True)
class Cell:
    """A figure of a shard, with a bar beside it.

    Attributes:
        value: to sort by; None: not known.
        text: what is read.
        share: of the bar's whole length.
    """

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
    """The scores of the served version, where they were worked out already."""
    now = parts.served.now
    return score_list(parts, now) if parts.shards.is_scored(now) else None


def _heard(scores: ScoreList | None) -> float | None:
    """The share of decisions that all shards have together."""
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
