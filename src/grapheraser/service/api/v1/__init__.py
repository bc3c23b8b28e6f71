"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    audit,
    collections,
    events,
    graph,
    keys,
    log,
    model,
    requests,
    shards,
    subjects,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _room in (requests, subjects, model, graph, collections, shards, log, audit, keys, events):
    router.include_router(_room.router)
router.include_router(requests.changes_router)
router.include_router(model.embeddings_router)
router.include_router(model.health_router)
