"""CollectionEraser: fit, predict and explain whole graphs, and forget them or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Sample
from grapheraser.eraser.base import Eraser
from grapheraser.execution import Executor
from grapheraser.graphs.collection import Collection
from grapheraser.graphs.explain import GraphExplanation, explain
from grapheraser.graphs.task import CollectionTask
from grapheraser.nodes.answers import posteriors_at, said_of, scores
from grapheraser.nodes.new_nodes import predict_proba_new


class CollectionEraser(Eraser):
    """Predicts the labels of whole graphs, and forgets graphs, nodes and edges exactly.

    Args:
        members: ``surroundings``, ``paths``, ``shapes`` and ``colours``, or some of them.
        sample: the graphs that the members' weights are learned from, as for `GraphEraser`.
        references: how many training graphs others are compared with, at the most.
        seed: every random number follows from it.
        executor: local, process, ray, or an `Executor`.
    """

    task = CollectionTask()

    def __init__(
        self,
        members: Sequence[str] | None = None,
        sample: Sample = "auto",
        references: int = 8192,
        seed: int = 0,
        executor: str | Executor = "local",
    ) -> None:
        self.members = members
        self.sample = sample
        self.references = references
        self.seed = seed
        self.executor = executor

    @property
    def collection_(self) -> Collection:
        """The graphs as they are now."""
        return Collection.of_graph(self.graph_)

    @property
    def classes_(self) -> NDArray[Any]:
        graph = self.graph_
        return np.array(graph.class_names or range(graph.num_classes))

    @property
    def weights_(self) -> dict[str, float]:
        """The weight of each member, by name."""
        pool: Any = self._snapshot.state.aggregator
        return dict(pool.weights)

    def fit(self, collection: Collection | Iterable[Any]) -> Self:
        """Learn from a `Collection`, or a list of PyG ``Data``."""
        return self._fit(collection)

    def predict_proba(self, graphs: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(graphs), num_classes]`` by the ids of graphs."""
        state = self._snapshot.state
        return posteriors_at(state, state.graph.positions(graphs))

    def predict(self, graphs: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class of each graph, by id; None: of the test graphs."""
        asked = self.graph_.test_nodes if graphs is None else graphs
        return said_of(self._snapshot.state, self.predict_proba(asked))

    def predict_proba_new(self, graphs: Collection | Iterable[Any]) -> NDArray[np.float32]:
        """Posteriors of graphs that are not in the collection; nothing of them is kept."""
        x = self._rows_of(graphs)
        return predict_proba_new(self._snapshot, x, [[]] * x.shape[0])

    def predict_new(self, graphs: Collection | Iterable[Any]) -> NDArray[Any]:
        """Return the class of each of some graphs that are not in the collection."""
        return said_of(self._snapshot.state, self.predict_proba_new(graphs))

    def score(self, graphs: ArrayLike | None = None) -> float:
        """Return the accuracy on labelled graphs, by id; None: on the test graphs."""
        state = self._snapshot.state
        asked = state.graph.labelled_test_nodes if graphs is None else graphs
        return next(iter(scores(state, asked).values()))

    def explain(self, graph: int | str) -> GraphExplanation:
        """Say why a graph is taken for what it is: members, graphs like it, nodes that decide."""
        return explain(self._snapshot, graph)

    def _rows_of(self, graphs: Collection | Iterable[Any]) -> Any:
        if isinstance(graphs, Collection):
            return graphs.graph.x
        given = list(graphs)
        return Collection.from_pyg(given, y=np.zeros(len(given), dtype=np.int64)).graph.x
