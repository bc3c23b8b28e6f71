"""Who may do what: the gate that every request passes, by API key or by session."""

from __future__ import annotations

import hmac
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from grapheraser.service.api.keys import REMEMBERED, Key, Keys, Role, digest_of
from grapheraser.service.api.limits import Buckets, Rate
from grapheraser.service.api.problems import Problem
from grapheraser.service.api.sessions import COOKIE, Sessions, csrf_of, session_digest

__all__ = [
    "REMEMBERED",
    "Anyone",
    "Auditor",
    "Bearer",
    "Gate",
    "Key",
    "Keys",
    "Only",
    "Operator",
    "Reader",
    "Requester",
    "Role",
    "Watcher",
]

# Wrong keys from one address, before it has to wait.
WRONG_KEYS = Rate(1.0, 20)
CSRF_HEADER, CSRF_FIELD = "X-CSRF-Token", "csrf"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_FORM = "application/x-www-form-urlencoded"


class Gate:
    """Lets a request through whose key has the right role, as often as is allowed.

    Args:
        keys: that are valid.
        sessions: of people who signed in with one of them.
        rate: of each key; None: as often as they like.
    """

    def __init__(self, keys: Keys, sessions: Sessions, rate: Rate | None) -> None:
        self.keys, self.sessions = keys, sessions
        self._buckets = None if rate is None else Buckets(rate)
        self._wrong = Buckets(WRONG_KEYS)

    async def enter(self, request: Request, text: str | None, roles: frozenset[Role]) -> Key:
        """The key of a caller, or a `Problem`.

        Args:
            request: what is asked.
            text: the API key that it carries; None: it may carry a session.
            roles: that may ask it.
        """
        key = await (self._by_session(request) if text is None else self._by_key(request, text))
        if key is None:
            raise Problem(
                401,
                "no-valid-key",
                "the request has no valid API key.",
                hint="send the header 'Authorization: Bearer KEY'.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if self._buckets is not None:
            self._buckets.take(key.id)
        if key.role not in roles:
            allowed = ", ".join(sorted(roles))
            raise Problem(403, "role-not-allowed", f"this route is for the roles {allowed}.")
        return key

    async def sign_in(self, request: Request, text: str) -> str:
        """The token of a new session, for whoever has an API key; or a `Problem`."""
        key = await self._by_key(request, text)
        if key is None:
            raise Problem(
                401,
                "no-valid-key",
                "this key is not valid.",
                hint="copy all of it: it begins with ge_. It may also have been revoked.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        _check_origin(request)
        return await run_in_threadpool(self.sessions.begin, key)

    async def holds(self, request: Request, text: str | None = None) -> bool:
        """Whether the API key of a request, or without one its session, is valid still."""
        if text is not None:
            return await run_in_threadpool(self.keys.find, text) is not None
        return await self.visitor(request) is not None

    async def _by_key(self, request: Request, text: str) -> Key | None:
        known = self.keys.remembered.get(digest_of(text))
        key = known or await run_in_threadpool(self.keys.find, text)
        if key is None:
            self._wrong.take(request.client.host if request.client else "unknown")
        return key

    async def _by_session(self, request: Request) -> Key | None:
        key = await self.visitor(request)
        if key is not None and request.method not in _SAFE:
            await _check_intent(request)
        return key

    async def visitor(self, request: Request) -> Key | None:
        """The key of whoever has a session, for pages that change nothing."""
        token = request.cookies.get(COOKIE)
        if token is None:
            return None
        known = self.keys.remembered.get(session_digest(token))
        return known or await run_in_threadpool(self.sessions.find, token)


async def _check_intent(request: Request) -> None:
    """Refuse what a page of somebody else may have sent with the visitor's cookie."""
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
    """A dependency of a route: lets these roles in, and gives the caller's key."""

    def __init__(self, *roles: Role) -> None:
        self.roles = frozenset(roles)

    async def __call__(self, request: Request, given: Bearer) -> Key:
        """The caller's key."""
        gate: Gate = request.app.state.gate
        return await gate.enter(request, given.credentials if given else None, self.roles)


Requester = Annotated[Key, Depends(Only(Role.REQUESTER, Role.OPERATOR))]
Watcher = Annotated[Key, Depends(Only(Role.REQUESTER, Role.OPERATOR, Role.AUDITOR))]
Operator = Annotated[Key, Depends(Only(Role.OPERATOR))]
Auditor = Annotated[Key, Depends(Only(Role.AUDITOR, Role.OPERATOR))]
Reader = Annotated[Key, Depends(Only(Role.READER, Role.OPERATOR))]
Anyone = Annotated[Key, Depends(Only(*Role))]
