"""What forgetting would take, before anybody asks for it."""

from __future__ import annotations

from statistics import median

from fastapi import APIRouter
from pydantic import BaseModel, Field

from grapheraser.eraser.plan import Plan
from grapheraser.graph import coalesce
from grapheraser.graph.requests import SKIP
from grapheraser.receipts.claim import exactness
from grapheraser.service.api.access import Requester
from grapheraser.service.api.forms import ErasureForm
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1.requests import check_ids
from grapheraser.service.items import as_requests, items_of, there
from grapheraser.service.requests import OUT_OF_SCOPE, Asked, State

router = APIRouter(tags=["requests"])
_RECENT = 50
_EVERY_SHARD = "all"
_KINDS = ("nodes", "edges", "features", "labels")


class ShardPlanView(BaseModel):
    """What forgetting does to one shard."""

    shard: int
    nodes: int = Field(description="Its nodes now.")
    left: int = Field(description="Its nodes afterwards.")
    why: str = Field(description="What goes, in words.")


class CostView(BaseModel):
    """What forgetting costs."""

    shards: int = Field(description="Shards that are retrained.")
    of_shards: int
    nodes: int = Field(description="Nodes that these are trained on.")
    of_nodes: int = Field(description="Nodes that a fit from scratch would be trained on.")
    seconds: float | None = Field(
        description="Median time that recent requests took, waiting included; null: there are none."
    )


class PlanView(BaseModel):
    """What forgetting would take. Nothing was changed or kept."""

    version: int = Field(description="Of the model that it is planned for.")
    counts: dict[str, int] = Field(description="How much goes, by kind.")
    missing: int = Field(description="How much of what is named is not there.")
    shards: list[ShardPlanView] = Field(description="Shards that lose something.")
    emptied: list[int] = Field(description="Shards that nothing is left to train with.")
    untrained: int = Field(description="How much of it no shard is trained on: retrains nothing.")
    touched: int = Field(description="Nodes left whose neighbours, features or labels change.")
    cost: CostView
    statement: str = Field(description="exact, or exact given partition.")
    guarantee: str = Field(description="The same in words.")
    notes: list[str]
    out_of_scope: list[str] = Field(description="What the erasure does not reach.")


@router.post(
    "/plan",
    summary="Plan a request to forget",
    responses=responses(401, 403, 404, 409, 413, 429, 503),
)
def plan(form: ErasureForm, key: Requester, parts: Given) -> PlanView:
    """Which shards a request would retrain, at what cost, and what it would promise."""
    del key
    asked = Asked.from_dict(form.model_dump(exclude={"deadline"}, exclude_defaults=True))
    check_ids(asked, parts)
    named = set(items_of(asked))
    if asked.subject is not None:
        named |= set(parts.subjects.find(asked.subject))
    model, version, _ = parts.served.now
    wanted = as_requests(named)
    found = model.plan(wanted, missing=SKIP)
    known = there(coalesce(model.graph_, wanted, missing=SKIP))
    claim = exactness(model.partition_.method, model.partition_.inputs)
    counts = {name: count for name, count in found.counts.items() if count and name in _KINDS}
    return PlanView(
        version=version,
        counts=counts,
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
    everything = parts.settings.refresh == _EVERY_SHARD
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
