"""The worker in a process of its own: what it publishes is served, and its end is made good."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import ParameterError
from grapheraser.service.api.parts import Parts
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.queue.requests import State
from grapheraser.service.running import Service
from grapheraser.service.served.serving import Published, Served
from grapheraser.service.settings import Settings
from grapheraser.service.worker.process import Announced, Channel
from grapheraser.store import locked
from grapheraser.store.keys import KeyFolder
from tests.service.conftest import new_model
from tests.service.crashing import alive
from tests.service.worker.test_worker import same_state, submit
from tests.waiting import until

pytestmark = pytest.mark.slow


@contextmanager
def started(run: Path, folder: Path, **options: Any) -> Iterator[Service]:
    url = sqlite_url(folder / "queue.db")
    quick = {"window": 0.0, "retry_seconds": 0.01, "poll_seconds": 0.05}
    settings = Settings(**{"database": url, **quick, **options})
    service = Service.opened(run, settings, keys=KeyFolder(folder / "keys"))
    service.start()
    try:
        yield service
    finally:
        service.stop()


def pid_of(service: Service) -> int:
    assert service.process is not None
    pid = service.process.pid
    assert pid is not None
    return pid


def check_of(service: Service) -> tuple[Parts, Callable[[], bool]]:
    parts = Parts(service)
    return parts, lambda: parts.checks()["worker"]


@pytest.mark.long
def test_what_is_completed_is_served_and_a_lost_worker_is_started_again(
    any_run: Path, small: ge.Graph, tmp_path: Path
) -> None:
    nodes = list(map(int, small.train_nodes[:4]))
    with started(any_run, tmp_path) as service:
        parts, is_ready = check_of(service)
        until(is_ready)
        first = submit(service, nodes=nodes[:1])
        until(lambda: service.queue.get(first.id).state is State.COMPLETED)
        assert service.served.now.version == 1  # not a moment later

        lost = pid_of(service)
        os.kill(lost, signal.SIGKILL)
        until(lambda: service.restarts == 1)
        second = submit(service, nodes=nodes[1:])
        until(lambda: service.queue.get(second.id).state is State.COMPLETED)
        assert service.served.now.version == 2
        assert pid_of(service) != lost
        assert is_ready()
        assert b"grapheraser_worker_restarts 1.0" in parts.metrics.page()
        assert service.trouble is None
        last = pid_of(service)
    assert not alive(last)
    links = service.served.task == "links"
    assert same_state(any_run, new_model(links=links).fit(small.without([ge.Nodes(nodes)])))


def test_posteriors_come_from_the_worker_with_the_bits_of_any_other_prediction(
    nodes_run: Path, small: ge.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(nodes_run, tmp_path, answered=10**6) as service:
        monkeypatch.setattr(ge.GraphEraser, "predict_proba", None)  # the server works none out
        request = submit(service, nodes=[int(small.train_nodes[0])])
        until(lambda: service.queue.get(request.id).state is State.COMPLETED)
        monkeypatch.undo()
        model, _, answers = service.served.now
        rest = model.graph_.ids
        loaded = ge.GraphEraser.load(nodes_run).predict_proba(rest)
    assert answers is not None
    assert answers.tobytes() == loaded.tobytes()


def test_a_worker_that_does_not_come_up_is_tried_again_later_and_later(
    nodes_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    rests = {"retry_seconds": 0.02, "retry_most_seconds": 0.1}
    with started(nodes_run, tmp_path, **rests) as service:
        parts, is_ready = check_of(service)
        until(lambda: service.restarts >= 3)
        assert not is_ready()
        assert "exit status 1" in (service.trouble or "")
        assert b"grapheraser_worker_trouble 1.0" in parts.metrics.page()


def test_a_worker_that_can_not_be_started_is_tried_again(
    nodes_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "nowhere"))
    with started(nodes_run, tmp_path) as service:
        until(lambda: service.restarts >= 2)
        assert "No such file" in (service.trouble or "")


def test_parts_that_no_other_process_can_have_are_refused(nodes_run: Path, tmp_path: Path) -> None:
    settings = Settings(database=sqlite_url(tmp_path / "queue.db"))
    service = Service.opened(nodes_run, settings, keys=KeyFolder(tmp_path / "keys"))
    assert service.process is not None
    service.process._opener = lambda channel: service.worker
    with pytest.raises(ParameterError, match="handed to another process"):
        service.start()
    service.stop()


def test_what_keeps_it_from_working_is_told(
    nodes_run: Path, small: ge.Graph, tmp_path: Path
) -> None:
    with started(nodes_run, tmp_path) as service:
        _, is_ready = check_of(service)
        until(is_ready)
        with locked(nodes_run):
            request = submit(service, nodes=[int(small.train_nodes[0])])
            until(lambda: service.trouble is not None)
            assert is_ready()  # it works as soon as it can
        until(lambda: service.queue.get(request.id).state is State.COMPLETED)
        until(lambda: service.trouble is None)


def _serve_until_killed(run: Path, folder: Path, told: Connection) -> None:
    with started(run, folder) as service:
        _, is_ready = check_of(service)
        until(is_ready)
        told.send(pid_of(service))
        threading.Event().wait()


@pytest.mark.long
def test_without_its_server_it_ends_and_leaves_the_run_to_the_next(
    nodes_run: Path, small: ge.Graph, tmp_path: Path
) -> None:
    ours, theirs = multiprocessing.Pipe(duplex=False)
    context = multiprocessing.get_context("spawn")
    server = context.Process(target=_serve_until_killed, args=(nodes_run, tmp_path, theirs))
    server.start()
    worker = ours.recv()
    assert alive(worker)
    server.kill()
    server.join()
    until(lambda: not alive(worker))
    with started(nodes_run, tmp_path) as service:
        request = submit(service, nodes=[int(small.train_nodes[0])])
        until(lambda: service.queue.get(request.id).state is State.COMPLETED)


def test_a_version_that_the_server_can_not_serve_is_not_published(
    nodes_run: Path, small: ge.Graph
) -> None:
    class Refusing(Channel):
        def __init__(self) -> None:
            self.refusals = 1

        def publish(self, published: Published | None = None) -> None:
            assert published is not None
            if self.refusals:
                self.refusals -= 1
                raise OSError("not served")

    served = Announced(nodes_run, None, 0, Refusing())
    model = ge.GraphEraser.load(nodes_run)
    model.unlearn(ge.Nodes(small.train_nodes[:1]))
    with pytest.raises(OSError, match="not served"):
        served.publish(model)
    assert served.now.version == 0
    served.publish(model)  # asked for once more, since nothing was published
    assert served.now.version == 1


def test_whoever_watches_is_told_of_every_switch_and_does_no_harm(
    nodes_run: Path, small: ge.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    served, seen = Served(nodes_run, answered=10**6), []

    def watcher(before: Published, after: Published) -> None:
        seen.append((before.version, after.version))
        raise ValueError("node 12")

    served.watch(watcher)
    model = ge.GraphEraser.load(nodes_run)
    for node in small.train_nodes[:2]:
        model.unlearn(ge.Nodes([node]))
        served.publish(model)
        served.publish(model)
    assert seen == [(0, 1), (1, 2)]
    answers = served.now.answers
    assert answers is not None
    assert answers.tobytes() == model.predict_proba(model.graph_.ids).tobytes()
    assert "ValueError" in caplog.text
    assert "12" not in caplog.text
