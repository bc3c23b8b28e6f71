"""The graph as it is drawn."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, Header, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from grapheraser.service.api.access import Operator
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import responses
from grapheraser.service.drawing import Drawing

router = APIRouter(tags=["graph"])
_LOOK = 0.05  # seconds between two looks at the drawing
_FILE = "application/octet-stream"


class BeingLaidOut(BaseModel):
    """There is no drawing yet."""

    status: str = "being laid out"


@router.get(
    "/graph/layout",
    summary="Where every node is drawn",
    response_class=Response,
    responses={
        200: {
            "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}},
            "description": "A safetensors file: places F32 [n, 2], shards I16 [n] (-1: none), "
            "classes I16 [n] as predicted (-1: not known), edges U32 [m, 2] (rows of nodes), and "
            "ids I64 [n], or names U8: a JSON list. Its metadata `drawing` is a JSON object.",
        },
        202: {"model": BeingLaidOut, "description": "It is being laid out: ask again."},
        304: {"description": "Nothing is new."},
        **responses(401, 403, 429, 503),
    },
)
async def layout(
    key: Operator,
    parts: Given,
    known: Annotated[str | None, Header(alias="If-None-Match")] = None,
    wait: Annotated[
        float, Query(ge=0, le=30, description="Seconds to wait for something new.")
    ] = 0,
) -> Response:
    """The served graph in the plane, or a sample of a large one; laid out once for each version.

    Right after a change it may hold the places of the version before, without what was forgotten:
    then `settled` is false, and what is left is being laid out afresh.
    """
    del key
    drawing = await _found(parts, known, time.monotonic() + wait)
    headers = {"Cache-Control": "no-store"}
    if drawing is None:
        return JSONResponse(BeingLaidOut().model_dump(), 202, {**headers, "Retry-After": "1"})
    headers["ETag"] = drawing.tag
    if drawing.tag == known:
        return Response(status_code=304, headers=headers)
    content = await run_in_threadpool(lambda: drawing.content)
    return Response(content, media_type=_FILE, headers=headers)


async def _found(parts: Parts, known: str | None, until: float) -> Drawing | None:
    while True:
        drawing = await run_in_threadpool(parts.drawings.now)
        new = drawing is not None and drawing.tag != known
        if new or time.monotonic() >= until:
            return drawing
        await asyncio.sleep(_LOOK)
