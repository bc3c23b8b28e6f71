"""Plan an erasure: its shards, its cost and its promise, before anybody asks for it."""

from __future__ import annotations

from collections import Counter
from statistics import median

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.eraser.change import ALL
from grapheraser.eraser.plan import Plan
from grapheraser.graph.changes.kinds import requests_for
from grapheraser.graph.changes.requests import SKIP
from grapheraser.service.api.access import OPERATORS, route
from grapheraser.service.api.forms import ErasureForm
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.v1.requests import content_in
from grapheraser.service.queue.requests import OUT_OF_SCOPE, State

router = APIRouter(tags=["requests"])
_RECENT = 50  # requests to take the median time of


class ShardPlanView(BaseModel):
    """The effect of an erasure on one shard."""

    shard: int
    nodes: int = Field(description="Its nodes now.")
    left: int = Field(description="Its nodes afterwards.")
    why: str = Field(description="What goes, in words.")


class CostView(BaseModel):
    """The cost of an erasure."""

    shards: int = Field(description="Shards that are retrained.")
    of_shards: int
    nodes: int = Field(description="Nodes that these are trained on.")
    of_nodes: int = Field(description="Nodes that a fit from scratch would be trained on.")
    seconds: float | None = Field(
        description="Median time that recent requests took, waiting included; null: there are none."
    )


class PlanView(BaseModel):
    """The plan of an erasure. Nothing was changed or kept."""

    version: int = Field(description="Of the model that it is planned for.")
    counts: dict[str, int] = Field(description="How much goes, by kind.")
    missing: int = Field(description="How much of what is named is not there.")
    shards: list[ShardPlanView] = Field(description="Shards that lose something.")
    emptied: list[int] = Field(description="Shards that nothing is left to train with.")
    untrained: int = Field(description="How much of it no shard is trained on: retrains nothing.")
    touched: int = Field(description="Nodes left whose neighbours, features or labels change.")
    cost: CostView
    statement: str = Field(description="How much receipts of the run claim, such as exact.")
    guarantee: str = Field(description="The same in words.")
    notes: list[str]
    out_of_scope: list[str] = Field(description="What the erasure does not reach.")


@router.post("/plan", **route("Plan a request to forget", OPERATORS, 404, 409, 413))
def plan(form: ErasureForm, parts: Given) -> PlanView:
    """Say which shards a request would retrain, at what cost, and what it would promise.

    For operators, who may read the graph: a plan tells what is in it, and where.
    """
    content = content_in(parts, form.content)
    named = set(content.items)
    if content.subject is not None:
        named |= set(parts.subjects.find(content.subject))
    model, version, _ = parts.served.now
    wanted = requests_for(named)
    found = model.plan(wanted, missing=SKIP)
    known = model.items_in(wanted)
    claim = model.exactness_
    return PlanView(
        version=version,
        counts=dict(Counter(item.kind.name for item in known)),
        missing=len(named - known),
        shards=[
            ShardPlanView(shard=s.shard, nodes=s.size_before, left=s.size_after, why=s.why)
            for s in found.shards
        ],
        emptied=list(found.emptied),
        untrained=found.counts["untrained"],
        touched=len(found.touched),
        cost=_cost(parts, found),
        statement=claim["statement"],
        guarantee=claim["reason"],
        notes=list(found.notes),
        out_of_scope=list(OUT_OF_SCOPE),
    )


def _cost(parts: Parts, found: Plan) -> CostView:
    model = parts.served.now.model
    sizes = model.partition_.sizes.copy()
    for shard in found.shards:
        sizes[shard.shard] = shard.size_after
    everything = parts.settings.refresh == ALL
    retrained = list(model.shards_) if everything else list(found.retrain)
    recent = parts.queue.list(states=[State.COMPLETED], limit=_RECENT).requests
    took = [
        (request.completed - request.received).total_seconds()
        for request in recent
        if request.completed is not None
    ]
    return CostView(
        shards=len(retrained),
        of_shards=len(model.shards_),
        nodes=int(sizes[retrained].sum()),
        of_nodes=int(sizes.sum()),
        seconds=median(took) if took else None,
    )
