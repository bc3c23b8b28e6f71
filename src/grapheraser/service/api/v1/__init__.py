"""The service's own routes, under ``/api/v1``."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import responses
from grapheraser.service.api.v1 import (
    changes,
    events,
    health,
    keys,
    log,
    model,
    requests,
    subjects,
    summary,
)

router = APIRouter(prefix="/api/v1", responses=responses(400))
for _part in (requests, summary, changes, subjects, model, log, keys, events, health):
    router.include_router(_part.router)
