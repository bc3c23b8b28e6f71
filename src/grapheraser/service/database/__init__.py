"""The database of the service: SQLite beside the run, or PostgreSQL by URL."""

from grapheraser.service.database.engine import Database

__all__ = ["Database"]
