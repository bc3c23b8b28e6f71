"""What is served: the version, and the versions before it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from grapheraser.links import LinkEraser
from grapheraser.service.api.access import Anyone, Auditor
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import responses

router = APIRouter(tags=["model"])


class ModelView(BaseModel):
    """The model that answers."""

    name: str = Field(description="What it is called under /v2.")
    version: int = Field(description="Size of the log: how many changes led to it.")
    named: bool = Field(description="Whether nodes have names, not numbers.")
    task: str = Field(description="classes or links.")
    nodes: int
    edges: int
    classes: list[str] | None = Field(default=None, description="In the order of posteriors.")
    shards: int
    engine: str
    kind: str | None = Field(description="What its shards are; null where it has no GNN.")
    partition: str = Field(description="How nodes were divided among the shards.")
    aggregation: str | None = Field(description="How their posteriors become one.")


class VersionView(BaseModel):
    """A version and the change that led to it."""

    version: int
    action: str
    completed: datetime
    counts: dict[str, int]
    statement: str = Field(description="exact, or exact given partition.")
    requests: int = Field(description="How many parts were answered by its receipt.")
    receipt: str = Field(description="Digest of the receipt.")
    served: bool = Field(description="Whether it is the one that answers now.")


@router.get("/model", summary="The served model", responses=responses(401, 403, 429, 503))
def model(key: Anyone, parts: Given) -> ModelView:
    """What is served at the moment."""
    del key
    eraser, version, _ = parts.served.now
    graph, is_links = eraser.graph_, parts.served.is_for_links
    names = graph.class_names or [str(label) for label in range(graph.num_classes)]
    return ModelView(
        name=parts.name,
        version=version,
        named=graph.named,
        task="links" if is_links else "classes",
        nodes=graph.num_nodes,
        edges=graph.num_edges,
        classes=None if is_links else [str(name) for name in names],
        shards=len(eraser.shards_),
        engine=eraser.engine_,
        kind=_name(eraser.model),
        partition=eraser.partition_.method,
        aggregation=None if isinstance(eraser, LinkEraser) else _name(eraser.aggregation),
    )


def _name(part: object) -> str | None:
    """What a part of an eraser is called, built in or somebody's own."""
    if part is None or isinstance(part, str):
        return part
    return str(getattr(part, "name", type(part).__name__))


@router.get("/versions", summary="The versions", responses=responses(401, 403, 429, 503))
def versions(
    key: Auditor,
    parts: Given,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> list[VersionView]:
    """The latest versions, newest first. Only the served one still exists."""
    del key
    receipts = parts.log.read()[0]
    served = parts.served.now.version
    return [
        VersionView(
            version=receipt.sequence,
            action=receipt.action,
            completed=datetime.fromisoformat(receipt.completed_at),
            counts=receipt.counts,
            statement=receipt.statement,
            requests=receipt.requests,
            receipt=receipt.digest,
            served=receipt.sequence == served,
        )
        for receipt in reversed(receipts[max(0, len(receipts) - limit) :])
    ]
