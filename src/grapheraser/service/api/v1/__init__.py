"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    audit,
    events,
    graph,
    keys,
    model,
    requests,
    subjects,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _router in (
    *(requests.router, subjects.router, model.router, graph.router),
    *(model.shards_router, audit.log_router, audit.router, keys.router, events.router),
    *(requests.changes_router, model.embeddings_router, model.health_router),
):
    router.include_router(_router)
