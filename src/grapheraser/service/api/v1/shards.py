"""The shards of the served version: their size, their quality, and their last retraining."""

from __future__ import annotations

from datetime import datetime

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.service.api.access import OPERATORS, route
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.served.measured import ScoreList, seconds_of
from grapheraser.service.served.serving import Published

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


@router.get("/shards", **route("The shards", OPERATORS))
def shards(parts: Given) -> ShardList:
    """The shards of the served version, with the digests of their weights.

    For operators: which shard has changed helps to guess whom a version forgot.
    """
    return shard_list(parts)


@router.get("/shards/scores", **route("How good each shard is", OPERATORS))
def scores(parts: Given) -> ScoreList:
    """Ask each shard alone about labelled test nodes, once for each version."""
    return parts.shards.scores(parts.served.now)


def shard_list(parts: Parts) -> ShardList:
    """Show what is known of the shards without asking them."""
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
    return ShardList(
        version=now.version,
        known_since=retrained.since,
        partition=_partition(parts, now),
        shards=found,
    )


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
