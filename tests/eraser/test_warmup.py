"""Making compiled code ready never looks at a user's own parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grapheraser as ge
from grapheraser.aggregation import MeanAggregator


@dataclass
class Plainly:
    """An executor of the user's own, as unhashable as a plain dataclass is."""

    name: str = "plainly"
    ran: int = 0

    def map(
        self,
        function: Callable[[Any], Any],
        tasks: Sequence[Any],
        *,
        names: Sequence[int],
        tick: Callable[[], None] = lambda: None,
    ) -> list[Any]:
        del names, tick
        self.ran += len(tasks)
        return [function(task) for task in tasks]


@dataclass
class Own:
    """An aggregator of the user's own, unhashable, that knows which graph it is for."""

    nodes: int
    name: str = "own"

    def fit(self, ensemble: Any) -> MeanAggregator:
        assert ensemble.graph.num_nodes >= self.nodes, "shown another graph"
        return MeanAggregator()

    def refit(self, fitted: Any, ensemble: Any, change: Any) -> MeanAggregator:
        return self.fit(ensemble)

    def restore(self, tensors: Any) -> MeanAggregator:
        return MeanAggregator()


def test_an_executor_of_ones_own_need_not_be_hashable(small: ge.Graph) -> None:
    executor = Plainly()
    eraser = ge.GraphEraser(num_shards=3, epochs=1, executor=executor).fit(small)
    assert executor.ran == 3, "it trains the shards and nothing else"
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert executor.ran == 4


def test_an_aggregator_of_ones_own_is_shown_the_users_graph_alone(small: ge.Graph) -> None:
    own = Own(small.num_nodes - 1)
    eraser = ge.GraphEraser(num_shards=3, epochs=1, aggregation=own).fit(small)
    eraser.unlearn(ge.Nodes(small.train_nodes[:1]))
    assert eraser.predict(small.test_nodes).shape == (10,)
