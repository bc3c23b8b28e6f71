"""How good every version was when it was published, and how much was left: F1 over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np
import sqlalchemy as sa

from grapheraser.eraser import GraphEraser
from grapheraser.graph import UNLABELLED
from grapheraser.service.database.tables import SCORES
from grapheraser.service.requests import when

if TYPE_CHECKING:
    from grapheraser.service.queue import Queue
    from grapheraser.service.serving import Published

MOST_SCORED = 10_000


@dataclass(frozen=True)
class Score:
    """A version in numbers.

    Attributes:
        version: size of the run's log.
        at: when it was first served.
        nodes: in its graph.
        edges: in its graph.
        f1: micro F1 of its test nodes, of `MOST_SCORED` of them at the most; None: it has none.
    """

    version: int
    at: datetime
    nodes: int
    edges: int
    f1: float | None


class Scores:
    """The scores of the versions of one run.

    Args:
        queue: of the run, in whose database they are kept.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def record(self, published: Published) -> None:
        """Score a version, unless that was done before."""
        mine = (SCORES.c.run == self._queue.run, SCORES.c.version == published.version)
        with self._queue.database.reading() as connection:
            if connection.execute(sa.select(SCORES.c.version).where(*mine)).first() is not None:
                return
        graph = published.model.graph_
        values = {
            "run": self._queue.run,
            "version": published.version,
            "at": self._queue.clock().timestamp(),
            "nodes": graph.num_nodes,
            "edges": graph.num_edges,
            "f1": f1_of(published),
        }
        with self._queue.database.writing() as connection:
            connection.execute(self._queue.insert_new(SCORES), [values])

    def latest(self, limit: int = 1000) -> Sequence[Score]:
        """The scores of the latest versions, oldest first."""
        query = sa.select(SCORES).where(SCORES.c.run == self._queue.run)
        with self._queue.database.reading() as connection:
            rows = connection.execute(query.order_by(SCORES.c.version.desc()).limit(limit)).all()
        return [Score(r.version, when(r.at), r.nodes, r.edges, r.f1) for r in reversed(rows)]


def f1_of(published: Published) -> float | None:
    """Micro F1 of a version's labelled test nodes, with the posteriors that it serves."""
    model = published.model
    if not isinstance(model, GraphEraser):
        return None
    graph = model.graph_
    tested = graph.test_nodes[graph.labels(graph.test_nodes) != UNLABELLED]
    if not len(tested):
        return None
    tested = tested[:: -(-len(tested) // MOST_SCORED)]
    if published.answers is None:
        return float(model.score(tested))
    classes = published.answers[graph.positions(tested)].argmax(axis=1)
    return float(np.mean(classes == graph.labels(tested)))
