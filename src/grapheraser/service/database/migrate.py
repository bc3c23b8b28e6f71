"""Migrations of the database: what Alembic needs to find and apply them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from alembic import command
from alembic.config import Config

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection


def upgrade(connection: Connection, revision: str = "head") -> None:
    """Apply what is missing, in the transaction of ``connection``."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, revision)
