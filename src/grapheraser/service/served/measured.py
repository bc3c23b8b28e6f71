"""Measurements of the served version: F1 over time, the quality of shards, and retrainings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import sqlalchemy as sa
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.learned import FittedLearned
from grapheraser.aggregation.members.shards import FittedShards
from grapheraser.aggregation.pooled import FittedPool
from grapheraser.aggregation.routed import RoutedAggregator, routes
from grapheraser.graph import UNLABELLED
from grapheraser.partition.quality import measure
from grapheraser.seeding import derive, keyed_hash
from grapheraser.service.database.tables import EVENTS, SCORES
from grapheraser.service.queue.requests import State, from_timestamp
from grapheraser.service.served.serving import Model, Published, Served

if TYPE_CHECKING:
    from grapheraser.service.queue.queue import Queue

# Nodes whose decisions are looked at; fewer where each costs a question to the aggregation.
_MAX_SAMPLED, _MAX_ASKED = 2000, 100
_SHARD = "shard "

Shares = NDArray[np.float64]


def shard_importance(model: Model) -> dict[int, float]:
    """Return the importance of every shard that has a model, by its id.

    With the aggregation ``learned`` these are its importance scores. With others it is the share
    of the decision that a shard has on average, over all nodes or a keyed sample of them; what is
    missing to 1 is that of closed-form members. Empty for a run that predicts links.
    """
    if (classifier := model.classifier) is None:
        return {}
    ensemble = classifier.aggregator_.ensemble
    shares = _shares(classifier.aggregator_.fitted, ensemble)
    return {shard: float(shares[shard]) for shard in ensemble.shard_ids}


def _shares(fitted: Any, ensemble: Ensemble) -> Shares:
    """Return the mean share of every shard, by its id."""
    if isinstance(fitted, FittedLearned):
        shares = np.zeros(ensemble.partition.num_shards)
        shares[fitted.sampled.shards] = fitted.importance / fitted.importance.sum()
        return shares
    if isinstance(fitted, RoutedAggregator):
        return _routed(fitted, ensemble)
    if isinstance(fitted, FittedPool):
        found = [m for m in fitted.members.values() if isinstance(m, FittedShards)]
        weights = fitted.weights
        total = sum(weights.values()) or 1.0
        parts = (_routed(m.routing, ensemble) * weights["shards"] / total for m in found)
        return sum(parts, np.zeros(ensemble.partition.num_shards))
    return _explained(fitted, ensemble)


def _routed(routing: RoutedAggregator, ensemble: Ensemble) -> Shares:
    positions = _sample(ensemble, _MAX_SAMPLED)
    gathered = ensemble.gather(positions, features=False)
    asked, weights = routes(ensemble, gathered, routing.shards_asked, floor=routing.floor)
    total = np.bincount(
        asked.ravel() + 1, weights=weights.ravel(), minlength=ensemble.partition.num_shards + 1
    )
    return total[1:] / max(1, len(positions))


def _explained(fitted: Any, ensemble: Ensemble) -> Shares:
    shares = np.zeros(ensemble.partition.num_shards)
    positions = _sample(ensemble, _MAX_ASKED)
    for position in positions.tolist():
        for said in fitted.explain(ensemble, position).members:
            if said.member.startswith(_SHARD):
                shares[int(said.member.removeprefix(_SHARD))] += said.weight
    return shares / max(1, len(positions))


def _sample(ensemble: Ensemble, limit: int) -> NDArray[np.int64]:
    """Return the positions of all nodes, or of those with the smallest keyed hashes."""
    graph = ensemble.graph
    if graph.num_nodes <= limit:
        return np.arange(graph.num_nodes)
    hashes = keyed_hash(graph.ids, derive(ensemble.seed, "importance"))
    return np.sort(np.argpartition(hashes, limit)[:limit])


@dataclass(frozen=True)
class Retraining:
    """The last retraining of a shard: when it was served first, and with how many."""

    version: int
    at: datetime
    shards: int


class Retrained:
    """Watches which shards are retrained, and when.

    Which shards a change retrained helps to guess whom it was about, so receipts don't say it and
    nothing of it is stored: it is known from the start of the service, and in memory alone.

    Attributes:
        since: the version that watching began with.
        last: the last retraining of each shard since, if any.
    """

    def __init__(self, served: Served) -> None:
        self.since = served.now.version
        self.last: Mapping[int, Retraining] = {}
        served.watch(self._switched)

    def _switched(self, old: Published, new: Published) -> None:
        """Compare the weights of two versions; neither is kept."""
        before, after = old.model.shards_, new.model.shards_
        changed = [
            shard
            for shard, weights in after.items()
            if shard not in before or before[shard].digest != weights.digest
        ]
        receipts = new.model.receipts_
        if changed and len(receipts):
            at = datetime.fromisoformat(receipts[-1].completed_at)
            made = Retraining(new.version, at, len(changed))
            self.last = {**self.last, **dict.fromkeys(changed, made)}


def seconds_of(queue: Queue, versions: Iterable[int]) -> dict[int, float]:
    """Return how long the changes took that led to these versions, where the queue has them.

    From the beginning of retraining until the version was served: retraining, combining, the
    receipt and writing the run.
    """
    begun = EVENTS.alias()
    begun_at = (
        sa.select(sa.func.max(begun.c.at))
        .where(
            begun.c.request == EVENTS.c.request,
            begun.c.state == State.RETRAINING.value,
            begun.c.number < EVENTS.c.number,
        )
        .scalar_subquery()
    )
    query = sa.select(EVENTS.c.version, sa.func.min(EVENTS.c.at - begun_at)).where(
        EVENTS.c.run == queue.run,
        EVENTS.c.state == State.PUBLISHED.value,
        EVENTS.c.version.in_(set(versions)),
    )
    rows = queue.database.rows(query.group_by(EVENTS.c.version))
    return {version: seconds for version, seconds in rows if seconds is not None}


# Test nodes that every shard is asked about; more would take longer and show the same.
MAX_TESTED = 1000
Measured = TypeVar("Measured")


class ShardScore(BaseModel):
    """The quality of a shard, and its share of decisions."""

    shard: int
    f1: float | None = Field(
        description="Micro F1 of its own model, asked alone about the test nodes."
    )
    importance: float | None = Field(
        description="Mean share that it has of the decisions about nodes; members that are no "
        "shards have the rest."
    )


class ScoreList(BaseModel):
    """The scores of one version's shards."""

    version: int
    tested: int = Field(description="Labelled test nodes that were asked about.")
    whole: float | None = Field(description="Micro F1 of the whole model on them.")
    shards: list[ShardScore]


