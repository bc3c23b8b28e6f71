"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    changes,
    events,
    graph,
    health,
    keys,
    log,
    model,
    nodes,
    plan,
    requests,
    subjects,
    summary,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _part in (requests, plan, summary, changes, subjects):
    router.include_router(_part.router)
for _part in (model, graph, nodes, log, keys, events, health):
    router.include_router(_part.router)
