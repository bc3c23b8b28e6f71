"""Requests in a few numbers, and F1 over time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

import grapheraser as ge
from grapheraser.service.database.tables import REQUESTS
from grapheraser.service.queue.lookup import STAGES, summarize
from grapheraser.service.queue.queue import Queue
from grapheraser.service.queue.requests import RequestContent, State
from grapheraser.service.served.measured import Scores
from grapheraser.service.served.serving import Published, Served


def test_every_state_is_in_one_stage() -> None:
    states = [state for stage in STAGES.values() for state in stage]
    assert sorted(states) == sorted(State)


def test_an_empty_queue_has_neither_deadline_nor_median(queue: Queue) -> None:
    found = summarize(queue)
    assert set(found.stages.values()) == {0}
    assert (found.late, found.next_deadline, found.median_seconds) == (0, None, None)


def test_requests_are_counted_by_owner_stage_and_deadline(queue: Queue) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    queue.clock = lambda: now
    days = [1, 2, 3, 4]
    made = [
        queue.submit(
            RequestContent(nodes=(day,)),
            deadline=now + timedelta(days=day),
            owner="ada" if day > 2 else "bob",
        ).request
        for day in days
    ]
    took = {made[0].id: 3.0, made[1].id: 5.0, made[2].id: 100.0}
    with queue.database.writing() as connection:
        for name, seconds in took.items():
            done = {"state": "completed", "completed": now.timestamp() + seconds}
            connection.execute(sa.update(REQUESTS).where(REQUESTS.c.id == name).values(done))
    found = summarize(queue)
    assert (found.stages["completed"], found.stages["waiting"]) == (3, 1)
    assert found.median_seconds == pytest.approx(5.0)
    assert found.next_deadline == now + timedelta(days=4)
    assert summarize(queue, "bob").median_seconds == pytest.approx(4.0)
    assert summarize(queue, "bob").next_deadline is None
    now += timedelta(days=5)
    assert (found.late, summarize(queue).late) == (0, 1)


def test_a_version_is_scored_once_with_the_answers_that_it_serves(
    queue: Queue, nodes_run: Path
) -> None:
    quick, plain = Served(nodes_run, answered=1000), Served(nodes_run)
    scores = Scores(queue)
    scores.record(quick.now)
    first = scores.latest()
    model = quick.now.model
    assert isinstance(model, ge.GraphEraser)
    graph = model.graph_
    assert [(score.version, score.nodes) for score in first] == [(0, graph.num_nodes)]
    assert first[0].f1 == round(model.score(graph.test_nodes), 2)
    scores.record(plain.now)
    assert scores.latest() == first
    flipped = Published(model, 1, np.zeros((graph.num_nodes, graph.num_classes), np.float32))
    scores.record(flipped)
    zeros = float((graph.labels(graph.test_nodes) == 0).mean())
    assert scores.latest()[-1].f1 == pytest.approx(zeros)
    assert [score.version for score in scores.latest(1)] == [1]


def test_a_run_for_links_has_no_f1(queue: Queue, fitted: Path) -> None:
    scores = Scores(queue)
    scores.record(Served(fitted / "links").now)
    assert [score.f1 for score in scores.latest()] == [None]
