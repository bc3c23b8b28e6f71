"""The page of the API: Swagger UI, from a package, so that no other host is asked for anything."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.util import find_spec

from fastapi import Request
from fastapi.responses import HTMLResponse

from grapheraser.service.api.access import Gate
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.dashboard.shell import SHOWN, page, page_router

router = page_router()
_PACKAGE = "fastapi_offline"
_FILES = ("swagger-ui.css", "swagger-ui-bundle.js")


@router.get(
    "/docs",
    summary="The page of the API",
    response_class=HTMLResponse,
    responses={200: SHOWN, **responses(404)},
)
async def docs(request: Request, parts: Given) -> HTMLResponse:
    """Show every route, and try it out with a key or as the one who has signed in."""
    if not swagger_files():
        raise Problem(
            404,
            "no-api-page",
            "the page of the API needs the package fastapi-offline.",
            hint="in a checkout of GraphEraser: pip install '.[service]'; /openapi.json is there.",
        )
    gate: Gate = request.app.state.gate
    return page(request, await gate.visitor(request), parts, "docs")


@cache
def swagger_files() -> Mapping[str, str]:
    """Load Swagger UI's files by name; none where the package is not installed."""
    if find_spec(_PACKAGE) is None:
        return {}
    folder = resources.files(_PACKAGE) / "static"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _FILES}
