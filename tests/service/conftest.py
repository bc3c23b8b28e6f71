"""Databases for the tests of the service."""

from __future__ import annotations

from pathlib import Path

import pytest

from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue import Queue
from grapheraser.service.vault import Vault


@pytest.fixture
def vault() -> Vault:
    return Vault(bytes(range(32)))


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database.opened(sqlite_url(tmp_path / "queue.db"))


@pytest.fixture
def queue(database: Database, vault: Vault) -> Queue:
    return Queue(database, "run-1", vault)
