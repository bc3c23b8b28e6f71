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
from grapheraser.service.retrained import Retrained
from grapheraser.service.serving import Published, Served

# Test nodes that every shard is asked about; more would say the same, more slowly.
MOST_TESTED = 1000
Measured = TypeVar("Measured")


@dataclass(frozen=True)
class Scores:
    """How often each shard is right when it is asked alone.

    Attributes:
        tested: how many labelled test nodes were asked about, spread evenly over their ids.
        whole: micro F1 of all shards together, on the same nodes.
        shards: micro F1 of each shard's own model, by shard.
    """

    tested: int
    whole: float
    shards: Mapping[int, float]


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

    def scores(self, published: Published) -> Scores | None:
        """How good each shard is alone; None where there is nothing to tell it by."""
        return self._scores.of(published)


def _scored(published: Published) -> Scores | None:
    model = published.model
    if not isinstance(model, GraphEraser) or not len(model.graph_.labelled_test_nodes):
        return None
    nodes = _spread(model.graph_.labelled_test_nodes)
    labels = model.graph_.labels(nodes)
    ensemble = model.aggregator_.ensemble
    said = ensemble.posteriors(model.graph_.positions(nodes)).argmax(axis=2)
    right = (said == labels).mean(axis=1) if len(said) else ()
    return Scores(
        tested=len(nodes),
        whole=model.score(nodes),
        shards={shard: float(f1) for shard, f1 in zip(ensemble.shard_ids, right, strict=True)},
    )


def _spread(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """At most `MOST_TESTED` of them, at even distances."""
    count = min(len(nodes), MOST_TESTED)
    return nodes[np.arange(count) * len(nodes) // count]
