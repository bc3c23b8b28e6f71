"""The worker: what is accepted is carried out, exactly, once, with a receipt."""

from __future__ import annotations

import logging
import shutil
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sqlalchemy as sa

import grapheraser as ge
from grapheraser.errors import ConflictError, ParameterError, ServiceError, TrainingError
from grapheraser.receipts import Part, check_chain
from grapheraser.receipts.keys import PublicKey
from grapheraser.service.database.tables import LOG, PARTS, REQUESTS, SUBJECTS
from grapheraser.service.queue.requests import Request, RequestContent, State
from grapheraser.service.running import Service
from grapheraser.service.served.serving import Model
from grapheraser.service.worker.carrier import STEPS
from grapheraser.store import load_receipts, stray_files
from grapheraser.store.keys import current_signer
from grapheraser.store.residues.search import search_run
from tests.service.conftest import Opened, new_model

WHOLE = ["received", "planned", "retraining", "published", "erased", "completed"]


def work(service: Service) -> None:
    """Until nothing is left to do."""
    for _ in range(200):
        if not service.worker.round():
            return
        time.sleep(0.002)
    raise AssertionError("the worker does not come to an end")


def submit(service: Service, **named: Any) -> Request:
    return service.queue.submit(RequestContent(**named)).request


def states(service: Service, request: Request) -> list[str]:
    return [event.state.value for event in service.queue.history(request.id)]


def key() -> PublicKey:
    signer = current_signer()
    assert signer is not None
    return PublicKey(signer.public)


def same_state(run: Path, fresh: Model) -> bool:
    """Whether a saved run has the bits of a fresh fit."""
    loaded = type(fresh).load(run)
    weights = {shard: w.digest for shard, w in loaded.shards_.items()}
    ours, theirs = (dict(m._snapshot.state.aggregator.tensors) for m in (loaded, fresh))
    return (
        weights == {shard: w.digest for shard, w in fresh.shards_.items()}
        and loaded.graph_.fingerprint == fresh.graph_.fingerprint
        and ours.keys() == theirs.keys()
        and all(ours[name].tobytes() == theirs[name].tobytes() for name in ours)
    )


def test_requests_are_carried_out_together_and_exactly(
    opened: Opened, any_run: Path, small: ge.Graph
) -> None:
    a, b, c, d = map(int, small.train_nodes[:4])
    service = opened(any_run)
    made = [
        submit(service, nodes=[a]),
        submit(service, nodes=[b, c]),
        submit(service, features=[d]),
    ]
    work(service)
    assert [states(service, request) for request in made] == [WHOLE] * 3
    assert {service.queue.get(r.id).version for r in made} == {1}
    rest = small.without([ge.Nodes([a, b, c]), ge.Features([d])])
    fresh = new_model(links=service.served.task == "links").fit(rest)
    assert same_state(any_run, fresh)
    assert service.served.now.version == 1
    assert service.served.now.model.graph_.fingerprint == fresh.graph_.fingerprint
    assert type(fresh).load(any_run).verify().identical
    assert stray_files(any_run) == []
    assert search_run(any_run).clean


