"""Databases of both kinds, runs of both kinds, and services for the tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.vault import Vault
from grapheraser.service.running import Service
from grapheraser.service.served.serving import Model
from grapheraser.service.settings import Settings
from grapheraser.store.keys import KeyFolder
from tests.service import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[postgres.Server]:
    with postgres.running() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A new database of each kind."""
    if request.param == "sqlite":
        return sqlite_url(tmp_path / "queue.db")
    server: postgres.Server = request.getfixturevalue("server")
    return server.new_database()


@pytest.fixture
def vault() -> Vault:
    return Vault(bytes(range(32)))


@pytest.fixture
def database(url: str) -> Iterator[Database]:
    database = Database.opened(url)
    yield database
    database.dispose()


@pytest.fixture
def queue(database: Database, vault: Vault) -> Queue:
    return Queue(database, "run-1", vault)


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, small: ge.Graph, keys: Path) -> Path:
    """Saved runs of both kinds, to be copied."""
    del keys
    folder = tmp_path_factory.mktemp("fitted")
    new_model(links=False).fit(small).save(folder / "nodes")
    new_model(links=True).fit(small).save(folder / "links")
    return folder


def new_model(*, links: bool) -> Model:
    """What the runs of these tests are fitted with."""
    return ge.LinkEraser() if links else ge.GraphEraser(num_shards=3, epochs=2)


@pytest.fixture
def nodes_run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted / "nodes", tmp_path / "run"))


@pytest.fixture(params=["nodes", "links"])
def any_run(request: pytest.FixtureRequest, fitted: Path, tmp_path: Path) -> Path:
    """A run of each kind."""
    return Path(shutil.copytree(fitted / request.param, tmp_path / "run"))


Opened = Callable[..., Service]


@pytest.fixture
def opened(tmp_path: Path, url: str) -> Iterator[Opened]:
    """Opens services; none waits for more requests unless it is told to."""
    made: list[Service] = []

    def open_service(run: Path, **options: Any) -> Service:
        base = {"database": url, "window": 0.0, "retry_seconds": 0.001, "worker": "thread"}
        settings = {**base, **options}
        reached = settings.pop("reached", lambda step: None)
        keys = KeyFolder(tmp_path / "keys")
        service = Service.opened(run, Settings(**settings), keys=keys, reached=reached)
        made.append(service)
        return service

    yield open_service
    for service in made:
        service.worker.stop(30)
        service.database.dispose()