class _PerVersion(Generic[Measured]):
    """Computes something once for each version."""

    def __init__(self, work: Callable[[Published], Measured]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._known: tuple[Published, Measured] | None = None

    def __call__(self, published: Published) -> Measured:
        with self._lock:
            if self._known is None or self._known[0].model is not published.model:
                self._known = (published, self._work(published))
            return self._known[1]

    def is_known(self, published: Published) -> bool:
        known = self._known
        return known is not None and known[0].model is published.model


class MeasuredShards:
    """Measures the shards of a version, and watches which are retrained.

    Attributes:
        quality: edge cut, inner edges and modularity of the partition.
        scores: the F1 of each shard alone, and its share of decisions.
    """

    def __init__(self, served: Served) -> None:
        self.retrained = Retrained(served)
        self.quality = _PerVersion(lambda now: measure(now.model.graph_, now.model.partition_))
        self.scores = _PerVersion(_score_shards)


def _score_shards(published: Published) -> ScoreList:
    model, importance = published.model, shard_importance(published.model)
    classifier, tested, whole, f1 = model.classifier, 0, None, dict[int, float]()
    if classifier is not None and len(model.graph_.labelled_test_nodes):
        nodes = _spread(model.graph_.labelled_test_nodes)
        ensemble, labels = classifier.aggregator_.ensemble, model.graph_.labels(nodes)
        ids = ensemble.shard_ids
        said = ensemble.posteriors(model.graph_.positions(nodes)).argmax(axis=2) if ids else ()
        f1 = {one: float((guess == labels).mean()) for one, guess in zip(ids, said, strict=True)}
        tested, whole = len(nodes), classifier.score(nodes)
    shards = [
        ShardScore(shard=one, f1=f1.get(one), importance=importance.get(one))
        for one in range(model.partition_.num_shards)
    ]
    return ScoreList(version=published.version, tested=tested, whole=whole, shards=shards)


def _spread(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Choose at most `MAX_TESTED` of them, at even distances."""
    count = min(len(nodes), MAX_TESTED)
    return nodes[np.arange(count) * len(nodes) // count]


_MAX_SCORED = 10_000


class Score(BaseModel):
    """A version in numbers."""

    version: int
    at: datetime = Field(description="When it was first served.")
    nodes: int
    f1: float | None = Field(
        description="Micro F1 of up to 10,000 test nodes, to a hundredth; null: it has none."
    )


class Scores:
    """The scores of the versions of one run, in the database of its queue.

    They stay, so they hold nothing of whom a version forgot: no number of edges, whose change is a
    person's degree, and F1 to a hundredth. How many nodes went is in the receipts as well.
    """

    def __init__(self, queue: Queue) -> None:
        self._queue = queue

    def record(self, published: Published) -> None:
        """Score a version, unless that was done before."""
        mine = (SCORES.c.run == self._queue.run, SCORES.c.version == published.version)
        if self._queue.database.rows(sa.select(SCORES.c.version).where(*mine)):
            return
        graph = published.model.graph_
        values = {
            "run": self._queue.run,
            "version": published.version,
            "at": self._queue.clock().timestamp(),
            "nodes": graph.num_nodes,
            "f1": _f1(published),
        }
        self._queue.database.change(self._queue.insert_new(SCORES).values(values))

    def latest(self, limit: int = 1000) -> Sequence[Score]:
        """List the scores of the latest versions, oldest first."""
        query = sa.select(SCORES).where(SCORES.c.run == self._queue.run)
        rows = self._queue.database.rows(query.order_by(SCORES.c.version.desc()).limit(limit))
        found = [{**row._mapping, "at": from_timestamp(row.at)} for row in reversed(rows)]
        return [Score.model_validate(row) for row in found]


def _f1(published: Published) -> float | None:
    """Return the micro F1 of a version's labelled test nodes, with the served posteriors."""
    model = published.model
    if model.classifier is None:
        return None
    graph = model.graph_
    tested = graph.test_nodes[graph.labels(graph.test_nodes) != UNLABELLED]
    if not len(tested):
        return None
    tested = tested[:: -(-len(tested) // _MAX_SCORED)]
    right = published.values(tested).argmax(axis=1) == graph.labels(tested)
    return round(float(np.mean(right)), 2)
