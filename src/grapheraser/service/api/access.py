"""Access control: every request passes a gate, by API key or by session, at a limited rate."""

from __future__ import annotations

import hmac
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from grapheraser.service.api.keys import (
    COOKIE,
    Key,
    Keys,
    Role,
    Sessions,
    csrf_of,
    digest_of,
    session_digest,
)
from grapheraser.service.api.problems import Problem, responses

# Callers with a bucket; the one that was quiet for longest is dropped first.
_MAX_CALLERS = 10_000


@dataclass(frozen=True)
class Rate:
    """Requests per second, and how many may come at once."""

    per_second: float
    burst: int


class Buckets:
    """A token bucket for every caller; ``clock`` is monotonic."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._lock = threading.Lock()
        self._filled: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Take one token, or raise a `Problem` that says when there will be one."""
        with self._lock:
            now = self._clock()
            tokens, since = self._filled.pop(caller, (float(self._rate.burst), now))
            tokens = min(self._rate.burst, tokens + (now - since) * self._rate.per_second)
            enough = tokens >= 1
            self._filled[caller] = (tokens - 1 if enough else tokens, now)
            while len(self._filled) > _MAX_CALLERS:
                self._filled.popitem(last=False)
        if not enough:
            wait = math.ceil((1 - tokens) / self._rate.per_second)
            raise Problem(
                429,
                "too-many-requests",
                f"at most {self._rate.per_second:g} requests per second are answered.",
                headers={"Retry-After": str(wait)},
            )


# Wrong keys or sessions from one address, before it has to wait.
WRONG_KEYS = Rate(1.0, 20)
# Of each key, unless the settings say otherwise.
ROLE_RATES = {
    Role.REQUESTER: Rate(20.0, 200),
    Role.AUDITOR: Rate(20.0, 200),
    Role.OPERATOR: Rate(200.0, 2000),
    Role.READER: Rate(1000.0, 10_000),
}
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORM = "application/x-www-form-urlencoded"


class Gate:
    """Lets requests through whose key has the right role, at ``rate`` (None: that of its role)."""

    def __init__(self, keys: Keys, sessions: Sessions, rate: Rate | None) -> None:
        self.keys, self.sessions = keys, sessions
        self._buckets = {role: Buckets(rate or usual) for role, usual in ROLE_RATES.items()}
        self._wrong = Buckets(WRONG_KEYS)

    async def enter(self, request: Request, text: str | None, roles: frozenset[Role]) -> Key:
        """Return the key of a caller that has one of these roles, or raise a `Problem`.

        ``text`` is the API key that the request carries; None: it may carry a session.
        """
        key = await (self._by_session(request) if text is None else self._by_key(request, text))
        if key is None:
            hint = "send the header 'Authorization: Bearer KEY'."
            raise _no_valid_key("the request has no valid API key.", hint)
        self._buckets[key.role].take(key.id)
        if key.role not in roles:
            allowed = ", ".join(sorted(roles))
            raise Problem(403, "role-not-allowed", f"this route is for the roles {allowed}.")
        return key

    async def sign_in(self, request: Request, text: str) -> str:
        """Begin a session with an API key; return its token, or raise a `Problem`."""
        key = await self._by_key(request, text)
        if key is None:
            hint = "copy all of it: it begins with ge_. It may also have been revoked."
            raise _no_valid_key("this key is not valid.", hint)
        _check_origin(request)
        return await run_in_threadpool(self.sessions.begin, key)

    async def holds(self, request: Request, text: str | None = None) -> bool:
        """Tell whether the API key of a request, or else its session, is still valid."""
        if text is not None:
            return await run_in_threadpool(self.keys.find, text) is not None
        return await self._known_visitor(request) is not None

    async def _by_key(self, request: Request, text: str) -> Key | None:
        known = self.keys.remembered.get(digest_of(text))
        key = known or await run_in_threadpool(self.keys.find, text)
        if key is None:
            self._count_wrong(request)
        return key

    def _count_wrong(self, request: Request) -> None:
        self._wrong.take(request.client.host if request.client else "unknown")

    async def _known_visitor(self, request: Request) -> Key | None:
        """Return the key of a session; one that there is not counts as a wrong key."""
        key = await self.visitor(request)
        if key is None and COOKIE in request.cookies:
            self._count_wrong(request)
        return key

    async def _by_session(self, request: Request) -> Key | None:
        key = await self._known_visitor(request)
        if key is not None and request.method not in _SAFE:
            await _check_intent(request)
        return key

    async def visitor(self, request: Request) -> Key | None:
        """Return the key of a session, for pages that change nothing.

        Whoever sends credentials, of whatever kind, is not judged by the cookie.
        """
        token = request.cookies.get(COOKIE)
        if token is None or "authorization" in request.headers:
            return None
        known = self.keys.remembered.get(session_digest(token))
        return known or await run_in_threadpool(self.sessions.find, token)


