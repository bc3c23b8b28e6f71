"""Sessions of people who signed in to the dashboard, of which only hashes are kept."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from datetime import datetime, timedelta

from sqlalchemy import delete, insert, select

from grapheraser.service.api.keys import Key, Keys, digest_of, key_of
from grapheraser.service.database.tables import API_KEYS, SESSIONS
from grapheraser.service.queue import utc_now

COOKIE = "grapheraser_session"


class Sessions:
    """The sessions in a database. They end by themselves, and with the key they were begun with.

    Args:
        keys: of the same database.
        lasting: how long a session lasts.
        clock: says what time it is.
    """

    def __init__(
        self, keys: Keys, lasting: timedelta, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._keys, self.lasting, self._clock = keys, lasting, clock

    def begin(self, key: Key) -> str:
        """A new session of a key's owner: its token, which is kept nowhere."""
        token, now = secrets.token_urlsafe(32), self._clock()
        values = {"digest": session_digest(token), "key": key.id}
        with self._keys.database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.until <= now.timestamp()))
            until = (now + self.lasting).timestamp()
            connection.execute(insert(SESSIONS).values(until=until, **values))
        return token

    def find(self, token: str) -> Key | None:
        """The key of whoever has a session that goes on."""
        digest = session_digest(token)
        query = select(API_KEYS).join(SESSIONS, SESSIONS.c.key == API_KEYS.c.id)
        goes_on = (SESSIONS.c.digest == digest, SESSIONS.c.until > self._clock().timestamp())
        with self._keys.database.reading() as connection:
            row = connection.execute(query.where(*goes_on, API_KEYS.c.revoked.is_(None))).first()
        if row is None:
            return None
        self._keys.remembered.put(digest, key_of(row))
        return key_of(row)

    def end(self, token: str) -> None:
        """End a session."""
        with self._keys.database.writing() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == session_digest(token)))
        self._keys.remembered.clear()


def session_digest(token: str) -> str:
    """What is kept of a session; never that of an API key, so that neither passes for the other."""
    return digest_of(f"session:{token}")


def csrf_of(token: str) -> str:
    """What pages of a session send along with whatever changes something; no other page has it."""
    return hmac.digest(token.encode(errors="replace"), b"csrf", "sha256").hex()
