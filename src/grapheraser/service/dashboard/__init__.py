"""The dashboard: pages for people, on the routes of the API and behind the same gate."""

from __future__ import annotations

from fastapi import APIRouter

from grapheraser.service.api.problems import unknown
from grapheraser.service.dashboard import model, requests, sign_in, static
from grapheraser.service.dashboard.shell import HOME, page_router

_elsewhere = page_router()


@_elsewhere.get(f"{HOME}/{{path:path}}", include_in_schema=False)
def no_such_page(path: str) -> None:
    """Answer all other paths with a page that says so."""
    raise unknown("page")


router = APIRouter(tags=["dashboard"])
for _room in (model, requests, sign_in, static):
    router.include_router(_room.router)
router.include_router(static.docs_router)
router.include_router(_elsewhere)  # the last
