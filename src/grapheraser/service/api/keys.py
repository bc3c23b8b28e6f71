"""API keys, of which only hashes are kept, and their roles."""

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
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from grapheraser.service.database import Database
from grapheraser.service.database.tables import API_KEYS, SESSIONS

# How long a key that was revoked elsewhere may still be taken, in seconds.
REMEMBERED = 5.0
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


class Remembered:
    """Keys that were read a moment ago, by the hash of what they were asked for with.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Key]] = {}

    def get(self, digest: str) -> Key | None:
        """A key that was put here less than `REMEMBERED` seconds ago."""
        until, found = self._known.get(digest, (0.0, None))
        return found if found is not None and self._clock() < until else None

    def put(self, digest: str, key: Key) -> None:
        """Remember a key."""
        with self._lock:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            self._known[digest] = (self._clock() + REMEMBERED, key)

    def clear(self) -> None:
        """Read all keys anew from now on."""
        with self._lock:
            self._known.clear()


class Keys:
    """The keys in a database.

    Args:
        database: of the service.
        clock: seconds that never go back.

    Attributes:
        database: of the service.
        remembered: keys that were read a moment ago, by API key and by session.
    """

    def __init__(self, database: Database, clock: Callable[[], float] = time.monotonic) -> None:
        self.database = database
        self.remembered = Remembered(clock)

    def create(self, name: str, role: Role) -> tuple[Key, str]:
        """A new key, and the text of it, which is kept nowhere."""
        key = Key(secrets.token_hex(6), name, role, datetime.now(UTC))
        text = f"ge_{key.id}_{secrets.token_urlsafe(32)}"
        values = {"id": key.id, "name": name, "role": role.value, "digest": digest_of(text)}
        with self.database.writing() as connection:
            connection.execute(insert(API_KEYS).values(made=key.created.timestamp(), **values))
        return key, text

    def find(self, text: str) -> Key | None:
        """The key with this text, if there is one that was not revoked."""
        digest = digest_of(text)
        found = self.remembered.get(digest)
        if found is None:
            found = self._read(text, digest)
            if found is not None:
                self.remembered.put(digest, found)
        return found

    def list(self) -> list[Key]:
        """All keys, those that were revoked as well, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(select(API_KEYS).order_by(API_KEYS.c.made, API_KEYS.c.id))
            return [key_of(row) for row in rows]

    def revoke(self, name: str) -> bool:
        """Take a key away with its sessions, by its id; says whether there was one."""
        with self.database.writing() as connection:
            done = connection.execute(
                update(API_KEYS)
                .where(API_KEYS.c.id == name, API_KEYS.c.revoked.is_(None))
                .values(revoked=datetime.now(UTC).timestamp())
            )
            connection.execute(delete(SESSIONS).where(SESSIONS.c.key == name))
        self.remembered.clear()
        return done.rowcount > 0

    def __bool__(self) -> bool:
        """Whether there is a key that was not revoked."""
        return any(key.revoked is None for key in self.list())

    def _read(self, text: str, digest: str) -> Key | None:
        form = _TOKEN.fullmatch(text)
        if form is None:
            return None
        with self.database.reading() as connection:
            row = connection.execute(select(API_KEYS).where(API_KEYS.c.id == form[1])).first()
        if row is None or not hmac.compare_digest(row.digest, digest):
            return None
        return key_of(row) if row.revoked is None else None


def digest_of(text: str) -> str:
    """What is kept of a key or a session."""
    # Both have 256 random bits, so there is nothing to guess: one round of SHA-256 is enough.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def key_of(row: Row[Any]) -> Key:
    """A key from its row."""
    revoked = None if row.revoked is None else datetime.fromtimestamp(row.revoked, UTC)
    made = datetime.fromtimestamp(row.made, UTC)
    return Key(row.id, row.name, Role(row.role), made, revoked)
