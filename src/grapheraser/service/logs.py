"""Log lines of the service, as text or JSON: ids of requests, never of people.

A line has a time, a level, a message and fields. What an exception says may be personal, so of one
that is logged only the type is written, and the lines of code that led to it.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from grapheraser.service.queue.requests import State
from grapheraser.untrusted import escaped

if TYPE_CHECKING:
    from grapheraser.service.settings import Settings

LEVELS = ("debug", "info", "warning", "error")
TEXT, JSON = "text", "json"
_REQUESTS = logging.getLogger("grapheraser.service.requests")
# The word and the level of each transition.
_TOLD: Mapping[State, tuple[str, int]] = {
    State.RECEIVED: ("waits again", logging.INFO),
    State.PLANNED: ("begun", logging.INFO),
    State.RETRAINING: ("retraining", logging.DEBUG),
    State.PUBLISHED: ("published", logging.DEBUG),
    State.ERASED: ("erased", logging.DEBUG),
    State.COMPLETED: ("completed", logging.INFO),
    State.FAILED: ("failed", logging.WARNING),
    State.CANCELLED: ("cancelled", logging.INFO),
}


def configure(settings: Settings) -> None:
    """Write the log of this process to stderr, as the settings say."""
    handler = logging.StreamHandler()
    handler.setFormatter(LineFormatter(as_json=settings.log_format == JSON))
    level = logging.getLevelName(settings.log_level.upper())
    logging.basicConfig(handlers=[handler], level=max(level, logging.WARNING), force=True)
    logging.getLogger("grapheraser").setLevel(level)
    logging.captureWarnings(True)


def log(logger: logging.Logger, level: int, message: str, **fields: Any) -> None:
    """Log a message with its fields; those that are None are left out."""
    told = {name: value for name, value in fields.items() if value is not None}
    logger.log(level, message, extra={"fields": told})


def log_transition(names: Sequence[str], state: State, *, is_new: bool, **fields: Any) -> None:
    """Log one line for each request that has come to a state."""
    word, level = ("accepted", logging.INFO) if is_new else _TOLD[state]
    if _REQUESTS.isEnabledFor(level):
        for name in names:
            log(_REQUESTS, level, f"request {word}", request=name, **fields)


class LineFormatter(logging.Formatter):
    """Formats a record as ``TIME LEVEL MESSAGE NAME=VALUE ...``, or as one JSON object."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        at, level = at.replace("+00:00", "Z"), record.levelname.lower()
        fields: dict[str, Any] = dict(getattr(record, "fields", {}))
        if record.exc_info and record.exc_info[0] is not None:
            fields["error"] = record.exc_info[0].__name__
            fields["at"] = "".join(traceback.format_tb(record.exc_info[2]))
        message = record.getMessage()
        if self._as_json:
            line = {"time": at, "level": level, "logger": record.name, "message": message}
            return json.dumps({**line, **fields}, default=str)
        said = "".join(f" {name}={_quoted(value)}" for name, value in fields.items())
        return f"{at} {level:<7} {escaped(message)}{said}"


def _quoted(value: object) -> str:
    """Write a value so that a line can be split at spaces."""
    text = str(value)
    return text if text and text.isprintable() and not set(text) & set(' "=') else json.dumps(text)
