"""The dashboard: pages for people, on the routes of the API and behind the same gate."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import unknown
from grapheraser.service.dashboard import (
    audit,
    graph,
    overview,
    requests,
    shards,
    sign_in,
    static,
)
from grapheraser.service.dashboard.navigation import HOME
from grapheraser.service.dashboard.pages import page_router

_elsewhere = page_router()


@_elsewhere.get(f"{HOME}/{{path:path}}", include_in_schema=False)
def no_such_page(path: str) -> None:
    """Whatever no page answers to: told as a page to those who read pages."""
    raise unknown("page")


router = APIRouter(tags=["dashboard"])
for _part in (overview, graph, requests, shards, audit, sign_in, static):
    router.include_router(_part.router)
router.include_router(_elsewhere)  # the last
