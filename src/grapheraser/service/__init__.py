"""The erasure service: a queue that loses nothing, a worker, and what the API serves."""

from __future__ import annotations

from importlib.util import find_spec

from grapheraser.errors import MissingExtraError

_NEEDED = ("sqlalchemy", "alembic", "fastapi", "uvicorn", "prometheus_client", "cryptography")


def needs_extra() -> None:
    """Raise an error with the command that installs what the service needs, unless it is there."""
    for package in _NEEDED:
        if find_spec(package) is None:
            raise MissingExtraError.of(package, "service", "the service")
