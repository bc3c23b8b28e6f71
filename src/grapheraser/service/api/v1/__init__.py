"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    audit,
    changes,
    events,
    graph,
    health,
    keys,
    log,
    model,
    nodes,
    plan,
    receipts,
    requests,
    shards,
    subjects,
    summary,
    verifications,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _part in (
    *(requests, summary, plan, changes, subjects, model, graph, nodes, shards, log),
    *(verifications, receipts, audit, keys, events, health),
):
    router.include_router(_part.router)
