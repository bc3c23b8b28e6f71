"""CollectionEraser: fit, predict and explain whole graphs, and forget them or parts of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Aggregator, Sample
from grapheraser.engines import Training
from grapheraser.eraser.base import ShardedEraser
from grapheraser.errors import GraphError, ParameterError
from grapheraser.execution import Executor
from grapheraser.graphs.collection import Collection, calling_graphs
from grapheraser.graphs.explain import GraphExplanation, explain
from grapheraser.graphs.learner import answers_to
from grapheraser.graphs.settings import CLOSED_FORM
from grapheraser.graphs.task import CollectionTask
from grapheraser.models import Model, ModuleFactory
from grapheraser.nodes.answers import posteriors_at, refuse_numbers, said_of, scores
from grapheraser.nodes.export import exported
from grapheraser.partition import Partitioner
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.store.files import write_export


class CollectionEraser(ShardedEraser):
    """Predicts the labels of whole graphs, and forgets graphs, nodes and edges exactly.

    A graph is told by counts of its colours, and compared with other graphs; among the most similar
    ones the labels are regressed. Nothing is trained but the weights of a few such members, unless
    there are shards: a network each, trained on its own graphs. Labels are classes, several labels
    or numbers. The constructor only stores its arguments; `fit` checks them.

    Args:
        members: ``surroundings``, ``paths``, ``shapes`` and ``profiles``, or some of them; with
            shards also none: ``()``.
        sample: the training graphs that the members' weights are learned from: a share in (0, 1], a
            count, ``"all"``, or ``"auto"``: all, but 1000 at the most.
        references: how many training graphs others are compared with, at the most.
        seed: every random number follows from it.
        executor: local, process, ray, or an `Executor`.
        model: ``closed-form``, which has no shards, so that all that follows has no part in it;
            gcn, sage, gat, gin, mlp, a `ModelSpec`; or a function ``(columns, outputs) -> module``
            with ``forward(x, edge_index, batch)``.
        partition: how graphs are dealt to shards: ``hash``, ``random``, ``similar`` (beside graphs
            like them), a `Partitioner` or a function.
        num_shards: how many shards.
        aggregation: ``routed``, which the members join, ``mean``, ``majority``, ``learned``, or an
            `Aggregator`.
        readout: how the nodes of a built-in network become a graph: sum, mean or max.
        epochs: of training; None: 100.
        training: a `Training`, with more settings of it.
        device: where shards are trained.

    Attributes:
        collection_: the graphs as they are now.
        graph_: the same as one graph, whose nodes they are.
        classes_: the classes, or their names.
        weights_: the learned weight of each member, by name.
        receipts_: one per change since the fit, oldest first.
        partition_: the shard of each training graph; the closed form has one part.
        shards_: weights by shard id; the closed form has none.
        engine_: name of the engine that trains shards.
    """

    task = CollectionTask()
    plan = calling_graphs()(ShardedEraser.plan)
    unlearn = calling_graphs()(ShardedEraser.unlearn)
    update = calling_graphs()(ShardedEraser.update)

    def __init__(
        self,
        members: Sequence[str] | None = None,
        sample: Sample = "auto",
        references: int = 8192,
        seed: int = 0,
        executor: str | Executor = "local",
        model: str | Model | ModuleFactory = CLOSED_FORM,
        partition: str | Partitioner | PartitionFunction = "hash",
        num_shards: int = 10,
        aggregation: str | Aggregator = "routed",
        readout: str = "sum",
        epochs: int | None = None,
        training: Training | None = None,
        device: str = "cpu",
    ) -> None:
        self.members = members
        self.sample = sample
        self.references = references
        self.seed = seed
        self.executor = executor
        self.model = model
        self.partition = partition
        self.num_shards = num_shards
        self.aggregation = aggregation
        self.readout = readout
        self.epochs = epochs
        self.training = training
        self.device = device

    def export(self, folder: str | Path, *, onnx: bool = False) -> None:
        """Write the fitted state as files that need nothing of this package.

        As `GraphEraser.export`: nodes are graphs, whose rows are as `graphs.encoding` says.

        Args:
            folder: is made; refused where it holds anything already.
            onnx: refused; see docs/collections.md.
        """
        if onnx:
            raise ParameterError(
                "a collection can't be exported as ONNX, whose operators solve no equations.",
                hint="leave ONNX out: arrays and state dicts are all there is to the run.",
            )
        write_export(Path(folder), dict(exported(self._snapshot)))

    @property
    def collector(self) -> CollectionEraser:
        return self

    @property
    def collection_(self) -> Collection:
        return Collection(self.graph_)

    @property
    def classes_(self) -> NDArray[Any]:
        graph = self.graph_
        return np.array(graph.class_names or range(graph.num_classes))

    @property
    def weights_(self) -> dict[str, float]:
        return dict(getattr(self._snapshot.state.aggregator, "weights", {}))

    def fit(self, collection: Collection | Iterable[Any]) -> Self:
        """Learn from a collection.

        Args:
            collection: a `Collection`, or a list of PyG ``Data``.
        """
        return self._fit(collection)

    @calling_graphs()
    def answers(self, graphs: ArrayLike) -> NDArray[Any]:
        """Return posteriors, or numbers, ``[len(graphs), num_classes]`` by the ids of graphs.

        Args:
            graphs: their ids.
        """
        state = self._snapshot.state
        return posteriors_at(state, state.graph.positions(graphs))

    def predict_proba(self, graphs: ArrayLike | None = None) -> NDArray[np.float32]:
        """Return posteriors ``[len(graphs), num_classes]``; of several labels how likely each is.

        Args:
            graphs: their ids; None: those of the test graphs.
        """
        refuse_numbers(self.graph_)
        return self.answers(self.graph_.test_nodes if graphs is None else graphs)

    def predict(self, graphs: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class of each graph, or its labels or numbers.

        Args:
            graphs: their ids; None: those of the test graphs.
        """
        asked = self.graph_.test_nodes if graphs is None else graphs
        return said_of(self._snapshot.state, self.answers(asked))

    def predict_proba_new(self, graphs: Collection | Iterable[Any]) -> NDArray[np.float32]:
        """Return posteriors of graphs that are not in the collection; nothing of them is kept.

        Args:
            graphs: as for `predict_new`.
        """
        refuse_numbers(self.graph_)
        return self._answers_new(graphs)

    def predict_new(self, graphs: Collection | Iterable[Any]) -> NDArray[Any]:
        """Return the class of each of some graphs that are not in the collection.

        Args:
            graphs: a `Collection`, or a list of PyG ``Data``, NetworkX graphs, SMILES strings, or
                mappings such as ``{"node_label": [6, 8], "edges": [[0, 1]]}``.
        """
        return said_of(self._snapshot.state, self._answers_new(graphs))

    def _answers_new(self, graphs: Collection | Iterable[Any]) -> NDArray[Any]:
        now = self._snapshot
        return answers_to(now, Collection(now.state.graph).rows_of(graphs))

    def score(self, graphs: ArrayLike | None = None) -> float:
        """Return micro F1 (the accuracy, where graphs have a class each), or R2 of numbers.

        Args:
            graphs: ids of labelled graphs; None: the test graphs.
        """
        return next(iter(self.evaluate(graphs).values()))

    @calling_graphs()
    def evaluate(self, graphs: ArrayLike | None = None) -> dict[str, float]:
        """Return all scores on labelled graphs, by name.

        Args:
            graphs: their ids; None: those of the test graphs.
        """
        state = self._snapshot.state
        asked = state.graph.labelled_test_nodes if graphs is None else graphs
        if len(np.atleast_1d(asked)) == 0:
            raise GraphError(
                f"collection '{state.graph.name}' has no test graphs to score.",
                hint="name some in the constructor of the collection, test=[...], or here.",
            )
        return scores(state, asked)

    @calling_graphs()
    def explain(self, graph: int | str, target: int | str = 0) -> GraphExplanation:
        """Say why a graph is taken for what it is: members, graphs like it, nodes that decide.

        Args:
            graph: its id.
            target: which of several labels or numbers, by its number or name.
        """
        return explain(self._snapshot, graph, target)
