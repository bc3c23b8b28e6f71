"""A full disk, a folder that can't be written, a lost connection, a clock set back."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.errors import DatabaseError, StoreError, TrainingError
from grapheraser.service.database import Database
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.queue.vault import Vault
from grapheraser.service.running import Service
from grapheraser.service.served.serving import Served
from grapheraser.service.settings import Settings
from grapheraser.service.worker.carrier import STEPS
from grapheraser.service.worker.worker import Worker
from grapheraser.store import load_receipts, stray_files
from grapheraser.store.keys import KeyFolder
from tests.service import crashing, postgres
from tests.service.conftest import Opened, new_model
from tests.service.worker.test_worker import WHOLE, same_state, states, submit, work


@contextmanager
def full_disk(size: int = 64) -> Iterator[None]:
    """No file can grow beyond a few bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def check(service: Service, run: Path, small: ge.Graph, gone: list[int]) -> None:
    """All is done, once, and exactly."""
    assert service.queue.counts()[State.COMPLETED] == len(gone)
    assert same_state(run, new_model(links=False).fit(small.without(ge.Nodes(gone))))
    assert stray_files(run) == []
    receipts, _ = load_receipts(run)
    assert sum(r.counts["nodes"] for r in receipts) == len(gone)


@pytest.mark.parametrize("step", ["retraining", "computed", "sealed", "saved", "published"])
def test_a_full_disk_is_waited_out(
    opened: Opened, nodes_run: Path, small: ge.Graph, step: str
) -> None:
    full, a, b = [False], *map(int, small.train_nodes[:2])

    def reached(done: str) -> None:
        if done == step and full[0]:
            limits.enter_context(full_disk())

    service = opened(nodes_run, reached=reached, retry_most_seconds=0.001)
    made = [submit(service, nodes=[a]), submit(service, nodes=[b])]
    full[0] = True
    with ExitStack() as limits, suppress(StoreError, DatabaseError):
        service.worker.round()
    full[0] = False
    assert load_receipts(nodes_run)[1].receipts == (step in STEPS[STEPS.index("saved") :])
    ge.GraphEraser.load(nodes_run)
    time.sleep(0.005)
    work(service)
    time.sleep(0.005)
    work(service)
    check(service, nodes_run, small, [a, b])
    assert all(states(service, r)[-3:] == WHOLE[-3:] for r in made)


def test_a_request_is_refused_where_it_can_not_be_kept(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run)
    if not service.database.is_sqlite:
        pytest.skip("the server writes, and knows no limit")
    node = int(small.train_nodes[0])
    with full_disk(), pytest.raises(DatabaseError):
        service.queue.submit(RequestContent(nodes=(node,)), key="k")
    assert service.queue.list().requests == ()
    assert service.queue.submit(RequestContent(nodes=(node,)), key="k").is_new
    work(service)
    check(service, nodes_run, small, [node])


