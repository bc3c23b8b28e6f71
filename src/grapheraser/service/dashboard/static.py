"""Stylesheets, scripts and the icon: files of the package, for everybody."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Header, Path, Response
from jinja2 import BaseLoader, Environment, PackageLoader

from grapheraser.reports.pages.render import stylesheet
from grapheraser.service.api.problems import responses, unknown
from grapheraser.service.dashboard.docs import swagger_files
from grapheraser.service.dashboard.shell import HOME

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
