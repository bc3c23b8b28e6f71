"""The shards of the served version: how large, how good, and when they were last retrained."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.service.api.access import Auditor
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.retrained import Retraining, seconds_of
from grapheraser.service.serving import Published

router = APIRouter(tags=["model"])


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


class ShardScore(BaseModel):
    """How good a shard is, and how much it decides."""

    shard: int
    f1: float | None = Field(
        description="Micro F1 of its own model, asked alone about the test nodes."
    )
    importance: float | None = Field(
        description="Mean share that it has of the decisions about nodes; members that are no "
        "shards have the rest."
    )


class ScoreList(BaseModel):
    """The scores of one version's shards."""

    version: int
    tested: int = Field(description="Labelled test nodes that were asked about.")
    whole: float | None = Field(description="Micro F1 of the whole model on them.")
    shards: list[ShardScore]


@router.get("/shards", summary="The shards", responses=responses(401, 403, 429, 503))
def shards(key: Auditor, parts: Given) -> ShardList:
    """The shards of the served version, with the digests of their weights."""
    del key
    return shard_list(parts)


@router.get(
    "/shards/scores", summary="How good each shard is", responses=responses(401, 403, 429, 503)
)
def scores(key: Auditor, parts: Given) -> ScoreList:
    """Each shard asked alone about labelled test nodes; worked out once for each version."""
    del key
    return score_list(parts, parts.served.now)


def score_list(parts: Parts, now: Published) -> ScoreList:
    """What asking the shards of a version has shown."""
    found = parts.shards.scores(now)
    return ScoreList(
        version=now.version,
        tested=found.tested,
        whole=found.whole,
        shards=[
            ShardScore(shard=shard, f1=found.f1.get(shard), importance=found.importance.get(shard))
            for shard in range(now.model.partition_.num_shards)
        ],
    )


def shard_list(parts: Parts) -> ShardList:
    """What is known of the shards without asking them."""
    retrained, now = parts.shards.retrained, parts.served.now
    seconds = seconds_of(parts.queue, (one.version for one in retrained.last.values()))
    weights, sizes = now.model.shards_, now.model.partition_.sizes
    inside = parts.shards.quality(now).inside.tolist()
    found = [
        ShardView(
            shard=shard,
            nodes=int(size),
            edges=inside[shard],
            trained=shard in weights,
            digest=weights[shard].digest if shard in weights else None,
            retrained=_retraining(retrained.last.get(shard), seconds),
        )
        for shard, size in enumerate(sizes)
    ]
    return ShardList(
        version=now.version,
        known_since=retrained.since,
        partition=_partition(parts, now),
        shards=found,
    )


def _retraining(found: Retraining | None, seconds: Mapping[int, float]) -> RetrainingView | None:
    if found is None:
        return None
    return RetrainingView(**found.__dict__, seconds=seconds.get(found.version))


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