@pytest.mark.skipif(os.name != "posix", reason="changes the rights of a folder")
@pytest.mark.parametrize("folders", [["."], ["pages"], ["shards"]])
def test_a_folder_that_can_not_be_written_is_waited_out(
    fitted: Path, small: ge.Graph, folders: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        run = Path(shutil.copytree(fitted / "nodes", home / "run"))
        keys, url = KeyFolder(home / "keys"), f"sqlite:///{home / 'queue.db'}"
        service = Service.opened(run, Settings(database=url, window=0.0), keys=keys)
        a, b = map(int, small.train_nodes[:2])
        made = [submit(service, nodes=[a]), submit(service, nodes=[b])]
        service.database.dispose()
        rights = {run / name: (run / name).stat().st_mode for name in folders}
        for folder in rights:
            folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
        _give_away(home)
        process = crashing.start(run, url, home / "keys", as_nobody=True)
        process.join(60)
        assert process.exitcode == 1
        assert load_receipts(run)[1].receipts == 0
        assert {service.queue.get(r.id).state for r in made} <= {State.RECEIVED, State.FAILED}
        for folder, mode in rights.items():
            folder.chmod(mode)
        time.sleep(0.02)
        work(service)
        check(service, run, small, [a, b])
        service.database.dispose()


def _give_away(home: Path) -> None:
    """Root may write anywhere, so the worker runs as somebody else, who owns all of it."""
    if os.getuid() == 0:
        for path in (home, *home.rglob("*")):
            os.chown(path, crashing.NOBODY, crashing.NOBODY)


def test_a_lost_connection_loses_nothing(
    server: postgres.Server, nodes_run: Path, small: ge.Graph, tmp_path: Path
) -> None:
    url = server.new_database()
    options = {"window": 0.0, "batch": 2, "poll_seconds": 0.02, "retry_seconds": 0.05}
    settings = Settings(database=url, retry_most_seconds=0.2, **options)  # type: ignore[arg-type]
    service = Service.opened(nodes_run, settings, keys=KeyFolder(tmp_path / "keys"))
    nodes = list(map(int, small.train_nodes[:12]))
    service.start()
    lost = 0
    for number, node in enumerate(nodes):
        if number % 4 == 2:
            server.stop()
            with pytest.raises(DatabaseError):
                service.queue.submit(RequestContent(nodes=(node,)), key=str(node))
            server.start()
        for _ in range(50):  # whoever was told of an error asks again, with the same key
            try:
                service.queue.submit(RequestContent(nodes=(node,)), key=str(node))
                break
            except DatabaseError:
                lost += 1
                time.sleep(0.1)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            if service.queue.counts()[State.COMPLETED] == len(nodes):
                break
        except DatabaseError:
            lost += 1
        time.sleep(0.05)
    service.stop()
    check(service, nodes_run, small, nodes)
    service.database.dispose()


class Clock:
    """A clock that can be set."""

    def __init__(self) -> None:
        self.now = datetime(2030, 6, 15, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(milliseconds=1)
        return self.now


@pytest.mark.parametrize("publish_at", ["", "03:00"])
def test_a_clock_set_back_changes_nothing_but_what_is_shown(
    database: Database,
    vault: Vault,
    nodes_run: Path,
    small: ge.Graph,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    publish_at: str,
) -> None:
    clock, served = Clock(), Served(nodes_run)
    queue = Queue(database, served.run, vault, clock=clock)
    keys = KeyFolder(tmp_path / "keys")
    ticks = [0.0]
    settings = Settings(window=10.0, retry_seconds=60.0, publish_at=publish_at)
    worker = Worker(queue, served, settings, keys, monotonic=lambda: ticks[0])
    a, b = map(int, small.train_nodes[:2])
    first = queue.submit(RequestContent(nodes=(a,))).request
    assert not worker.round()  # the window begins
    clock.now -= timedelta(days=400)
    second = queue.submit(RequestContent(nodes=(b,))).request
    assert second.received < first.received
    assert [r.id for r in queue.list().requests] == [second.id, first.id]

    def found() -> set[State]:
        return {queue.get(r.id).state for r in (first, second)}

    def pass_time(seconds: float) -> None:
        """A day by the clock of people, so that it is past three o'clock once more."""
        worker.round()
        ticks[0] += seconds
        clock.now += timedelta(hours=23)
        worker.round()

    with monkeypatch.context() as patch:
        patch.setattr(ge.GraphEraser, "unlearn", _failing)
        pass_time(11)
    assert found() == {State.FAILED}
    clock.now -= timedelta(days=400)
    pass_time(59)
    assert found() == {State.FAILED}  # they rest a minute, whatever the clock says
    pass_time(2)
    pass_time(11)  # the window
    assert found() == {State.COMPLETED}
    assert len({queue.get(r.id).deadline for r in (first, second)}) == 2
    numbers = [event.number for event in queue.events_after(0)]
    assert numbers == sorted(numbers)
    worker.clean_up()
    assert sum(len(queue.collect(r.id)) for r in (first, second)) == 2
    assert same_state(nodes_run, new_model(links=False).fit(small.without(ge.Nodes([a, b]))))


def _failing(*_: object, **__: object) -> None:
    raise TrainingError({0: RuntimeError("no")})
