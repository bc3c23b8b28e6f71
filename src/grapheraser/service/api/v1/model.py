"""The served model, its versions, scores and shards; health and readiness of the service."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field

from grapheraser.embeddings import Embedder
from grapheraser.errors import ParameterError
from grapheraser.service.api.access import ANYONE, AUDITORS, OPERATORS, READERS, route
from grapheraser.service.api.keys import Key
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.served.drawing import class_names
from grapheraser.service.served.measured import Score, ScoreList, seconds_of
from grapheraser.service.served.serving import Published, task_word

router, health_router = APIRouter(tags=["model"]), APIRouter(tags=["health"])


class ModelView(BaseModel):
    """The model that answers."""

    name: str = Field(description="What it is called under /v2.")
    version: int = Field(description="Size of the log: how many changes led to it.")
    named: bool = Field(description="Whether nodes have names, not numbers.")
    task: str = Field(description="classes, nodes, links, graphs, recommendation or embeddings.")
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


embeddings_router = APIRouter(prefix="/embeddings", tags=["embeddings"])


class MovedRows(BaseModel):
    """Rows that moved, as they are now. Who is gone is found by asking what is not known here."""

    log: str = Field(description="Name of the log that versions are counted in.")
    version: int = Field(description="The version that an index has once it took these over.")
    ids: list[int | str] = Field(description="Ids of nodes, or names.")
    rows: list[list[float]] = Field(description="One row for each of them.")
    more: int | None = Field(description="Ask again with this as `after`; null: all told.")


class Gone(BaseModel):
    """Ids of those that were asked about which are no longer in the graph."""

    version: int
    ids: list[int | str]


class Known(BaseModel):
    """Ids, or names, of the rows that an index has."""

    ids: list[int | str] = Field(max_length=100_000)


@embeddings_router.get("/changes", **route("The rows that moved", READERS, 404, 409))
def changes(
    parts: Given,
    since: Annotated[
        int | None, Query(ge=0, description="Version of the index; none: all.")
    ] = None,
    log: Annotated[str | None, Query(max_length=200, description="Log of that version.")] = None,
    after: Annotated[int, Query(ge=0, description="How many of them to leave out.")] = 0,
    limit: Annotated[int, Query(ge=1, le=10_000, description="How many at the most.")] = 1000,
) -> MovedRows:
    """List rows that moved after a version, in the order of ids; all rows without one."""
    embedder = _served(parts)
    try:
        found = embedder.changes(since, log=log)
    except ParameterError as error:
        raise Problem(409, "unknown-version", error.message) from error
    ids, rows = found.part(after, after + limit)
    return MovedRows(
        log=found.log,
        version=found.version,
        ids=ids.tolist(),
        rows=rows.tolist(),
        more=after + limit if after + limit < len(found) else None,
    )


@embeddings_router.post("/gone", **route("Who is gone", READERS, 404))
def gone(known: Known, parts: Given) -> Gone:
    """Tell which of these are no longer in the graph, so that an index can drop them."""
    embedder = _served(parts)
    found = embedder.changes(embedder.version_)
    return Gone(version=found.version, ids=found.gone(known.ids).tolist())


def _served(parts: Given) -> Embedder:
    model = parts.served.now.model
    if model.task.name != Embedder.task.name:
        raise Problem(404, "unknown-embedding", "the served run is no embedding.")
    return cast(Embedder, model)


shards_router = APIRouter(tags=["model"])


class RetrainingView(BaseModel):
    """The last time that a shard was retrained."""

    version: int = Field(description="With which its new weights were served first.")
    at: datetime
    seconds: float | None = Field(
        description="From the beginning of retraining until the version was served, for all that "
        "the change took; null where another process made it."
    )
    shards: int = Field(description="How many shards were retrained for it.")


class ShardView(BaseModel):
    """One shard of the served version."""

    shard: int
    nodes: int
    edges: int = Field(description="Between its own nodes.")
    trained: bool = Field(description="Whether it has a model; one without labels has none.")
    digest: str | None = Field(default=None, description="Of its weights.")
    retrained: RetrainingView | None = Field(
        default=None,
        description="Known since the service was started, and kept nowhere; null: before that.",
    )


class PartitionView(BaseModel):
    """The partition as it is now."""

    method: str
    capacity: int = Field(description="The most nodes that a shard was made for.")
    nodes: int = Field(description="In all shards.")
    balance: float = Field(description="The largest shard, by the average of all; 1 is even.")
    edges: int = Field(description="Between nodes that are in shards.")
    edge_cut: int = Field(description="Of these, between two shards.")
    edges_kept: float = Field(description="Share of the edges that lie inside a shard.")
    modularity: float
    data_free: bool = Field(description="Whether a node's id alone decides about its shard.")
    notes: list[str]


class ShardList(BaseModel):
    """The shards of one version."""

    version: int
    known_since: int = Field(description="The version from which on retraining was seen.")
    partition: PartitionView
    shards: list[ShardView]


@shards_router.get("/shards", **route("The shards", OPERATORS))
def shards(parts: Given) -> ShardList:
    """The shards of the served version, with the digests of their weights.

    For operators: which shard has changed helps to guess whom a version forgot.
    """
    retrained, now = parts.shards.retrained, parts.served.now
    seconds = seconds_of(parts.queue, (one.version for one in retrained.last.values()))
    last = {
        shard: RetrainingView(**one.__dict__, seconds=seconds.get(one.version))
        for shard, one in retrained.last.items()
    }
    weights, sizes = now.model.shards_, now.model.partition_.sizes
    inside = parts.shards.quality(now).inside.tolist()
    found = [
        ShardView(
            shard=shard,
            nodes=int(size),
            edges=inside[shard],
            trained=shard in weights,
            digest=weights[shard].digest if shard in weights else None,
            retrained=last.get(shard),
        )
        for shard, size in enumerate(sizes)
    ]
    whole = _partition(parts, now)
    return ShardList(
        version=now.version, known_since=retrained.since, partition=whole, shards=found
    )


@shards_router.get("/shards/scores", name="scores", **route("How good each shard is", OPERATORS))
def shard_scores(parts: Given) -> ScoreList:
    """Ask each shard alone about labelled test nodes, once for each version."""
    return parts.shards.scores(parts.served.now)


def _partition(parts: Parts, now: Published) -> PartitionView:
    partition, quality = now.model.partition_, parts.shards.quality(now)
    sizes = partition.sizes
    mean = partition.num_nodes / partition.num_shards
    return PartitionView(
        method=partition.method,
        capacity=partition.capacity,
        nodes=partition.num_nodes,
        balance=float(sizes.max()) / mean if mean else 1.0,
        edges=quality.edges,
        edge_cut=quality.edge_cut,
        edges_kept=quality.edges_kept,
        modularity=quality.modularity,
        data_free=partition.data_free,
        notes=list(partition.notes),
    )
