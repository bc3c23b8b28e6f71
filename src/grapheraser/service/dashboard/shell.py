"""Pages: from a template to an answer with its headers, and errors as pages for people.

A page is a module with a `page_router`, a template that extends ``shell.html.j2``, a script in
``static`` and one of `ENTRIES`:

    @router.get(f"{HOME}/shards", summary="The shards", **PAGE)
    def shards(visit: Annotated[Visit, Depends(Visiting("shards"))]) -> HTMLResponse:
        return visit.page("shards", sizes=...)
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment
from markupsafe import Markup

from grapheraser.errors import GraphEraserError
from grapheraser.kinds import KINDS
from grapheraser.reports.pages.render import environment
from grapheraser.reports.wording import listed, plural
from grapheraser.service.api.access import Bearer, Gate, Only
from grapheraser.service.api.keys import COOKIE, Key, Role, csrf_of
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, problem_of, responses
from grapheraser.service.queue.requests import Request as QueuedRequest
from grapheraser.service.queue.requests import State, utc_text

_NOUNS = {
    "subjects": "subject",
    **{name: kind.words for name, kind in KINDS.items()},
    "changes": "change",
}
# Advice about a failure, by the kind of error that its reason ends with.
_ADVICE = {
    "EmptyEnsembleError": "Nothing would be left to learn from. Cancel it, and delete the run if "
    "all of it is to be forgotten.",
    "StorageFullError": "Make room on the disk. It is then carried out by itself.",
    "DatabaseError": "See that the database is reachable, writable and not full.",
    "MissingExtraError": "Install the package where the service runs, and restart it.",
    "MemoryError": "Give the service more memory, or let it train fewer shards at once.",
    "TrainingError": "The log of the service says which shard failed, and why.",
}
_BY_ITSELF = "It is tried again by itself; the log of the service says more."
_BY_HAND = "As it is, it can't succeed. Cancel it, and submit one that fits the run."


def moment(at: datetime | None) -> Markup:
    """Write a time as an element that scripts keep relative to now; a dash for None."""
    if at is None:
        return Markup("-")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc_text(at), f"{utc:%Y-%m-%d %H:%M:%S} UTC", f"{utc:%Y-%m-%d %H:%M} UTC"
    )


def exact(at: datetime) -> Markup:
    """Write a time to the second, which stays as it is."""
    utc = at.astimezone(UTC)
    return Markup('<time class="exact" datetime="{}">{} UTC</time>').format(
        utc_text(at), f"{utc:%Y-%m-%d %H:%M:%S}"
    )


def clock(at: datetime, since: datetime) -> Markup:
    """Write a time of the same day without its date; of another day as `exact` does."""
    utc = at.astimezone(UTC)
    if utc.date() != since.astimezone(UTC).date():
        return exact(at)
    return Markup('<time class="exact" datetime="{}">{:%H:%M:%S}</time>').format(utc_text(at), utc)


def sentence(text: str) -> str:
    """Begin a text with a capital letter and end it with a full stop."""
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def spoken(reason: str | None) -> str:
    """Return a reason without the kind of error that it ends with."""
    return (reason or "it failed").partition(" (")[0]


def named(counts: Mapping[str, int]) -> str:
    """Say how much a request or a receipt names.

    >>> named({"subjects": 1, "edges": 2})
    '1 subject and 2 edges'
    """
    found = [plural(counts[key], noun) for key, noun in _NOUNS.items() if counts.get(key)]
    return listed(found) if found else "nothing"


def advice(request: QueuedRequest) -> str:
    """Advise what to do about a request that failed; nothing for others."""
    if request.state is not State.FAILED:
        return ""
    kind = (request.reason or "").rpartition("(")[2].rstrip(")")
    if kind in _ADVICE:
        return _ADVICE[kind]
    return _BY_HAND if request.retry_at is None else _BY_ITSELF


FILTERS: Mapping[str, Callable[..., Any]] = {
    "advice": advice,
    "clock": clock,
    "exact": exact,
    "moment": moment,
    "named": named,
    "sentence": sentence,
    "spoken": spoken,
}


HOME = "/dashboard"


@dataclass(frozen=True)
class Entry:
    """A page that the navigation leads to; ``name`` is that of its template and script."""

    name: str
    title: str
    roles: frozenset[Role]

    @property
    def path(self) -> str:
        return HOME if self.name == "overview" else f"{HOME}/{self.name}"


_ALL = frozenset(Role)
ENTRIES = (
    Entry("overview", "Overview", _ALL),
    Entry("graph", "Graph", frozenset({Role.OPERATOR})),
    Entry("requests", "Requests", _ALL - {Role.READER}),
    Entry("shards", "Shards", frozenset({Role.OPERATOR})),
    Entry("audit", "Audit", frozenset({Role.AUDITOR, Role.OPERATOR})),
)


SIGN_IN = f"{HOME}/sign-in"
# Everything comes from the service itself, nothing is written into a page, and nobody frames it.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "font-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: browsers then hide the origin of forms, by which the gate knows its own.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
# The answers of a page, for the schema.
_HTML = {"text/html": {"schema": {"type": "string"}}}
SHOWN: dict[str, Any] = {"content": _HTML, "description": "The page."}
PAGE: dict[str, Any] = {
    "response_class": HTMLResponse,
    "responses": {
        200: SHOWN,
        303: {"description": "To the sign-in page, where a browser has no session."},
        **responses(401, 403, 404, 429, 503),
    },
}


@dataclass(frozen=True)
class Visit:
    """A visitor with a key who asks for a page, which follows all events after ``last``."""

    request: Request
    key: Key
    parts: Parts
    last: int

    def page(self, template: str, **values: Any) -> HTMLResponse:
        """Fill a template; see `page`."""
        return page(self.request, self.key, self.parts, template, last=self.last, **values)

    def may(self, *roles: Role) -> bool:
        """Tell whether their role is one of these."""
        return self.key.role in roles


class Visiting:
    """A dependency of a page: lets in who sees its entry of the navigation, or has these roles."""

    def __init__(self, name: str, *roles: Role) -> None:
        entry = next(entry for entry in ENTRIES if entry.name == name)
        self._only = Only(*(roles or entry.roles))

    async def __call__(self, request: Request, given: Bearer, parts: Given) -> Visit:
        """Let a visitor in."""
        key = await self._only(request, given)
        return Visit(request, key, parts, await run_in_threadpool(parts.queue.last_event))


def page(
    request: Request, key: Key | None, parts: Parts, template: str, status: int = 200, **values: Any
) -> HTMLResponse:
    """Fill a template that extends ``shell.html.j2`` with these values and the shared ones."""
    token = request.cookies.get(COOKIE)
    shared = {
        "role": None if key is None else key.role.value,
        "who": "" if key is None else key.name,
        "entries": [entry for entry in ENTRIES if key is not None and key.role in entry.roles],
        "current": request.url.path,
        "model": parts.name,
        "csrf": "" if key is None or token is None else csrf_of(token),
    }
    content = templates().get_template(f"{template}.html.j2").render({**shared, **values})
    return HTMLResponse(content, status, headers=HEADERS)


@cache
def templates() -> Environment:
    """Load the dashboard's templates, on top of those of the reports."""
    made = environment("grapheraser.service.dashboard")
    made.filters |= FILTERS
    return made


class PageRoute(APIRoute):
    """A route that answers a browser's errors by pages, and sends it to the sign-in page."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler, with its errors turned into pages for browsers."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(request)
            except (Problem, GraphEraserError, RequestValidationError) as error:
                if not reads_pages(request):
                    raise
                return await _failed(request, error)

        return answer


def page_router() -> APIRouter:
    """A router of pages."""
    return APIRouter(route_class=PageRoute)


def reads_pages(request: Request) -> bool:
    """Tell whether a browser asks."""
    return "text/html" in request.headers.get("accept", "")


async def _failed(request: Request, error: Exception) -> Response:
    if isinstance(error, Problem):
        problem = error
    elif isinstance(error, GraphEraserError):
        problem = problem_of(error)
    else:
        problem = Problem(404, "unknown-page", "there is no such page.")
    if problem.status == 401 and request.url.path != SIGN_IN:
        there = quote(request.url.path)
        return RedirectResponse(f"{SIGN_IN}?next={there}", 303, headers=HEADERS)
    parts: Parts = request.app.state.parts
    gate: Gate = request.app.state.gate
    key = None if problem.status == 503 else await gate.visitor(request)
    return page(request, key, parts, "problem", problem.status, problem=problem)
