"""A service for a small run, and callers with every role."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import httpx
import pytest
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

import grapheraser as ge
from grapheraser.service.api.app import create_app
from grapheraser.service.api.keys import Role
from grapheraser.service.api.parts import Parts
from grapheraser.service.api.start import listening
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from tests.strategies import small_graph

_DESCRIBED: dict[str, Any] = {}


@dataclass
class Api:
    """A service whose worker works when it is told to, and keys for it."""

    service: Service
    parts: Parts
    app: FastAPI
    client: httpx.Client
    keys: dict[Role, str]

    def call(self, method: str, path: str, role: Role | None = Role.OPERATOR, **more: Any) -> Any:
        """The answer to a caller with this role."""
        headers = dict(more.pop("headers", {}))
        if role is not None:
            headers["Authorization"] = f"Bearer {self.keys[role]}"
        return self.client.request(method, path, headers=headers, **more)

    def submit(self, role: Role = Role.REQUESTER, key: str | None = None, **body: Any) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        return self.call("POST", "/api/v1/requests", role, json=body, headers=headers)

    def work(self) -> None:
        """Carry out all that waits."""
        while self.service.worker.round():
            pass


def described(**about: Any) -> dict[str, Any]:
    """Describe the routes, the same in all services, once: it takes longer than all else."""
    if not _DESCRIBED:
        _DESCRIBED.update(get_openapi(**about))
    return deepcopy(_DESCRIBED)


@contextmanager
def opened(run: Path, **settings: Any) -> Iterator[Api]:
    """A service that listens, with its worker at rest."""
    base = {"window": 0.0, "port": 0, "worker": "thread"}
    service = Service.opened(run, Settings(**{**base, **settings}))
    parts = Parts(service)
    keys = {role: parts.keys.create(role.value, role)[1] for role in Role}
    with patch("grapheraser.service.api.app.get_openapi", described):
        app = create_app(parts)
    with listening(app, service.settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield Api(service, parts, app, client, keys)
    service.stop()


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("service") / "people"
    ge.GraphEraser(num_shards=3, epochs=3).fit(small_graph()).save(path)
    return path


@pytest.fixture
def run(fitted: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(fitted, tmp_path / "people"))


@pytest.fixture
def api(run: Path) -> Iterator[Api]:
    with opened(run) as made:
        yield made


@pytest.fixture(scope="module")
def shared(fitted: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """One service for all tests of a module that change nothing, or don't mind."""
    folder = tmp_path_factory.mktemp("shared") / "people"
    with opened(Path(shutil.copytree(fitted, folder))) as made:
        yield made
