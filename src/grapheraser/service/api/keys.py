"""API keys, sessions of the dashboard and links that sign in once. Only hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict
from sqlalchemy import Row, delete, insert, select, update

from grapheraser.service.database import Database
from grapheraser.service.database.tables import API_KEYS, SESSIONS
from grapheraser.service.queue.queue import utc_now
from grapheraser.service.queue.requests import from_timestamp

# Seconds for which a key that was revoked elsewhere may still be accepted.
REMEMBERED = 5.0
_MAX_REMEMBERED = 1000
Value = TypeVar("Value")
_TOKEN = re.compile(r"ge_([0-9a-f]{12})_[\w-]{43}")


class Role(StrEnum):
    """The role of a key: what its owner may do."""

    REQUESTER = "requester"
    OPERATOR = "operator"
    AUDITOR = "auditor"
    READER = "reader"


class Key(BaseModel):
    """An API key, without its secret; ``id`` is the part of it that is no secret."""

    model_config = ConfigDict(frozen=True)

    id: str
    name: str
    role: Role
    created: datetime
    revoked: datetime | None = None


class Expiring(Generic[Value]):
    """Values by a text, each for so many seconds; ``clock`` is monotonic."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Value]] = {}

    def get(self, name: str) -> Value | None:
        """Return a value that was put here less than that ago."""
        return self._fresh(self._known.get(name))

    def take(self, name: str) -> Value | None:
        """Return it once; then None."""
        with self._lock:
            return self._fresh(self._known.pop(name, None))

    def put(self, name: str, value: Value) -> None:
        """Remember a value."""
        with self._lock:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known[name] = (self._clock() + self._seconds, value)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._known.clear()

    def _fresh(self, found: tuple[float, Value] | None) -> Value | None:
        return found[1] if found is not None and self._clock() < found[0] else None


class Keys:
    """The keys in a database; ``clock`` is monotonic."""

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self.database = database
        self.remembered = Expiring[Key](REMEMBERED, clock)  # by the hash of a key or session

    def create(self, name: str, role: Role) -> tuple[Key, str]:
        """Make a key; return it with its text, which is stored nowhere."""
        key = Key(id=secrets.token_hex(6), name=name, role=role, created=utc_now())
        text = f"ge_{key.id}_{secrets.token_urlsafe(32)}"
        values = {"id": key.id, "name": name, "role": role.value, "digest": digest_of(text)}
        self.database.change(insert(API_KEYS).values(made=key.created.timestamp(), **values))
        return key, text

    def find(self, text: str) -> Key | None:
        """Return the key with this text, if there is one that was not revoked."""
        digest = digest_of(text)
        found, form = self.remembered.get(digest), _TOKEN.fullmatch(text)
        if found is not None or form is None:
            return found
        row = next(iter(self.database.rows(select(API_KEYS).where(API_KEYS.c.id == form[1]))), None)
        if row is None or row.revoked is not None or not hmac.compare_digest(row.digest, digest):
            return None
        self.remembered.put(digest, key_of(row))
        return key_of(row)

    def list(self) -> list[Key]:
        """List all keys, revoked ones as well, oldest first."""
        query = select(API_KEYS).order_by(API_KEYS.c.made, API_KEYS.c.id)
        return [key_of(row) for row in self.database.rows(query)]

    def revoke(self, name: str) -> bool:
        """Revoke a key by its id, with its sessions; return False where there is none."""
        with self.database.writing() as connection:
            done = connection.execute(
                update(API_KEYS)
                .where(API_KEYS.c.id == name, API_KEYS.c.revoked.is_(None))
                .values(revoked=utc_now().timestamp())
            )
            connection.execute(delete(SESSIONS).where(SESSIONS.c.key == name))
        self.remembered.clear()
        return done.rowcount > 0

    def __bool__(self) -> bool:
        """Tell whether there is a key that was not revoked."""
        return any(key.revoked is None for key in self.list())


def digest_of(text: str) -> str:
    """Return the hash that is stored of a key or a session."""
    # Both have 256 random bits, so there is nothing to guess: one round of SHA-256 is enough.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def key_of(row: Row[Any]) -> Key:
    """Read a key from its row."""
    revoked = None if row.revoked is None else from_timestamp(row.revoked)
    created = from_timestamp(row.made)
    return Key(id=row.id, name=row.name, role=Role(row.role), created=created, revoked=revoked)


COOKIE = "grapheraser_session"


class Sessions:
    """Sessions in a database. They end after ``lasting``, and with the key they began with."""

    def __init__(
        self, keys: Keys, lasting: timedelta, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._keys, self.lasting, self._clock = keys, lasting, clock

    def begin(self, key: Key) -> str:
        """Begin a session; return its token, which is stored nowhere."""
        token, now = secrets.token_urlsafe(32), self._clock()
        values = {"digest": session_digest(token), "key": key.id}
        with self._keys.database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.until <= now.timestamp()))
            until = (now + self.lasting).timestamp()
            connection.execute(insert(SESSIONS).values(until=until, **values))
        return token

    def find(self, token: str) -> Key | None:
        """Return the key of a session that has not ended."""
        digest = session_digest(token)
        query = select(API_KEYS).join(SESSIONS, SESSIONS.c.key == API_KEYS.c.id)
        not_ended = (SESSIONS.c.digest == digest, SESSIONS.c.until > self._clock().timestamp())
        query = query.where(*not_ended, API_KEYS.c.revoked.is_(None))
        row = next(iter(self._keys.database.rows(query)), None)
        if row is None:
            return None
        self._keys.remembered.put(digest, key_of(row))
        return key_of(row)

    def end(self, token: str) -> None:
        """End a session."""
        ended = SESSIONS.c.digest == session_digest(token)
        self._keys.database.change(delete(SESSIONS).where(ended))
        self._keys.remembered.clear()


def session_digest(token: str) -> str:
    """Hash a session's token, never like an API key, so that neither passes for the other."""
    return digest_of(f"session:{token}")


def csrf_of(token: str) -> str:
    """Return the CSRF token of a session, which no page of another site has."""
    return hmac.digest(token.encode(errors="replace"), b"csrf", "sha256").hex()


LINK_SECONDS = 600.0  # for which a link can be used


class SignInLinks(Expiring[str]):
    """Links that sign somebody in once: a token that stands for an API key, for some minutes.

    A link is made by the process that starts the service, for whoever started it. Its token is in
    the fragment of a URL, which no browser sends, and is kept in memory alone.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(LINK_SECONDS, clock)

    def issue(self, key: str) -> str:
        """Make a token that stands for the text of an API key; `take` returns that once."""
        token = secrets.token_urlsafe(32)
        self.put(token, key)
        return token