def _no_valid_key(detail: str, hint: str) -> Problem:
    headers = {"WWW-Authenticate": "Bearer"}
    return Problem(401, "no-valid-key", detail, hint=hint, headers=headers)


async def _check_intent(request: Request) -> None:
    """Refuse what a page of another site may have sent with the visitor's cookie."""
    _check_origin(request)
    given = request.headers.get(CSRF_HEADER)
    if given is None and request.headers.get("content-type", "").startswith(_FORM):
        fields = parse_qs((await request.body()).decode(errors="replace"))
        given = fields.get(CSRF_FIELD, [""])[0]
    wanted = csrf_of(request.cookies[COOKIE])
    if not hmac.compare_digest(wanted.encode(), (given or "").encode(errors="replace")):
        raise Problem(
            403,
            "no-csrf-token",
            f"a session changes something only with the header {CSRF_HEADER}.",
            hint="reload the page.",
        )


def _check_origin(request: Request) -> None:
    origin = urlsplit(request.headers.get("origin", "")).netloc
    if not origin or origin != request.headers.get("host"):
        raise Problem(
            403,
            "other-origin",
            "this was not sent by a page of the service itself.",
            hint="a proxy before the service has to pass the header Host on.",
        )


_bearer = HTTPBearer(auto_error=False, description="An API key of the service.")
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


class Only:
    """A dependency of a route: lets these roles in, and returns the caller's key."""

    def __init__(self, *roles: Role) -> None:
        self.roles = frozenset(roles)

    async def __call__(self, request: Request, given: Bearer) -> Key:
        """Return the caller's key."""
        gate: Gate = request.app.state.gate
        return await gate.enter(request, given.credentials if given else None, self.roles)


REQUESTERS = Only(Role.REQUESTER, Role.OPERATOR)
WATCHERS = Only(Role.REQUESTER, Role.OPERATOR, Role.AUDITOR)
OPERATORS = Only(Role.OPERATOR)
AUDITORS = Only(Role.AUDITOR, Role.OPERATOR)
READERS = Only(Role.READER, Role.OPERATOR)
ANYONE = Only(*Role)
# For routes that need the caller's key itself; others name the roles in `route`.
Requester = Annotated[Key, Depends(REQUESTERS)]
Watcher = Annotated[Key, Depends(WATCHERS)]
Operator = Annotated[Key, Depends(OPERATORS)]


def route(
    summary: str, roles: Only | None = None, *statuses: int, ok: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Describe a route that needs a key, for its decorator and the schema.

    ``roles`` is None where a parameter of the route says who may use it; ``statuses`` are those of
    problems beside those of every route with a key; ``ok`` describes an answer that is no JSON.
    """
    known = responses(*sorted({401, 403, 429, 503, *statuses}))
    dependencies = [] if roles is None else [Depends(roles)]
    described = known if ok is None else {200: ok, **known}
    return {"summary": summary, "dependencies": dependencies, "responses": described}
