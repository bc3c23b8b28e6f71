"""The table of callbacks: whom OpenDSR asks to tell about a request, and how far that has come."""

from __future__ import annotations

from sqlalchemy import Column, Float, ForeignKey, Integer, LargeBinary, String, Table

from grapheraser.service.database.tables import METADATA, NUMBER

CALLBACKS = Table(
    "callbacks",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("request", String(64), ForeignKey("requests.id"), nullable=False, index=True),
    Column("sealed", LargeBinary, nullable=False),  # the URL, and what the controller calls it
    Column("told", Integer, nullable=False, server_default="0"),  # of its statuses
    Column("attempts", Integer, nullable=False, server_default="0"),  # since the last that worked
    Column("next_at", Float, nullable=False),
    sqlite_autoincrement=True,
)
