"""Killed at every step and at random instants, the service loses nothing and does nothing twice.

``CRASHES`` says how often the random test kills (``make crash``: some hundreds).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import grapheraser as ge
from grapheraser.errors import DatabaseError, GraphEraserError
from grapheraser.graph import Request as GraphRequest
from grapheraser.graph import edit_of
from grapheraser.receipts import Part, check_chain
from grapheraser.receipts.keys import PublicKey
from grapheraser.service.database import Database
from grapheraser.service.database.engine import sqlite_url
from grapheraser.service.database.tables import BATCHES, LOG, PARTS, REQUESTS, TOMBSTONES
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.queue.vault import SECRET, Vault
from grapheraser.service.running import Service
from grapheraser.service.settings import Settings
from grapheraser.service.worker.backup import Backup
from grapheraser.service.worker.carrier import STEPS
from grapheraser.store import load_receipts, stray_files
from grapheraser.store.keys import KeyFolder
from grapheraser.store.residues.forgotten import Forgotten
from grapheraser.store.residues.search import search_run
from tests.service import crashing, postgres
from tests.service.worker.test_worker import same_state

CRASHES = int(os.environ.get("CRASHES", "8"))
STILL = 120  # seconds without a step after which a worker is said to hang
SQLITE, POSTGRESQL, NODES, LINKS = "sqlite", "postgresql", "nodes", "links"
ALL = [(url, kind) for url in (SQLITE, POSTGRESQL) for kind in (NODES, LINKS)]
STEPPED = ALL if "CRASHES" in os.environ else ALL[:3]
AT_RANDOM = ALL if "CRASHES" in os.environ else [ALL[0], ALL[3]]
SERVED = [ALL[0], ALL[3]] if "CRASHES" in os.environ else ALL[:1]
pytestmark = pytest.mark.long


def fresh_model(*, links: bool) -> Any:
    return ge.LinkEraser() if links else ge.GraphEraser(num_shards=4, epochs=2)


@pytest.fixture(scope="session")
def demo_runs(tmp_path_factory: pytest.TempPathFactory, demo: ge.Graph) -> Path:
    folder = tmp_path_factory.mktemp("demo-runs")
    for links in (False, True):
        fresh_model(links=links).fit(demo).save(folder / str(links))
    return folder


@dataclass
class Stream:
    """Requests of all kinds about a run, and what they come to."""

    queue: Queue
    graph: ge.Graph
    links: bool
    random: random.Random
    nodes: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    edges: list[tuple[int, int]] = field(default_factory=list)
    changes: list[ge.SetLabels] = field(default_factory=list)
    accepted: list[str] = field(default_factory=list)
    only_forgets: bool = False

    def __post_init__(self) -> None:
        left = [int(node) for node in self.graph.train_nodes]
        self.random.shuffle(left)
        self._left = iter(left)

    def submit(self, count: int) -> None:
        for _ in range(count):
            submitted = self.queue.submit(self._asked(), key=f"key-{len(self.accepted)}")
            assert submitted.is_new
            self.accepted.append(submitted.request.id)

    def _asked(self) -> RequestContent:
        node = next(self._left)
        kinds = ["node", "node", "two", "features", "edge", "again", "subject"]
        kind = self.random.choice(kinds if self.links or self.only_forgets else [*kinds, "label"])
        others = self.graph.neighbours(node)
        if kind == "features":
            self.features.append(node)
            return RequestContent(features=(node,))
        if kind == "edge" and len(others):
            self.edges.append((node, int(others[0])))
            return RequestContent(edges=((node, int(others[0])),))
        if kind == "again" and self.nodes:  # somebody has asked for it already
            return RequestContent(nodes=(self.random.choice(self.nodes),))
        if kind == "label":
            self.changes.append(ge.SetLabels([node], [0]))
            return RequestContent(changes=({"set_labels": {"nodes": [node], "y": [0]}},))
        self.nodes += [node, next(self._left)] if kind == "two" else [node]
        if kind == "subject":
            self.queue.subjects.load([RequestContent(subject=f"person {node}", nodes=(node,))])
            return RequestContent(subject=f"person {node}")
        return RequestContent(nodes=tuple(self.nodes[-2:] if kind == "two" else [node]))

    @property
    def changed(self) -> ge.Graph:
        changes = self.changes
        return self.graph.updated(edit_of(self.graph, changes)) if changes else self.graph

    @property
    def forgotten(self) -> list[GraphRequest]:
        gone: list[GraphRequest] = [ge.Nodes(self.nodes), ge.Features(self.features)]
        edges = [pair for pair in self.edges if not {*pair} & {*self.nodes}]
        return gone + ([ge.Edges(edges)] if edges else [])


@pytest.fixture
def stream(
    request: pytest.FixtureRequest, demo_runs: Path, tmp_path: Path, demo: ge.Graph
) -> Iterator[tuple[Stream, Path, str, Path]]:
    kind, links = request.param[0], request.param[1] == LINKS
    url = sqlite_url(tmp_path / "queue.db")
    if kind == POSTGRESQL:
        server: postgres.Server = request.getfixturevalue("server")
        url = server.new_database()
    run = Path(shutil.copytree(demo_runs / str(links), tmp_path / "run"))
    database, keys = Database.opened(url), tmp_path / "keys"
    vault = Vault(KeyFolder(keys).secret(SECRET))
    queue = Queue(database, load_receipts(run)[1].run, vault)
    yield Stream(queue, demo, links, random.Random(7)), run, url, keys
    database.dispose()


def finished(queue: Queue, run: Path, url: str, keys: Path) -> None:
    """Let a worker work until nothing is left to do."""
    process = crashing.start(run, url, keys)
    goes_on(queue, lambda: not process.is_alive())
    process.join()
    assert process.exitcode == 0


def goes_on(queue: Queue, done: Callable[[], bool]) -> None:
    """Wait as long as it takes, but not for a worker that stands still."""
    seen, since = -1, time.monotonic()
    while not done():
        if (now := queue.last_event()) > seen:
            seen, since = now, time.monotonic()
        assert time.monotonic() < since + STILL, queue.counts()
        time.sleep(0.1)


def check(stream: Stream, run: Path, keys: Path) -> None:
    """All that was accepted is completed once; the run is that of a fresh fit on the rest."""
    queue = stream.queue
    events = queue.events_after(0, limit=10**6)
    assert dict.fromkeys(stream.accepted, State.COMPLETED) == {
        name: queue.get(name).state for name in stream.accepted
    }
    for state in (State.PUBLISHED, State.ERASED, State.COMPLETED):
        counts = Counter(event.request for event in events if event.state is state)
        assert set(counts.values()) <= {1}
    assert {e.request for e in events if e.state is State.COMPLETED} == {*stream.accepted}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", str(keys))  # those that the worker signed with
        _check_run(stream, run)
    _check_receipts(stream, run, keys)
    _check_database(stream)


def _check_run(stream: Stream, run: Path) -> None:
    graph = stream.changed
    fresh = fresh_model(links=stream.links).fit(graph.without(stream.forgotten))
    assert same_state(run, fresh)
    loaded = type(fresh).load(run)
    assert loaded.verify().identical
    assert stray_files(run) == []
    assert search_run(run, Forgotten.of(graph, stream.forgotten)).clean


def _check_receipts(stream: Stream, run: Path, keys: Path) -> None:
    receipts, ends = load_receipts(run)
    check_chain(list(receipts), ends=ends)
    assert sum(r.forgotten["nodes"] for r in receipts) == len(stream.nodes)
    assert sum(r.forgotten["features"] for r in receipts) == len(stream.features)
    key = PublicKey(KeyFolder(keys).signing_key().public)
    answered: Counter[tuple[str, ...]] = Counter()
    for name in stream.accepted:
        for text in stream.queue.collect(name):
            part = Part.from_json(text)
            part.check(key)
            assert receipts[part.receipt.sequence - 1] == part.receipt
            answered[str(part.about), *part.about["ids"]] += 1
    forgotten = {key[1] for key in answered if "'node'" in key[0]}
    assert forgotten == {str(node) for node in stream.nodes}


def _check_database(stream: Stream) -> None:
    queue = stream.queue
    with queue.database.reading() as connection:
        assert connection.execute(sa.select(REQUESTS.c.sealed).distinct()).scalars().all() == [None]
        assert {*connection.execute(sa.select(BATCHES.c.state)).scalars()} == {"done"}
        sizes = connection.execute(sa.select(LOG.c.size).order_by(LOG.c.size)).scalars().all()
        stones = connection.execute(sa.select(TOMBSTONES.c.mark)).scalars().all()
        requests = connection.execute(sa.select(PARTS.c.request).distinct()).scalars().all()
    assert sizes == list(range(1, len(sizes) + 1))
    things = len(stream.nodes) + len(stream.features) + len(stream.edges)
    assert len(stones) == len({*stones}) <= things
    assert {*requests} <= {*stream.accepted}
    assert queue.subjects.count() == 0


@pytest.mark.parametrize("stream", STEPPED, ids="-".join, indirect=True)
def test_killed_at_every_step(stream: tuple[Stream, Path, str, Path]) -> None:
    requests, run, url, keys = stream
    for step in [*STEPS, crashing.SWITCHED, "published", "saved", "erased"]:
        requests.submit(4)
        process = crashing.start(run, url, keys, step)
        process.join(60)
        assert process.exitcode == -9, step
    finished(requests.queue, run, url, keys)
    check(requests, run, keys)


@pytest.mark.parametrize("stream", AT_RANDOM, ids="-".join, indirect=True)
def test_killed_at_random_instants(stream: tuple[Stream, Path, str, Path]) -> None:
    requests, run, url, keys = stream
    chance = random.Random(CRASHES)
    killed = 0
    while killed < CRASHES:
        process = crashing.start(run, url, keys)
        until = time.monotonic() + chance.uniform(0.05, 0.8)
        while time.monotonic() < until and process.is_alive():
            requests.submit(1)
            time.sleep(chance.uniform(0, 0.15))
        process.kill()
        process.join(60)
        assert process.exitcode in (0, -9)  # 0: it had nothing left to do
        killed += process.exitcode == -9
    finished(requests.queue, run, url, keys)
    check(requests, run, keys)


@pytest.mark.parametrize("stream", SERVED, ids="-".join, indirect=True)
def test_server_or_worker_or_both_are_killed(stream: tuple[Stream, Path, str, Path]) -> None:
    requests, run, url, keys = stream
    chance = random.Random(CRASHES)
    ours, theirs = multiprocessing.Pipe(duplex=False)
    server = crashing.start_serving(run, url, keys, theirs)
    worker, killed = ours.recv(), Counter[str]()
    try:
        while killed.total() < max(3, CRASHES // 4):
            requests.submit(2)
            time.sleep(chance.uniform(0, 4))
            while ours.poll():
                worker = ours.recv()
            whom = ("worker", "server", "both")[killed.total() % 3]
            if whom == "worker":
                with suppress(ProcessLookupError):  # it is just being started again
                    os.kill(worker, signal.SIGKILL)
            else:
                (os.killpg if whom == "both" else os.kill)(server.pid or 0, signal.SIGKILL)
                server.join()
                server = crashing.start_serving(run, url, keys, theirs)
                worker = ours.recv()
            killed[whom] += 1
        wanted = len(requests.accepted)
        goes_on(requests.queue, lambda: requests.queue.counts()[State.COMPLETED] == wanted)
        while ours.poll():
            worker = ours.recv()
    finally:
        server.kill()
        server.join()
    while crashing.alive(worker):
        time.sleep(0.01)
    finished(requests.queue, run, url, keys)
    check(requests, run, keys)


@pytest.mark.parametrize("stream", [ALL[0], ALL[2]], ids="-".join, indirect=True)
def test_what_was_accepted_survives_whoever_accepted_it(
    stream: tuple[Stream, Path, str, Path],
) -> None:
    requests, _, url, keys = stream
    queue, accepted = requests.queue, {}
    nodes = [int(node) for node in requests.graph.train_nodes]
    for round_ in range(3):
        ours, theirs = multiprocessing.Pipe(duplex=False)
        mine = nodes[round_ * 500 : (round_ + 1) * 500]
        process = crashing.start_submitting(url, keys, queue.run, theirs, mine)
        theirs.close()
        until = None
        while until is None or time.monotonic() < until:
            if ours.poll(0.01):
                node, name = ours.recv()
                accepted[node] = name
                until = until or time.monotonic() + 0.2
        process.kill()
        process.join(60)
        with suppress(EOFError):
            while ours.poll(0.1):
                node, name = ours.recv()
                accepted[node] = name
    assert len(accepted) > 20
    for node, name in accepted.items():
        assert queue.get(name).state is State.RECEIVED
        again = queue.submit(RequestContent(nodes=(node,)), key=str(node))
        assert (again.is_new, again.request.id) == (False, name)


@pytest.mark.parametrize("stream", [ALL[2]], ids="-".join, indirect=True)
def test_the_database_is_killed_at_every_step(
    stream: tuple[Stream, Path, str, Path], server: postgres.Server
) -> None:
    """PostgreSQL dies under a worker that goes on; then the worker dies as well."""
    requests, run, url, keys = stream
    left = [*STEPS, "sealed"]

    def reached(step: str) -> None:
        if left and step == left[0]:
            left.pop(0)
            server.stop()
            server.start()

    settings = Settings(database=url, window=0.0, batch=3, retry_seconds=0.01)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", str(keys))
        service = Service.opened(run, settings, keys=KeyFolder(keys), reached=reached)
        while left:
            requests.submit(2)
            with suppress(DatabaseError):  # unless the worker came to terms with it
                while service.worker.round():
                    pass
        service.database.dispose()
    requests.submit(2)
    process = crashing.start(run, url, keys, "saved")
    process.join(60)
    assert process.exitcode == -9
    finished(requests.queue, run, url, keys)
    check(requests, run, keys)


@pytest.mark.parametrize("stream", [ALL[0]], ids="-".join, indirect=True)
def test_backups_and_restores_are_killed(
    stream: tuple[Stream, Path, str, Path], tmp_path: Path
) -> None:
    requests, run, url, keys = stream
    requests.only_forgets = True  # a restore erases once more, and repeats no correction
    chance = random.Random(CRASHES)
    requests.submit(4)
    finished(requests.queue, run, url, keys)
    whole = []
    for number in range(3):  # while a worker works
        requests.submit(2)
        worker = crashing.start(run, url, keys)
        process = crashing.start_backup(run, url, keys, tmp_path / f"backup-{number}")
        process.join(chance.uniform(0.2, 2.0) if number else 60)
        process.kill()
        process.join(60)
        whole += [tmp_path / f"backup-{number}"] if process.exitcode == 0 else []
        worker.join(60)
        assert worker.exitcode == 0
    assert whole
    for number in range(3):
        if (folder := tmp_path / f"backup-{number}") not in whole:
            with pytest.raises(GraphEraserError):
                Backup.read(folder)
    requests.submit(4)
    finished(requests.queue, run, url, keys)
    requests.submit(3)
    for kill_at in ("handed over", crashing.SWITCHED, "saved", None):
        process = crashing.start_restore(whole[0], run, url, keys, kill_at)
        if kill_at is None:
            process.join(chance.uniform(0.2, 1.0))
            process.kill()
        process.join(60)
        assert process.exitcode in (-9, *([0] if kill_at is None else []))
    process = crashing.start_restore(whole[0], run, url, keys)
    process.join(60)
    assert process.exitcode == 0
    queue = Queue(requests.queue.database, load_receipts(run)[1].run, requests.queue.vault)
    requests.queue = queue
    finished(queue, run, url, keys)
    assert {queue.get(name).state for name in requests.accepted} == {State.COMPLETED}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRAPHERASER_KEYS", str(keys))
        _check_run(requests, run)
