"""Server-sent events: every step of every request, as it happens."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse

from grapheraser.service.api.access import Bearer, Gate, Watcher, route
from grapheraser.service.api.keys import REMEMBERED
from grapheraser.service.api.parts import Given
from grapheraser.service.api.v1.requests import owner_of
from grapheraser.service.queue.requests import Event

router = APIRouter(tags=["events"])
_POLL_SECONDS = 0.25  # between two looks at the database
_QUIET_SECONDS = 15.0  # after which a comment shows that the connection is alive
_Number = Annotated[int | None, Header(alias="Last-Event-ID", ge=0, lt=2**63)]


@router.get(
    "/events",
    response_class=StreamingResponse,
    **route(
        "Follow all requests",
        None,
        404,
        ok={"content": {"text/event-stream": {}}, "description": "Events, one per step."},
    ),
)
async def follow(
    key: Watcher,
    given: Bearer,
    http: Request,
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
    """Every step as an event, whose id is its number; reconnect with `Last-Event-ID`.

    A requester sees the steps of their own requests. The stream ends when the key is revoked.
    """
    owner = owner_of(key)
    if request is not None:
        await run_in_threadpool(parts.queue.get, request, owner)
    begin = last_event_id if last_event_id is not None else after
    if begin is None:
        begin = await run_in_threadpool(parts.queue.last_event)
    gate: Gate = http.app.state.gate
    text = given.credentials if given else None

    def look(number: int) -> list[Event]:
        return list(parts.queue.events_after(number, owner=owner))

    until = time.monotonic() + seconds
    events = _stream(look, begin, request, until, lambda: gate.holds(http, text))
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
    )


async def _stream(
    look: Callable[[int], list[Event]],
    number: int,
    request: str | None,
    until: float,
    holds: Callable[[], Awaitable[bool]],
) -> AsyncIterator[str]:
    quiet = asked = time.monotonic()
    yield "retry: 2000\n\n"
    while True:
        found = await run_in_threadpool(look, number)
        for event in found:
            number = event.number
            if request in (None, event.request):
                data = json.dumps(event.to_dict(), separators=(",", ":"))
                yield f"id: {event.number}\nevent: {event.state.value}\ndata: {data}\n\n"
                quiet = time.monotonic()
        if time.monotonic() >= until:
            return
        if time.monotonic() - asked > REMEMBERED:
            if not await holds():
                return
            asked = time.monotonic()
        if time.monotonic() - quiet > _QUIET_SECONDS:
            yield ": nothing new\n\n"
            quiet = time.monotonic()
        if not found:
            await asyncio.sleep(min(_POLL_SECONDS, max(0.0, until - time.monotonic())))
