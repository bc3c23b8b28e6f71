"""Links that sign somebody in once: a token that stands for an API key, for some minutes.

A link is made by the process that starts the service, for whoever started it. Its token is in the
fragment of a URL, which no browser sends, and is kept in memory alone.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

LASTING = 600.0  # seconds for which a link can be used


class Once:
    """Tokens that were not used yet.

    Args:
        clock: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, str]] = {}

    def issue(self, key: str) -> str:
        """A token that stands for the text of an API key."""
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._known[token] = (self._clock() + LASTING, key)
        return token

    def take(self, token: str) -> str | None:
        """The text of the key that a token stands for; the next time there is none."""
        with self._lock:
            until, key = self._known.pop(token, (0.0, ""))
        return key if self._clock() < until else None
