"""What is measured of the shards of the served version, once for each version."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from grapheraser.eraser import GraphEraser
from grapheraser.partition.quality import PartitionQuality, measure
from grapheraser.service.importance import shard_importance
from grapheraser.service.retrained import Retrained
from grapheraser.service.serving import Published, Served

# Test nodes that every shard is asked about; more would say the same, more slowly.
MOST_TESTED = 1000
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class ShardScores:
    """How often each shard is right when it is asked alone, and how much it decides.

    Attributes:
        tested: how many labelled test nodes were asked about, spread evenly over their ids.
        whole: micro F1 of the whole model, on the same nodes; None where there are none.
        f1: micro F1 of each shard's own model, by shard.
        importance: mean share of each shard in decisions, by shard; see `shard_importance`.
    """

    tested: int
    whole: float | None
    f1: Mapping[int, float]
    importance: Mapping[int, float]


class _PerVersion(Generic[Measured]):
    """Works something out once for each version, whoever asks first."""

    def __init__(self, work: Callable[[Published], Measured]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._known: tuple[Published, Measured] | None = None

    def of(self, published: Published) -> Measured:
        with self._lock:
            if self._known is None or self._known[0].model is not published.model:
                self._known = (published, self._work(published))
            return self._known[1]

    def has(self, published: Published) -> bool:
        known = self._known
        return known is not None and known[0].model is published.model


class MeasuredShards:
    """Measures the served version, and watches which shards are retrained.

    Args:
        served: what is served.
    """

    def __init__(self, served: Served) -> None:
        self.retrained = Retrained(served)
        self._quality = _PerVersion(lambda now: measure(now.model.graph_, now.model.partition_))
        self._scores = _PerVersion(_scored)

    def quality(self, published: Published) -> PartitionQuality:
        """Edge cut, edges inside, modularity of the partition as it is now."""
        return self._quality.of(published)

    def scores(self, published: Published) -> ShardScores:
        """How good each shard is alone, and how much it decides."""
        return self._scores.of(published)

    def is_scored(self, published: Published) -> bool:
        """Whether `scores` answers at once."""
        return self._scores.has(published)


def _scored(published: Published) -> ShardScores:
    model = published.model
    importance = shard_importance(model)
    if not isinstance(model, GraphEraser) or not len(model.graph_.labelled_test_nodes):
        return ShardScores(0, None, {}, importance)
    nodes = _spread(model.graph_.labelled_test_nodes)
    ensemble, labels = model.aggregator_.ensemble, model.graph_.labels(nodes)
    shards = ensemble.shard_ids
    said = ensemble.posteriors(model.graph_.positions(nodes)).argmax(axis=2) if shards else ()
    f1 = {shard: float((guess == labels).mean()) for shard, guess in zip(shards, said, strict=True)}
    return ShardScores(len(nodes), model.score(nodes), f1, importance)


def _spread(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most `MOST_TESTED` of them, at even distances."""
    count = min(len(nodes), MOST_TESTED)
    return nodes[np.arange(count) * len(nodes) // count]
