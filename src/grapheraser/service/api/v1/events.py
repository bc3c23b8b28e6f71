"""Server-sent events: every step of every request, as it happens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from grapheraser.service.api.access import Role, Watcher
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.requests import Event

router = APIRouter(tags=["events"])
_LOOK = 0.25  # seconds between two looks at the database
_QUIET = 15.0  # seconds after which a comment shows that the connection is alive
_Number = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, lt=2**63)]


@router.get(
    "/events",
    summary="Follow all requests",
    response_class=StreamingResponse,
    responses={
        200: {"content": {"text/event-stream": {}}, "description": "Events, one per step."},
        **responses(401, 403, 404, 429, 503),
    },
)
async def follow(
    key: Watcher,
    parts: Given,
    request: Annotated[
        str | None, Query(pattern="^[0-9a-f]{32}$", description="Only the steps of this request.")
    ] = None,
    after: Annotated[
        int | None, Query(ge=0, lt=2**63, description="Begin after this one; default: now.")
    ] = None,
    seconds: Annotated[float, Query(ge=0, le=86_400, description="For how long.")] = 86_400,
    last_event_id: _Number = None,
) -> StreamingResponse:
    """Every step as an event, whose id is its number; reconnect with `Last-Event-ID`."""
    if key.role is Role.REQUESTER:
        if request is None:
            raise Problem(403, "role-not-allowed", "a requester follows one request of their own.")
        await run_in_threadpool(parts.queue.get, request, key.id)
    begin = last_event_id if last_event_id is not None else after
    if begin is None:
        begin = await run_in_threadpool(parts.queue.last_event)
    events = _stream(parts, begin, request, time.monotonic() + seconds)
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _stream(
    parts: Parts, number: int, request: str | None, until: float
) -> AsyncIterator[str]:
    quiet = time.monotonic()
    yield "retry: 2000\n\n"
    while True:
        found = await run_in_threadpool(parts.queue.events_after, number)
        for event in found:
            number = event.number
            if request in (None, event.request):
                yield _written(event)
                quiet = time.monotonic()
        if time.monotonic() >= until:
            return
        if time.monotonic() - quiet > _QUIET:
            yield ": nothing new\n\n"
            quiet = time.monotonic()
        if not found:
            await asyncio.sleep(min(_LOOK, max(0.0, until - time.monotonic())))


def _written(event: Event) -> str:
    data = json.dumps(event.to_dict(), separators=(",", ":"))
    return f"id: {event.number}\nevent: {event.state.value}\ndata: {data}\n\n"