def test_everybody_gets_the_parts_that_answer_them(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    a, b, c = map(int, small.train_nodes[:3])
    service = opened(nodes_run)
    first, second = submit(service, nodes=[a, b]), submit(service, nodes=[b], features=[c])
    assert service.queue.collect(first.id) == []
    work(service)

    def abouts(request: Request) -> list[tuple[str, list[str]]]:
        parts = [Part.from_json(text) for text in service.queue.collect(request.id)]
        for part in parts:
            part.check(key())
        return sorted((part.about["forget"], part.about["ids"]) for part in parts)

    assert abouts(first) == sorted([("node", [str(a)]), ("node", [str(b)])])
    assert abouts(second) == [("features", [str(c)]), ("node", [str(b)])]
    assert service.queue.get(first.id).receipts == 2
    service.queue.destroy_receipt(first.id)
    assert service.queue.collect(first.id) == []
    assert service.queue.get(first.id).receipts == 0


def test_what_is_not_there_is_said_and_sinks_nobody(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    a, b = map(int, small.train_nodes[:2])
    service = opened(nodes_run)
    good, half = submit(service, nodes=[a]), submit(service, nodes=[b, 10**9])
    none, twice = submit(service, nodes=[10**9]), submit(service, nodes=[a])
    work(service)
    again = submit(service, nodes=[a])
    work(service)
    found = {r.id: service.queue.get(r.id) for r in (good, half, none, twice, again)}
    assert {r.state for r in found.values()} == {State.COMPLETED}
    assert found[half.id].reason == "1 of 2 things that it names were not in the run"
    assert "never was" in (found[none.id].reason or "")
    assert "never was" in (found[again.id].reason or "")
    assert [found[r.id].receipts for r in (good, half, none, twice, again)] == [1, 1, 0, 1, 0]
    assert service.served.now.version == 1
    assert states(service, none) == ["received", "planned", "erased", "completed"]


def test_the_key_of_a_completed_request_is_not_taken_for_more_or_less(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    a, b = map(int, small.train_nodes[:2])
    service = opened(nodes_run)
    first = service.queue.submit(RequestContent(nodes=(a,)), key="ticket").request
    work(service)
    again = service.queue.submit(RequestContent(nodes=(a,)), key="ticket")
    assert (again.is_new, again.request.id) == (False, first.id)
    for other in (RequestContent(nodes=(a, b)), RequestContent(features=(a,))):
        with pytest.raises(ConflictError, match="used for another"):
            service.queue.submit(other, key="ticket")


def test_updates_keep_their_place_between_erasures(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    a, b = map(int, small.train_nodes[:2])
    row = [0.0] * small.num_features
    new = {"ids": [70_001], "x": [row], "y": [1], "edges": [[70_001, b]]}
    service = opened(nodes_run)
    made = [
        submit(service, nodes=[a]),
        submit(service, changes=[{"add_nodes": new}]),
        submit(service, nodes=[70_001]),
        submit(service, changes=[{"set_labels": {"nodes": [b], "y": [0]}}]),
    ]
    work(service)
    assert [service.queue.get(r.id).version for r in made] == [1, 2, 3, 4]
    assert [service.queue.get(r.id).state for r in made] == [State.COMPLETED] * 4
    graph = service.served.now.model.graph_
    assert not graph.contains([70_001]).any()
    assert graph.labels([b]).tolist() == [0]
    assert service.served.now.model.verify().identical


def test_a_poisonous_request_fails_alone(
    opened: Opened, nodes_run: Path, small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = list(map(int, small.train_nodes[:9]))
    service = opened(nodes_run, retry_most_seconds=0.001)
    made = [submit(service, nodes=[node]) for node in nodes]
    unlearn, poisoned = ge.GraphEraser.unlearn, [True]

    def poisoned_unlearn(self: ge.GraphEraser, request: list[ge.Nodes], **options: str) -> object:
        if poisoned[0] and nodes[4] in request[0].ids:
            raise TrainingError({3: RuntimeError(f"node {nodes[4]}")})
        return unlearn(self, request, **options)

    monkeypatch.setattr(ge.GraphEraser, "unlearn", poisoned_unlearn)
    for _ in range(12):
        service.worker.round()
    found = [service.queue.get(r.id) for r in made]
    assert [r.state is State.COMPLETED for r in found] == [n != 4 for n in range(9)]
    assert found[4].state is State.FAILED
    assert found[4].reason == "training failed (TrainingError)"
    assert found[4].retry_at is not None
    said = {event.reason for event in service.queue.events_after(0)}
    assert said == {None, "training failed (TrainingError)"}  # the error itself names the node
    poisoned[0] = False
    service.worker.is_due()  # its rest begins when the worker sees that it failed
    time.sleep(0.01)
    work(service)
    assert service.queue.get(made[4].id).state is State.COMPLETED
    assert service.served.now.model.verify().identical


def test_what_can_never_be_done_fails_with_a_reason_and_is_not_tried_again(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run)
    everything = submit(service, nodes=list(map(int, small.train_nodes)))
    wrong = submit(service, changes=[{"set_labels": {"nodes": [10**9], "y": [1]}}])
    work(service)
    found = [service.queue.get(r.id) for r in (everything, wrong)]
    assert [r.state for r in found] == [State.FAILED] * 2
    assert [r.retry_at for r in found] == [None] * 2
    assert "nothing to learn from" in (found[0].reason or "")
    assert "not in the run" in (found[1].reason or "")
    assert not service.worker.round()
    service.queue.retry(wrong.id)
    work(service)
    assert service.queue.get(wrong.id).attempts == 2
    assert service.queue.cancel(everything.id).state is State.CANCELLED


def test_links_have_no_labels_to_forget(
    opened: Opened, fitted: Path, tmp_path: Path, small: ge.Graph
) -> None:
    node, other = map(int, small.train_nodes[:2])
    service = opened(Path(shutil.copytree(fitted / "links", tmp_path / "run")))
    wrong, right = submit(service, labels=[node]), submit(service, labels=[other], nodes=[node])
    work(service)
    assert [service.queue.get(r.id).state for r in (wrong, right)] == [State.FAILED] * 2
    assert "a kind of data" in (service.queue.get(wrong.id).reason or "")
    assert service.served.now.version == 0


def test_completed_means_that_nothing_is_left_in_the_database(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    a, b = map(int, small.train_nodes[:2])
    service = opened(nodes_run)
    service.queue.subjects.load(
        [RequestContent(subject="ada@example.org", nodes=(a,), edges=((a, b),))]
    )
    service.queue.subjects.load(
        [RequestContent(subject="bob@example.org", nodes=(b,), edges=((a, b),))]
    )
    request = submit(service, subject="ada@example.org")
    work(service)
    assert service.queue.get(request.id).state is State.COMPLETED
    service.queue.destroy_receipt(request.id)
    with service.database.reading() as connection:
        row = connection.execute(sa.select(REQUESTS.c.sealed, REQUESTS.c.mark)).one()
        left = connection.execute(sa.select(sa.func.count()).select_from(SUBJECTS)).scalar()
        parts = connection.execute(sa.select(sa.func.count()).select_from(PARTS)).scalar()
    assert tuple(row) == (None, None)
    assert left == 1  # Bob is still there; the edge went with Ada
    assert parts == 0
    assert [item.ids for item in service.queue.subjects.find("bob@example.org")] == [(b,)]


def test_the_log_in_the_database_is_the_log_of_the_run(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run)
    for node in map(int, small.train_nodes[:3]):
        submit(service, nodes=[node])
        work(service)
    receipts, ends = load_receipts(nodes_run)
    check_chain(list(receipts), ends=ends)
    with service.database.reading() as connection:
        rows = connection.execute(sa.select(LOG).order_by(LOG.c.size)).all()
    assert [row.envelope for row in rows] == [receipt.to_json() for receipt in receipts]


def test_changes_by_others_are_taken_up(opened: Opened, nodes_run: Path, small: ge.Graph) -> None:
    a, b, c = map(int, small.train_nodes[:3])
    service = opened(nodes_run)
    other = ge.GraphEraser.load(nodes_run)
    other.unlearn(ge.Nodes([a]))
    other.save(nodes_run)
    request = submit(service, nodes=[b, c])
    work(service)
    assert service.queue.get(request.id).version == 2
    assert len(service.served.now.model.receipts_) == 2
    assert not service.served.now.model.graph_.contains([a, b, c]).any()


def test_an_old_copy_of_the_run_is_refused(
    opened: Opened, nodes_run: Path, fitted: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run)
    submit(service, nodes=[int(small.train_nodes[0])])
    work(service)
    ge.GraphEraser.load(fitted / "nodes").save(nodes_run, replace=True)
    submit(service, nodes=[int(small.train_nodes[1])])
    with pytest.raises(ServiceError, match="does not hold what was published"):
        service.worker.round()


def test_a_burst_is_gathered_and_urgent_requests_do_not_wait(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    nodes = list(map(int, small.train_nodes[:6]))
    service = opened(nodes_run, window=3600.0, batch=3)
    submit(service, nodes=[nodes[0]])
    submit(service, nodes=[nodes[1]])
    assert not service.worker.round()
    submit(service, nodes=[nodes[2]])
    assert service.worker.round()
    assert service.served.now.version == 1
    submit(service, nodes=[nodes[3]])
    assert not service.worker.round()
    soon = datetime.now(UTC) + timedelta(days=1)
    service.queue.submit(RequestContent(nodes=(nodes[4],)), deadline=soon)
    assert service.worker.round()
    assert service.queue.counts()[State.COMPLETED] == 5


def test_the_steps_are_reached_in_order(opened: Opened, nodes_run: Path, small: ge.Graph) -> None:
    steps: list[str] = []
    service = opened(nodes_run, reached=steps.append)
    submit(service, nodes=[int(small.train_nodes[0])])
    work(service)
    assert tuple(steps) == STEPS


def test_a_thread_works_and_predictions_are_of_one_version(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    nodes = list(map(int, small.train_nodes[:12]))
    service = opened(nodes_run, batch=1, poll_seconds=0.01)
    asked = small.test_nodes
    versions: dict[int, set[bytes]] = {}
    stop = threading.Event()

    def ask() -> None:
        while not stop.is_set():
            posteriors, version = service.served.predict(asked)
            versions.setdefault(version, set()).add(posteriors.tobytes())

    asking = threading.Thread(target=ask)
    asking.start()
    service.start()
    made = [submit(service, nodes=[node]) for node in nodes]
    until = time.monotonic() + 60
    while service.queue.counts()[State.COMPLETED] < len(made) and time.monotonic() < until:
        time.sleep(0.01)
    stop.set()
    asking.join()
    service.worker.stop(30)
    assert not service.worker.is_alive
    assert service.queue.counts()[State.COMPLETED] == len(made)
    assert all(len(answers) == 1 for answers in versions.values())
    assert len(versions) > 1
    assert service.served.now.version == len(nodes)


def test_two_workers_share_a_run(opened: Opened, nodes_run: Path, small: ge.Graph) -> None:
    nodes = list(map(int, small.train_nodes[:12]))
    first = opened(nodes_run, batch=2, poll_seconds=0.005)
    second = opened(nodes_run, batch=2, poll_seconds=0.005)
    made = [submit(first, nodes=[node]) for node in nodes]
    first.start()
    second.start()
    until = time.monotonic() + 60
    while first.queue.counts()[State.COMPLETED] < len(made) and time.monotonic() < until:
        time.sleep(0.02)
    first.worker.stop(30)
    second.worker.stop(30)
    assert [states(first, r) for r in made] == [WHOLE] * len(made)
    receipts, _ = load_receipts(nodes_run)
    assert sum(r.counts["nodes"] for r in receipts) == len(nodes)
    second.served.refresh()
    assert second.served.now.version == len(receipts)
    assert second.served.now.model.verify().identical


def test_deadlines_are_alerted_on_once_and_name_nobody(
    opened: Opened, nodes_run: Path, small: ge.Graph, caplog: pytest.LogCaptureFixture
) -> None:
    service = opened(nodes_run, publish_at="03:00", alert_days=3.0)
    now = service.queue.clock()
    node = int(small.train_nodes[0])
    soon = service.queue.submit(
        RequestContent(nodes=(node,)), deadline=now + timedelta(days=2)
    ).request
    submit(service, nodes=[node])
    service.worker.clean_up()
    alerts = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.getMessage() for record in alerts] == [
        f"request {soon.id} is received and close to its deadline, "
        f"{soon.deadline.isoformat(timespec='seconds')}"
    ]
    assert [request.id for request in service.queue.due(timedelta(days=3))] == [soon.id]


def test_receipts_that_nobody_collects_are_destroyed(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run, receipt_days=30.0)
    early, late = (submit(service, nodes=[int(node)]) for node in small.train_nodes[:2])
    work(service)
    now = service.queue.clock()
    assert len(service.queue.collect(early.id)) == 1
    service.queue.clock = lambda: now + timedelta(days=2)
    service.worker.clean_up()
    assert service.queue.collect(early.id) == []
    assert service.queue.get(late.id).receipts == 1
    service.queue.clock = lambda: now + timedelta(days=31)
    service.worker._cleaned = float("-inf")
    service.worker.clean_up()
    assert service.queue.collect(late.id) == []
    assert service.queue.get(late.id).state is State.COMPLETED


def test_who_does_not_work_follows_what_others_publish(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    working = opened(nodes_run)
    following = opened(nodes_run, worker="none", poll_seconds=0.01)
    following.start()
    request = submit(following, nodes=[int(small.train_nodes[0])])
    time.sleep(0.05)
    assert following.queue.get(request.id).state is State.RECEIVED
    work(working)
    until = time.monotonic() + 30
    while following.served.now.version == 0 and time.monotonic() < until:
        time.sleep(0.01)
    following.worker.stop(30)
    assert following.served.now.version == 1
    assert not following.served.now.model.graph_.contains(small.train_nodes[:1]).any()


def test_nodes_and_subjects_may_go_by_name(opened: Opened, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = [f"person-{n}" for n in range(30)]
    edges = np.array(names)[rng.integers(0, 30, (2, 60))]
    graph = ge.Graph.from_arrays(
        rng.random((30, 4)), edges[:, edges[0] != edges[1]], [n % 2 for n in range(30)], ids=names
    )
    ge.GraphEraser(num_shards=2, epochs=1).fit(graph).save(tmp_path / "run")
    service = opened(tmp_path / "run")
    service.queue.subjects.load([RequestContent(subject="ada@example.org", nodes=("person-3",))])
    first, second = submit(service, nodes=["person-1"]), submit(service, subject="ada@example.org")
    work(service)
    (part,) = (Part.from_json(text) for text in service.queue.collect(first.id))
    part.check(key())
    assert part.about["names"] == ["person-1"]
    assert service.queue.get(second.id).receipts == 1
    left = service.served.now.model.graph_
    assert left.contains(["person-1", "person-2", "person-3"]).tolist() == [False, True, False]
    files = [file.read_bytes() for file in tmp_path.glob("queue.db*")]
    assert not any(b"person-1" in content for content in files)


def test_names_are_refused_where_nodes_have_none(
    opened: Opened, nodes_run: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run)
    node = int(small.train_nodes[0])
    wrong, right = submit(service, nodes=[str(node)]), submit(service, nodes=[node])
    work(service)
    assert service.queue.get(wrong.id).state is State.FAILED
    assert "by name" in (service.queue.get(wrong.id).reason or "")
    assert service.queue.get(right.id).state is State.COMPLETED


def test_an_erasure_that_can_not_be_done_here_is_tried_again(
    opened: Opened, nodes_run: Path, small: ge.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = opened(nodes_run)
    request = submit(service, nodes=[int(small.train_nodes[0])])

    def unlearn(*_: object, **__: object) -> None:
        raise ParameterError("shard 3 can't be retrained here bit for bit: no such device.")

    with monkeypatch.context() as patch:
        patch.setattr(ge.GraphEraser, "unlearn", unlearn)
        service.worker.round()
    found = service.queue.get(request.id)
    assert found.state is State.FAILED
    assert found.retry_at is not None
    time.sleep(0.01)
    work(service)
    time.sleep(0.01)
    work(service)
    assert service.queue.get(request.id).state is State.COMPLETED


def test_a_worker_that_can_not_work_says_why(
    opened: Opened, nodes_run: Path, fitted: Path, small: ge.Graph
) -> None:
    service = opened(nodes_run, poll_seconds=0.01, retry_most_seconds=0.01)
    submit(service, nodes=[int(small.train_nodes[0])])
    work(service)
    ge.GraphEraser.load(fitted / "nodes").save(nodes_run, replace=True)
    submit(service, nodes=[int(small.train_nodes[1])])
    service.start()
    until = time.monotonic() + 30
    while service.worker.trouble is None and time.monotonic() < until:
        time.sleep(0.01)
    service.worker.stop(30)
    assert "does not hold what was published" in (service.worker.trouble or "")
