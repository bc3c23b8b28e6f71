"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    audit,
    embeddings,
    events,
    graph,
    keys,
    log,
    model,
    plan,
    requests,
    shards,
    subjects,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _room in (requests, plan, subjects, model, embeddings, graph, shards, log, audit, keys, events):
    router.include_router(_room.router)
router.include_router(requests.changes_router)
router.include_router(model.health_router)
