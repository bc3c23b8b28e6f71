"""How requests fare as a whole, and how good the versions were."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Anyone, Watcher
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import owner_of
from grapheraser.service.summary import summarize

router = APIRouter()


class SummaryView(BaseModel):
    """Requests in a few numbers."""

    stages: dict[str, int] = Field(
        description="How many are waiting, running, failed, completed and cancelled."
    )
    late: int = Field(description="Open requests whose deadline has passed.")
    next_deadline: datetime | None = Field(description="Of the open requests.")
    median_seconds: float | None = Field(
        description="From receiving to completing, of the latest 1,000 erasures."
    )


class ScoreView(BaseModel):
    """A version in numbers."""

    version: int
    at: datetime = Field(description="When it was first served.")
    nodes: int
    edges: int
    f1: float | None = Field(description="Micro F1 of up to 10,000 test nodes; null: it has none.")


@router.get(
    "/summary",
    tags=["requests"],
    summary="Requests in a few numbers",
    responses=responses(401, 403, 429, 503),
)
def summary(key: Watcher, parts: Given) -> SummaryView:
    """How many wait, what is due next, how long forgetting takes. A requester sees their own."""
    return SummaryView(**summarize(parts.queue, owner_of(key)).__dict__)


@router.get(
    "/scores",
    tags=["model"],
    summary="F1 over time",
    responses=responses(401, 403, 429, 503),
)
def scores(
    key: Anyone,
    parts: Given,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> list[ScoreView]:
    """F1, nodes and edges of the latest versions that were served here, oldest first."""
    del key
    return [ScoreView(**score.__dict__) for score in parts.scores.latest(limit)]
