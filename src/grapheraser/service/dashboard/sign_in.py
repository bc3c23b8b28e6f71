"""Signing in with an API key, and out again."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import parse_qs

from fastapi import Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, RedirectResponse

from grapheraser.service.api.access import ANYONE, Gate
from grapheraser.service.api.keys import COOKIE
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses
from grapheraser.service.dashboard.shell import (
    HEADERS,
    HOME,
    SHOWN,
    SIGN_IN,
    page,
    page_router,
    reads_pages,
)

router = page_router()
# Where to go after signing in: a page of the dashboard, and nothing else.
_OWN_PAGE = re.compile(r"/dashboard(/[\w-]+)*")
_MAX_BYTES = 10_000  # of a form that are read
_FIELDS = {
    "key": "An API key.",
    "next": "The page to go to.",
    "once": "In place of a key: the token of a link that signs in once.",
}
_SCHEMA = {
    "type": "object",
    "properties": {name: {"type": "string", "description": text} for name, text in _FIELDS.items()},
}
_CONTENT = {"application/x-www-form-urlencoded": {"schema": _SCHEMA}}
_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _CONTENT}}
_THERE: dict[int | str, dict[str, Any]] = {
    303: {"description": "To the page that was asked for, with or without a session."}
}


@router.get(
    SIGN_IN,
    summary="The sign-in page",
    response_class=HTMLResponse,
    responses={200: SHOWN, **_THERE},
)
async def form(
    request: Request,
    parts: Given,
    there: Annotated[str, Query(alias="next", description="The page to go to.")] = HOME,
) -> Response:
    """Ask for an API key; a visitor with a session goes on."""
    gate: Gate = request.app.state.gate
    if await gate.holds(request):
        return RedirectResponse(_own(there), 303, headers=HEADERS)
    return page(request, None, parts, "sign_in", there=_own(there), problem=None)


@router.post(
    SIGN_IN,
    summary="Sign in",
    response_class=RedirectResponse,
    responses={**_THERE, **responses(401, 403, 413, 429, 503)},
    status_code=303,
    openapi_extra=_BODY,
)
async def sign_in(request: Request, parts: Given) -> Response:
    """Begin a session: its cookie is for this service alone, and no script can read it."""
    fields = parse_qs((await request.body())[:_MAX_BYTES].decode(errors="replace"))
    given, there, once = (fields.get(name, [""])[0] for name in _FIELDS)
    gate: Gate = request.app.state.gate
    try:
        token = await gate.sign_in(request, _key_of(given, once, parts))
    except Problem as problem:
        if not reads_pages(request):
            raise
        values = {"there": _own(there), "problem": problem}
        return page(request, None, parts, "sign_in", problem.status, **values)
    answer = RedirectResponse(_own(there), 303, headers=HEADERS)
    answer.set_cookie(
        COOKIE,
        token,
        max_age=int(gate.sessions.lasting.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return answer


@router.post(
    f"{HOME}/sign-out",
    summary="Sign out",
    response_class=RedirectResponse,
    dependencies=[Depends(ANYONE)],
    responses={**_THERE, **responses(401, 403, 429, 503)},
    status_code=303,
)
async def sign_out(request: Request) -> Response:
    """End the session, on the server too."""
    gate: Gate = request.app.state.gate
    token = request.cookies.get(COOKIE)
    if token is not None:
        await run_in_threadpool(gate.sessions.end, token)
    answer = RedirectResponse(SIGN_IN, 303, headers=HEADERS)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _key_of(given: str, once: str, parts: Parts) -> str:
    """Return the text of the key that somebody gave, or that their link stands for."""
    if not once:
        return given.strip()
    key = parts.sign_in_links.take(once)
    if key is None:
        hint = "sign in with an API key, or start the service again for a new link."
        raise Problem(401, "link-used", "this link was used already, or is too old.", hint=hint)
    return key


def _own(there: str) -> str:
    return there if _OWN_PAGE.fullmatch(there) else HOME
