"""A third task in one file: rank nodes by how many neighbours they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import Change, Ensemble, FittedAggregator
from grapheraser.checks import whole
from grapheraser.eraser import Eraser, Task, closed_form

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class FittedDegrees:
    """How many neighbours every node has, in the order of the ids."""

    degrees: Counts

    @property
    def tensors(self) -> dict[str, Counts]:
        return {"degrees": self.degrees}


@dataclass(frozen=True)
class Degrees:
    """Counts neighbours; learns anew only where a change touched a node."""

    name: str = "degrees"

    def fit(self, ensemble: Ensemble) -> FittedDegrees:
        graph = ensemble.graph
        return FittedDegrees(np.array([len(graph.neighbours(int(node))) for node in graph.ids]))

    def refit(self, fitted: FittedAggregator, ensemble: Ensemble, change: Change) -> FittedDegrees:
        before, graph = change.before.graph, ensemble.graph
        kept = dict(zip(before.ids.tolist(), fitted.tensors["degrees"].tolist(), strict=True))
        kept |= {int(node): len(graph.neighbours(int(node))) for node in change.touched}
        return FittedDegrees(np.array([kept[node] for node in graph.ids.tolist()]))

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> FittedDegrees:
        return FittedDegrees(np.asarray(tensors["degrees"]))


class RankingTask(Task):
    """A graph as it is; the answer is an order of its nodes."""

    name, owner, predicts = "ranking", "Ranker", "an order of nodes"

    def resolve(self, arguments: Mapping[str, Any], fitted_as: Any = None) -> Any:
        return closed_form(Degrees(), seed=whole("seed", self.owner, arguments["seed"]))


class Ranker(Eraser):
    """Ranks nodes by degree, and forgets exactly."""

    task = RankingTask()

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def top(self, count: int) -> NDArray[np.int64]:
        """The ids of the nodes with most neighbours, the lower id first among equals."""
        state = self._snapshot.state
        degrees: Counts = np.asarray(state.aggregator.tensors["degrees"], dtype=np.int64)
        order = np.argsort(-degrees, kind="stable")
        return state.graph.ids[order[:count]]
