"""Who may do what: API keys, of which only hashes are kept, and their roles."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Row, insert, select, update

from grapheraser.service.api.limits import Buckets, Rate
from grapheraser.service.api.problems import Problem
from grapheraser.service.database import Database
from grapheraser.service.database.tables import API_KEYS

# How long a key that was revoked elsewhere may still be taken, in seconds.
REMEMBERED = 5.0
# Wrong keys from one address, before it has to wait.
WRONG_KEYS = Rate(1.0, 20)
_MOST_REMEMBERED = 1000
_TOKEN = re.compile(r"ge_([0-9a-f]{12})_[\w-]{43}")


class Role(StrEnum):
    """What the owner of a key may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    READER = "reader"


@dataclass(frozen=True)
class Key:
    """An API key, without its secret.

    Attributes:
        id: the part of it that is no secret.
        name: whose it is.
        role: what it allows.
        created: when.
        revoked: when, if it was.
    """

    id: str
    name: str
    role: Role
    created: datetime
    revoked: datetime | None = None


class Keys:
    """The keys in a database.

    Args:
        database: of the service.
        clock: seconds that never go back.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Key]] = {}

    def create(self, name: str, role: Role) -> tuple[Key, str]:
        """A new key, and the text of it, which is kept nowhere."""
        key = Key(secrets.token_hex(6), name, role, datetime.now(UTC))
        text = f"ge_{key.id}_{secrets.token_urlsafe(32)}"
        values = {"id": key.id, "name": name, "role": role.value, "digest": _digest(text)}
        with self._database.writing() as connection:
            connection.execute(insert(API_KEYS).values(made=key.created.timestamp(), **values))
        return key, text

    def find(self, text: str) -> Key | None:
        """The key with this text, if there is one that was not revoked."""
        digest = _digest(text)
        found = self.remembered(digest)
        if found is None:
            found = self._read(text, digest)
            if found is not None:
                with self._lock:
                    if len(self._known) >= _MOST_REMEMBERED:
                        self._known.clear()
                    self._known[digest] = (self._clock() + REMEMBERED, found)
        return found

    def remembered(self, digest: str) -> Key | None:
        """A key that was read a moment ago, by its hash."""
        until, found = self._known.get(digest, (0.0, None))
        return found if found is not None and self._clock() < until else None

    def list(self) -> list[Key]:
        """All keys, those that were revoked as well, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(select(API_KEYS).order_by(API_KEYS.c.made, API_KEYS.c.id))
            return [_key(row) for row in rows]

    def revoke(self, name: str) -> bool:
        """Take a key away, by its id; says whether there was one."""
        with self._database.writing() as connection:
            done = connection.execute(
                update(API_KEYS)
                .where(API_KEYS.c.id == name, API_KEYS.c.revoked.is_(None))
                .values(revoked=datetime.now(UTC).timestamp())
            )
        with self._lock:
            self._known.clear()
        return done.rowcount > 0

    def __bool__(self) -> bool:
        """Whether there is a key that was not revoked."""
        return any(key.revoked is None for key in self.list())

    def _read(self, text: str, digest: str) -> Key | None:
        form = _TOKEN.fullmatch(text)
        if form is None:
            return None
        with self._database.reading() as connection:
            row = connection.execute(select(API_KEYS).where(API_KEYS.c.id == form[1])).first()
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        return _key(row) if row.revoked is None else None


class Gate:
    """Lets a request through whose key has the right role, as often as is allowed.

    Args:
        keys: that are valid.
        rate: of each of them; None: as often as they like.
    """

    def __init__(self, keys: Keys, rate: Rate | None) -> None:
        self.keys = keys
        self._buckets = None if rate is None else Buckets(rate)
        self._wrong = Buckets(WRONG_KEYS)

    async def enter(self, text: str | None, address: str, roles: frozenset[Role]) -> Key:
        """The key of a caller, or a `Problem`."""
        key = None
        if text is not None:
            digest = _digest(text)
            key = self.keys.remembered(digest) or await run_in_threadpool(self.keys.find, text)
        if key is None:
            if text is not None:
                self._wrong.take(address)
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


_bearer = HTTPBearer(auto_error=False, description="An API key of the service.")


class Only:
    """A dependency of a route: lets these roles in, and gives the caller's key."""

    def __init__(self, *roles: Role) -> None:
        self.roles = frozenset(roles)

    async def __call__(
        self,
        request: Request,
        given: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Key:
        """The caller's key."""
        gate: Gate = request.app.state.gate
        address = request.client.host if request.client else "unknown"
        return await gate.enter(given.credentials if given else None, address, self.roles)


Requester = Annotated[Key, Depends(Only(Role.REQUESTER, Role.OPERATOR))]
Watcher = Annotated[Key, Depends(Only(Role.REQUESTER, Role.OPERATOR, Role.AUDITOR))]
Operator = Annotated[Key, Depends(Only(Role.OPERATOR))]
Auditor = Annotated[Key, Depends(Only(Role.AUDITOR, Role.OPERATOR))]
Reader = Annotated[Key, Depends(Only(Role.READER, Role.OPERATOR))]
Anyone = Annotated[Key, Depends(Only(*Role))]


def _digest(text: str) -> str:
    # A key has 256 random bits, so there is nothing to guess: one round of SHA-256 is enough.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _key(row: Row[Any]) -> Key:
    revoked = None if row.revoked is None else datetime.fromtimestamp(row.revoked, UTC)
    made = datetime.fromtimestamp(row.made, UTC)
    return Key(row.id, row.name, Role(row.role), made, revoked)
