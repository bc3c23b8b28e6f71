"""Backups: a restore brings the run back, and nobody who was erased since."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

import grapheraser as ge
from grapheraser.errors import (
    CorruptRunError,
    RunExistsError,
    ServiceError,
    StorageFullError,
    StoreError,
)
from grapheraser.graph import Request as GraphRequest
from grapheraser.kinds import NODES, Item
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.database.tables import TOMBSTONES
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.queue.tombstones import Tombstones
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from grapheraser.service.worker.backup import make_backup, restore
from grapheraser.store import stray_files
from grapheraser.store.keys import KeyFolder
from tests.service import postgres
from tests.service.conftest import Opened, new_model
from tests.service.worker.test_worker import same_state, submit, work


@pytest.fixture
def secrets(tmp_path: Path) -> KeyFolder:
    return KeyFolder(tmp_path / "keys")


def test_a_restore_erases_once_more_what_was_erased_since(
    opened: Opened, any_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    a, b, c, d = map(int, small.train_nodes[:4])
    u, v = next(edge for edge in small.edges.tolist() if not {*edge} & {a, b, c, d})
    service = opened(any_run)
    before = submit(service, nodes=[a])
    work(service)
    make_backup(any_run, tmp_path / "backup", database=url)
    done = [submit(service, nodes=[b]), submit(service, edges=[[u, v]], features=[c])]
    work(service)
    service.queue.subjects.load([RequestContent(subject="dora", nodes=(d,))])
    pending = submit(service, subject="dora")
    shutil.rmtree(any_run)

    restored = restore(tmp_path / "backup", any_run, database=url, keys=secrets)
    assert restored.erased == 3
    links = service.served.task == "links"
    gone: list[GraphRequest] = [ge.Nodes([a, b]), ge.Edges([(u, v)]), ge.Features([c])]
    assert same_state(any_run, new_model(links=links).fit(small.without(gone)))
    assert stray_files(any_run) == []

    again = opened(any_run)
    assert again.queue.run == restored.run != restored.backup.run
    for request in (before, *done):
        assert again.queue.get(request.id).state is State.COMPLETED
        assert again.queue.collect(request.id)
    work(again)
    assert again.queue.get(pending.id).state is State.COMPLETED
    gone[0] = ge.Nodes([a, b, d])
    assert same_state(any_run, new_model(links=links).fit(small.without(gone)))
    assert again.served.now.model.verify().identical


def test_a_backup_from_before_a_restore_can_still_be_restored(
    opened: Opened, nodes_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    a, b = map(int, small.train_nodes[:2])
    service = opened(nodes_run)
    make_backup(nodes_run, tmp_path / "old", database=url)
    submit(service, nodes=[a])
    work(service)
    restore(tmp_path / "old", nodes_run, database=url, keys=secrets, replace=True)
    second = opened(nodes_run)
    submit(second, nodes=[b])
    work(second)
    assert (
        restore(tmp_path / "old", nodes_run, database=url, keys=secrets, replace=True).erased == 2
    )
    third = opened(nodes_run)
    assert not third.served.now.model.graph_.contains([a, b]).any()
    assert len(third.queue.list().requests) == 2


def test_an_interrupted_restore_is_noticed_and_repeated(
    opened: Opened, nodes_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    a, b = map(int, small.train_nodes[:2])
    service = opened(nodes_run)
    make_backup(nodes_run, tmp_path / "backup", database=url)
    submit(service, nodes=[a])
    work(service)
    pending = submit(service, nodes=[b])

    def crash(step: str) -> None:
        raise KeyboardInterrupt(step)

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            restore(
                tmp_path / "backup",
                nodes_run,
                database=url,
                keys=secrets,
                replace=True,
                reached=crash,
            )
        with pytest.raises(ServiceError, match="was replaced by one"):
            opened(nodes_run)
    restore(tmp_path / "backup", nodes_run, database=url, keys=secrets, replace=True)
    again = opened(nodes_run)
    work(again)
    assert again.queue.get(pending.id).state is State.COMPLETED
    assert not again.served.now.model.graph_.contains([a, b]).any()


def test_a_service_that_was_not_stopped_accepts_nothing_for_the_run_that_was_replaced(
    opened: Opened, nodes_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    a, b = map(int, small.train_nodes[:2])
    running = opened(nodes_run)
    make_backup(nodes_run, tmp_path / "backup", database=url)
    before = submit(running, nodes=[a])
    restore(tmp_path / "backup", nodes_run, database=url, keys=secrets, replace=True)
    with pytest.raises(ServiceError, match="was replaced by one"):
        submit(running, nodes=[b])
    assert not running.worker.round()
    again = opened(nodes_run)
    work(again)
    assert [r.id for r in again.queue.list().requests] == [before.id]
    assert again.queue.get(before.id).state is State.COMPLETED


def test_what_was_published_but_not_erased_is_carried_out_once_more(
    opened: Opened, nodes_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    node = int(small.train_nodes[0])

    def crash(step: str) -> None:
        if step == "published":
            raise KeyboardInterrupt(step)

    service = opened(nodes_run, reached=crash)
    make_backup(nodes_run, tmp_path / "backup", database=url)
    request = submit(service, nodes=[node])
    with pytest.raises(KeyboardInterrupt):
        service.worker.round()
    assert service.queue.get(request.id).state is State.PUBLISHED
    restore(tmp_path / "backup", nodes_run, database=url, keys=secrets, replace=True)
    again = opened(nodes_run)
    work(again)
    assert again.queue.get(request.id).state is State.COMPLETED
    assert not again.served.now.model.graph_.contains([node]).any()
    assert len(again.queue.collect(request.id)) == 1


def test_a_backup_that_is_too_old_is_refused(
    opened: Opened, nodes_run: Path, small: ge.Graph, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    service = opened(nodes_run)
    make_backup(nodes_run, tmp_path / "backup", database=url)
    submit(service, nodes=[int(small.train_nodes[0])])
    work(service)
    tombstones = Tombstones(service.queue, secrets)
    assert tombstones.destroy_old_keys(timedelta(days=90)) == []
    (name,) = (name for name in secrets.secret_names() if name.startswith("tombstones"))
    secrets.destroy_secret(name)
    with pytest.raises(ServiceError, match="was destroyed"):
        restore(tmp_path / "backup", nodes_run, database=url, keys=secrets, replace=True)
    assert service.served.refresh() is False


def test_keys_of_tombstones_live_as_long_as_backups(
    opened: Opened, nodes_run: Path, small: ge.Graph, secrets: KeyFolder
) -> None:
    service = opened(nodes_run)
    submit(service, nodes=[int(small.train_nodes[0])])
    work(service)
    now = service.queue.clock()
    tombstones = Tombstones(service.queue, secrets)
    service.queue.clock = lambda: now + timedelta(days=85)
    assert tombstones.destroy_old_keys(timedelta(days=90)) == []
    service.queue.clock = lambda: now - timedelta(days=1000)
    assert tombstones.destroy_old_keys(timedelta(days=90)) == []
    service.queue.clock = lambda: now + timedelta(days=125)
    assert len(tombstones.destroy_old_keys(timedelta(days=90))) == 1
    assert tombstones.unreadable(after=0)


def test_tombstones_name_nobody_without_the_key(
    opened: Opened, nodes_run: Path, small: ge.Graph, secrets: KeyFolder, tmp_path: Path
) -> None:
    node = int(small.train_nodes[0])
    service = opened(nodes_run)
    submit(service, nodes=[node])
    work(service)
    everybody = [Item(NODES, (n,)) for n in small.ids.tolist()]
    assert Tombstones(service.queue, secrets).among(everybody, after=0) == [Item(NODES, (node,))]
    assert Tombstones(service.queue, secrets).among(everybody, after=1) == []
    stranger = KeyFolder(tmp_path / "other")
    (name,) = (name for name in secrets.secret_names() if name.startswith("tombstones"))
    stranger.secret(name)
    assert Tombstones(service.queue, stranger).among(everybody, after=0) == []
    with service.database.reading() as connection:
        (row,) = connection.execute(sa.select(TOMBSTONES)).all()
    assert len(row.mark) == 64


def test_without_its_database_a_backup_is_restored_only_where_that_is_asked_for(
    nodes_run: Path, small: ge.Graph, tmp_path: Path, secrets: KeyFolder
) -> None:
    url = sqlite_url(tmp_path / "service" / "queue.db")
    (tmp_path / "service").mkdir()
    service = Service.opened(nodes_run, Settings(database=url, window=0.0), keys=secrets)
    pending = submit(service, nodes=[int(small.train_nodes[0])])
    backup = tmp_path / "backup"
    make_backup(nodes_run, backup, database=url)
    with pytest.raises(StoreError, match="not lost"):
        restore(backup, tmp_path / "new", database=url, keys=secrets, lost_database=True)
    service.database.dispose()
    shutil.rmtree(tmp_path / "service")
    with pytest.raises(ServiceError, match="only it knows"):
        restore(backup, tmp_path / "new", database=url, keys=secrets)
    restore(backup, tmp_path / "new", database=url, keys=secrets, lost_database=True)
    again = Service.opened(tmp_path / "new", Settings(database=url, window=0.0), keys=secrets)
    work(again)
    assert again.queue.get(pending.id).state is State.COMPLETED
    again.database.dispose()


class Lost:
    """A service whose machine is lost: run and database are gone, the backup and the keys stay."""

    def __init__(
        self, run: Path, folder: Path, keys: KeyFolder, another: Callable[[], str]
    ) -> None:
        self.run, self.folder, self.keys, self.another = run, folder, keys, another
        self.url = another()
        self.service = self.opened()

    def opened(self) -> Service:
        settings = Settings(database=self.url, window=0.0, worker="thread")
        return Service.opened(self.run, settings, keys=self.keys)

    def erase(self, *nodes: int) -> None:
        submit(self.service, nodes=list(nodes))
        work(self.service)

    def restore(self, backup: Path, *, lost: bool) -> int:
        self.service.database.dispose()
        if lost:
            self.url = self.another()
            shutil.rmtree(self.run)
        done = restore(
            backup,
            self.run,
            database=self.url,
            keys=self.keys,
            replace=True,
            lost_database=lost,
        )
        self.service = self.opened()
        return done.erased

    def holds(self, *nodes: int) -> list[bool]:
        return list(self.service.served.now.model.graph_.contains(list(nodes)))


@pytest.fixture(params=["sqlite", "postgresql"])
def lost(
    request: pytest.FixtureRequest, nodes_run: Path, tmp_path: Path, secrets: KeyFolder
) -> Iterator[Lost]:
    numbers = itertools.count()

    def another() -> str:
        if request.param == "sqlite":
            return sqlite_url(tmp_path / f"queue-{next(numbers)}.db")
        server: postgres.Server = request.getfixturevalue("server")
        return server.new_database()

    made = Lost(nodes_run, tmp_path, secrets, another)
    yield made
    made.service.database.dispose()


def test_nobody_comes_back_where_the_database_is_lost_with_the_run(
    lost: Lost, small: ge.Graph, tmp_path: Path
) -> None:
    a, b, c, d, e = map(int, small.train_nodes[:5])
    lost.erase(a)
    make_backup(lost.run, tmp_path / "backup", database=lost.url)
    lost.erase(b)
    assert lost.restore(tmp_path / "backup", lost=False) == 1
    lost.erase(c)  # of a run that was restored: the backup has never heard of it
    assert lost.restore(tmp_path / "backup", lost=True) == 2
    assert lost.holds(a, b, c, d) == [False, False, False, True]
    rest = small.without([ge.Nodes([a, b, c])])
    assert same_state(lost.run, new_model(links=False).fit(rest))
    lost.erase(d)
    assert lost.restore(tmp_path / "backup", lost=False) == 3
    assert lost.holds(a, b, c, d, e) == [False, False, False, False, True]
    assert lost.service.served.now.model.verify().identical


def test_who_was_added_again_before_the_backup_stays(
    lost: Lost, small: ge.Graph, tmp_path: Path
) -> None:
    node, other = map(int, small.train_nodes[:2])
    lost.erase(node)
    new = {"ids": [node], "x": [[0.0] * small.num_features], "y": [1], "edges": [[node, other]]}
    submit(lost.service, changes=[{"add_nodes": new}])
    work(lost.service)
    make_backup(lost.run, tmp_path / "backup", database=lost.url)
    assert lost.restore(tmp_path / "backup", lost=True) == 0
    assert lost.holds(node, other) == [True, True]


def test_requests_that_a_lost_queue_has_handed_on_are_carried_out(
    nodes_run: Path, small: ge.Graph, tmp_path: Path, secrets: KeyFolder
) -> None:
    a, b, c = map(int, small.train_nodes[:3])
    numbers = itertools.count()
    lost = Lost(
        nodes_run, tmp_path, secrets, lambda: sqlite_url(tmp_path / f"queue-{next(numbers)}.db")
    )
    pending = submit(lost.service, nodes=[a])
    make_backup(nodes_run, tmp_path / "backup", database=lost.url)
    lost.restore(tmp_path / "backup", lost=False)
    lost.erase(b)
    lost.restore(tmp_path / "backup", lost=True)
    work(lost.service)
    assert lost.service.queue.get(pending.id).state is State.COMPLETED
    assert lost.holds(a, b, c) == [False, False, True]
    lost.service.database.dispose()


def test_the_file_names_nobody_and_a_line_that_a_crash_cut_off_harms_nobody(
    lost: Lost, small: ge.Graph, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    a, b = map(int, small.train_nodes[:2])
    make_backup(lost.run, tmp_path / "backup", database=lost.url)
    lost.erase(a)
    (file,) = lost.keys.path.glob("tombstones-*.log")
    whole = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    found = json.loads(whole)
    assert set(found) == {"run", "restored", "size", "marks"}
    assert [len(mark) for mark in found["marks"]] == [64]
    file.write_text(whole + whole[: len(whole) // 2])
    lost.erase(b)
    assert len(file.read_text().splitlines()) == 3
    assert lost.restore(tmp_path / "backup", lost=True) == 2
    assert "was not finished" in caplog.text


def test_what_is_erased_while_tombstones_can_not_be_kept_waits(
    lost: Lost, small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageFullError("the disk is full.")

    request = submit(lost.service, nodes=[int(small.train_nodes[0])])
    with monkeypatch.context() as patch:
        patch.setattr(KeyFolder, "note", full)
        with pytest.raises(StorageFullError):
            lost.service.worker.round()
    assert lost.service.queue.get(request.id).state is State.PUBLISHED
    work(lost.service)
    assert lost.service.queue.get(request.id).state is State.COMPLETED


def test_without_the_keys_nothing_is_restored(lost: Lost, tmp_path: Path, small: ge.Graph) -> None:
    make_backup(lost.run, tmp_path / "backup", database=lost.url)
    lost.erase(int(small.train_nodes[0]))
    other = KeyFolder(tmp_path / "other")
    for known in (False, True):
        with pytest.raises(ServiceError, match="not the keys of the service"):
            restore(tmp_path / "backup", tmp_path / "new", keys=other, lost_database=known)


def test_a_destroyed_key_is_noticed_without_the_database_too(
    lost: Lost, tmp_path: Path, small: ge.Graph
) -> None:
    make_backup(lost.run, tmp_path / "backup", database=lost.url)
    lost.erase(int(small.train_nodes[0]))
    (name,) = (name for name in lost.keys.secret_names() if name.startswith("tombstones"))
    lost.keys.destroy_secret(name)
    with pytest.raises(ServiceError, match="was destroyed"):
        lost.restore(tmp_path / "backup", lost=True)


def test_a_queue_of_sqlite_does_not_go_into_another_database(
    nodes_run: Path, tmp_path: Path, secrets: KeyFolder, server: postgres.Server
) -> None:
    url = sqlite_url(tmp_path / "queue.db")
    Service.opened(nodes_run, Settings(database=url), keys=secrets).database.dispose()
    make_backup(nodes_run, tmp_path / "backup", database=url)
    with pytest.raises(ServiceError, match="SQLite's"):
        restore(
            tmp_path / "backup",
            tmp_path / "new",
            database=server.new_database(),
            keys=secrets,
            lost_database=True,
        )


def test_what_is_no_backup_or_would_be_overwritten_is_refused(
    opened: Opened, nodes_run: Path, url: str, tmp_path: Path, secrets: KeyFolder
) -> None:
    opened(nodes_run)
    backup = tmp_path / "backup"
    make_backup(nodes_run, backup, database=url)
    with pytest.raises(StoreError, match="already"):
        make_backup(nodes_run, backup, database=url)
    with pytest.raises(RunExistsError):
        restore(backup, nodes_run, database=url, keys=secrets)
    (backup / "backup.json").write_text('{"run": "other", "size": 0, "made": "", "queue": true}')
    with pytest.raises(CorruptRunError):
        restore(backup, tmp_path / "new", database=url, keys=secrets)
    (backup / "backup.json").write_text("{")
    with pytest.raises(CorruptRunError):
        restore(backup, tmp_path / "new", database=url, keys=secrets)
