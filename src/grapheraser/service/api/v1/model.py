"""The served model, its versions and their scores; health and readiness of the service."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from grapheraser.service.api.access import ANYONE, AUDITORS, READERS, route
from grapheraser.service.api.keys import Key
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.served.drawing import class_names
from grapheraser.service.served.measured import Score
from grapheraser.service.served.serving import task_word

router, health_router = APIRouter(tags=["model"]), APIRouter(tags=["health"])


class ModelView(BaseModel):
    """The model that answers."""

    name: str = Field(description="What it is called under /v2.")
    version: int = Field(description="Size of the log: how many changes led to it.")
    named: bool = Field(description="Whether nodes have names, not numbers.")
    task: str = Field(description="classes, links, recommendation or embeddings.")
    nodes: int | None = Field(description="Null for roles that may not read the graph.")
    edges: int | None = Field(description="Null for roles that may not read the graph.")
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
    statement: str = Field(description="How much its receipt claims, such as exact.")
    requests: int = Field(description="How many parts were answered by its receipt.")
    receipt: str = Field(description="Digest of the receipt.")
    served: bool = Field(description="Whether it is the one that answers now.")


@router.get("/model", **route("The served model"))
def model(parts: Given, key: Annotated[Key, Depends(ANYONE)]) -> ModelView:
    """Describe the model that is served now.

    How many edges go from one version to the next is the degree of whom it forgot, so the size of
    the graph is shown to those alone who may read the graph.
    """
    eraser, version, _ = parts.served.now
    reads = key.role in READERS.roles
    graph, classifier = eraser.graph_, eraser.classifier
    return ModelView(
        name=parts.name,
        version=version,
        named=graph.named,
        task=task_word(eraser),
        nodes=graph.num_nodes if reads else None,
        edges=graph.num_edges if reads else None,
        classes=None if classifier is None else class_names(graph),
        shards=len(eraser.shards_),
        engine=eraser.engine_,
        kind=_name(getattr(eraser, "model", None)),
        partition=eraser.partition_.method,
        aggregation=None if classifier is None else _name(classifier.aggregation),
    )


def _name(part: object) -> str | None:
    """Return the name of a part of an eraser, built in or somebody's own."""
    if part is None or isinstance(part, str):
        return part
    return str(getattr(part, "name", type(part).__name__))


@router.get("/versions", **route("The versions", AUDITORS))
def versions(
    parts: Given,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> list[VersionView]:
    """The latest versions, newest first. Only the served one still exists."""
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


@router.get("/scores", **route("F1 over time", AUDITORS))
def scores(
    parts: Given,
    limit: Annotated[int, Query(ge=1, le=1000, description="How many at the most.")] = 100,
) -> list[Score]:
    """F1 and nodes of the latest versions that were served here, oldest first."""
    return list(parts.scores.latest(limit))


class Alive(BaseModel):
    """The service answers."""

    status: str = "alive"


class Ready(BaseModel):
    """The checks, each of which has passed."""

    status: str = "ready"
    checks: dict[str, bool]


@health_router.get("/health", summary="Is it alive?")
async def health() -> Alive:
    """Answers whenever the process does."""
    return Alive()


@health_router.get("/ready", summary="Is it ready?", responses=responses(503))
def ready(parts: Given) -> Ready:
    """Check database, model and worker; 503 names those that fail."""
    checks = parts.checks()
    if not all(checks.values()):
        missing = ", ".join(name for name, works in checks.items() if not works)
        raise Problem(503, "not-ready", f"not ready: {missing}.", members={"checks": checks})
    return Ready(checks=checks)
