"""Files for everybody: stylesheets, scripts, the icon; and the page of the API, Swagger UI.

Swagger UI comes from a package, so that no other host is asked for anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.util import find_spec
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Header, Path, Request, Response
from fastapi.responses import HTMLResponse
from jinja2 import BaseLoader, Environment, PackageLoader

from grapheraser.reports.pages.render import stylesheet
from grapheraser.service.api.access import Gate
from grapheraser.service.api.parts import Given
from grapheraser.service.api.problems import Problem, responses, unknown
from grapheraser.service.dashboard.shell import HOME, SHOWN, page, page_router

router = APIRouter()
_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_CONTENT: dict[str, Any] = {kind: {"schema": {"type": "string"}} for kind in _TYPES.values()}


class File(NamedTuple):
    """A file as it is sent."""

    content: str
    kind: str
    tag: str


@router.get(
    f"{HOME}/static/{{file}}",
    summary="A file of the pages",
    response_class=Response,
    responses={
        200: {"content": _CONTENT, "description": "The file."},
        304: {"description": "It has not changed."},
        **responses(404),
    },
)
async def static(
    file: Annotated[str, Path(description="Its name.")],
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
) -> Response:
    """A stylesheet, a script or the icon."""
    found = files().get(file)
    if found is None:
        raise unknown("file")
    headers = {
        "ETag": found.tag,
        "Cache-Control": "no-cache",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    if known == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.kind, headers=headers)


@cache
def files() -> Mapping[str, File]:
    """Load all files by name; the stylesheet of the reports and Swagger UI's are among them."""
    loader: BaseLoader = PackageLoader("grapheraser.service.dashboard", "static")
    plain = Environment(autoescape=True)
    texts = {name: loader.get_source(plain, name)[0] for name in loader.list_templates()}
    texts["style.css"] = stylesheet()
    texts |= swagger_files()
    return {name: _file(name, text) for name, text in texts.items() if _ending(name) in _TYPES}


def _file(name: str, text: str) -> File:
    tag = hashlib.sha256(text.encode()).hexdigest()[:16]
    return File(text, _TYPES[_ending(name)], f'"{tag}"')


def _ending(name: str) -> str:
    return name.rpartition(".")[2]


docs_router = page_router()
_PACKAGE = "fastapi_offline"
_FILES = ("swagger-ui.css", "swagger-ui-bundle.js")


@docs_router.get(
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
