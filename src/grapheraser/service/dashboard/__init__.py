"""The dashboard: pages for people, on the routes of the API and behind the same gate."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.dashboard import (
    audit,
    graph,
    overview,
    requests,
    shards,
    sign_in,
    static,
)

router = APIRouter(tags=["dashboard"])
for _part in (overview, graph, requests, shards, audit, sign_in, static):
    router.include_router(_part.router)
