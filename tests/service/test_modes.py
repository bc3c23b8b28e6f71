"""Nobody else on the machine can read runs, queues, keys or backups, whatever the umask."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.service.api.keys import Keys, Role
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue.requests import RequestContent
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from grapheraser.service.worker.backup import make_backup, restore
from grapheraser.store.keys import KeyFolder
from tests.service.conftest import new_model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


@pytest.fixture(params=[0o000, 0o022, 0o077], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """All that others could read or enter, but for the folder itself."""
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in folder.rglob("*")}
    return {
        str(path.relative_to(folder)): oct(mode)
        for path, mode in modes.items()
        if mode != (0o700 if path.is_dir() else 0o600)
    }


def test_everything_that_a_service_writes_is_private(
    umask: None, small: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("GRAPHERASER_KEYS", str(home / "keys"))
    run = home / "run"
    new_model(links=False).fit(small).save(run)
    service = Service.opened(run, Settings(window=0.0, worker="thread"))
    Keys(service.database).create("somebody", Role.READER)
    for node in small.train_nodes[:2]:
        service.queue.submit(RequestContent(nodes=(int(node),)))
        while service.worker.round():
            pass
    assert open_to_others(home) == {}
    make_backup(run, home / "backup")
    service.stop()
    restore(home / "backup", run, keys=KeyFolder(), replace=True)
    assert open_to_others(home) == {}


def test_a_queue_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    file = tmp_path / "queue.db"
    file.touch(0o644)
    file.chmod(0o644)
    Database.opened(sqlite_url(file)).dispose()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_what_is_written_for_others_follows_the_umask(tmp_path: Path) -> None:
    from grapheraser.store import write_text

    before = os.umask(0o022)
    try:
        write_text(tmp_path / "pages" / "receipt.html", "to print")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "pages" / "receipt.html").stat().st_mode) == 0o644
