"""GraphEraser: fit, predict, unlearn, insert."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import (
    SHARDS_ASKED,
    Aggregator,
    BoundAggregator,
    Explanation,
    Sample,
)
from grapheraser.engines import Training
from grapheraser.eraser.base import ShardedEraser
from grapheraser.eraser.fit import reshard
from grapheraser.eraser.update import update
from grapheraser.execution import Executor
from grapheraser.graph import Graph
from grapheraser.graph.changes.updates import one_training_node
from grapheraser.graph.labels import LabelKind, require_classes
from grapheraser.graph.roles import DEFAULT_CONTEXT
from grapheraser.models import Model, ModuleFactory
from grapheraser.nodes.answers import are_predicted, posteriors_at, refuse_numbers, said_of, scores
from grapheraser.nodes.export import exported
from grapheraser.nodes.new_nodes import predict_proba_new
from grapheraser.nodes.on_graph import OnGraph
from grapheraser.nodes.scoring import Scored, score_nodes
from grapheraser.nodes.task import NodeTask
from grapheraser.partition import Partition, Partitioner
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.receipts import Receipt
from grapheraser.store.files import write_export


class GraphEraser(ShardedEraser):
    """An ensemble of isolated shard models that forgets nodes and edges exactly.

    The constructor only stores its arguments; `fit` checks them.

    Args:
        model: gcn, sage, gat, gin or mlp, one of the paper's variants (``"gcn:paper"``),
            ``"closed-form"`` (the closed-form members alone, no shards; ``num_shards`` and
            ``epochs`` have no part in it), ``"sgc"`` (only the regression on features), a
            `ModelSpec`, or a factory ``(in_channels, out_channels) -> torch.nn.Module`` whose
            modules have ``forward(x, edge_index)``, with ``edge_weight`` or ``edge_attr`` where
            they use them. gcn uses the weights and directions of edges; the other built-in models
            refuse such graphs. On a typed graph ``"closed-form"``, ``"rgcn"``, or a factory
            ``(types, out_channels)`` of modules with ``forward(x_dict, edge_index_dict)``.
        partition: name of a partition method, ``"auto"`` (what `recommend` advises), a
            `Partitioner`, or a function ``(graph, num_shards, seed) -> labels``.
        num_shards: k; 1 is training from scratch.
        aggregation: name of an aggregation or an `Aggregator`.
        epochs: of every shard's training; None: 100, or what ``training`` says.
        seed: every random number follows from it.
        device: a torch device.
        executor: local, process, ray, or an `Executor`.
        gamma: slack of the shards' capacity, 0 (strictly balanced) to 1 (none).
        delta: the capacity itself, instead of ``gamma``.
        sample: the training nodes that an aggregation learns from, where it learns: a share in
            (0, 1], a count, ``"all"``, or ``"auto"`` (10 %, but 1000 at the most, and all where
            labels are few).
        global_expert: let closed-form members join the routed shards in a pool; they see the whole
            training graph and forget as exactly as the shards do. None: where several shards are
            routed, but not with the paper's own aggregations (mean, majority, learned).
        engine: auto, pyg, cpu or cuda.
        members: which closed-form members: words, labels, edges, pattern, interactions, surprises,
            features. None: all but interactions, which may stand in the place of pattern, and
            surprises.
        halo: let every shard see the features of its members' neighbours in other shards, without
            their labels. It often lifts shards that stand alone; a request then retrains each shard
            that sees what it names.
        shards_asked: how many shards ``routed`` asks about a node: those that hold most of its
            neighbours.
        context: which nodes are in shards beside the training nodes, where they take part in
            message passing without a loss: ``"unlabelled"`` (those that are neither training,
            validation nor test nodes), ``"all"`` (validation and test nodes too) or ``"none"``.
        training: how every shard is trained, where that differs from the model's preset; see
            `Training` for what each engine supports.

    Attributes:
        graph_: the current graph.
        partition_: the shard of every training node, and of those that ``context`` adds.
        shards_: weights by shard id; a shard without a labelled node has none.
        aggregator_: the fitted aggregator; ``aggregator_.explain(node)`` names the members that
            decide.
        receipts_: one per change since the fit, oldest first.
        engine_: name of the engine that trains and retrains the shards.
        classes_: what `predict` answers with, in the order of the columns of `predict_proba`: names
            of classes where they have any, else ``0 .. num_classes - 1``; of several labels their
            names or numbers. Numbers have none.
        target_names_: names of the classes, labels or numbers, in the order of the columns.
    """

    task = NodeTask()

    def __init__(
        self,
        model: str | Model | ModuleFactory = "gcn",
        partition: str | Partitioner | PartitionFunction = "hash",
        num_shards: int = 20,
        aggregation: str | Aggregator = "routed",
        epochs: int | None = None,
        seed: int = 0,
        device: str = "cpu",
        executor: str | Executor = "local",
        gamma: float = 0.0,
        delta: int | None = None,
        sample: Sample = "auto",
        global_expert: bool | None = None,
        engine: str = "auto",
        members: Sequence[str] | None = None,
        halo: bool = False,
        shards_asked: int = SHARDS_ASKED,
        context: str = DEFAULT_CONTEXT,
        training: Training | None = None,
    ) -> None:
        self.model = model
        self.partition = partition
        self.num_shards = num_shards
        self.aggregation = aggregation
        self.epochs = epochs
        self.seed = seed
        self.device = device
        self.executor = executor
        self.gamma = gamma
        self.delta = delta
        self.sample = sample
        self.global_expert = global_expert
        self.engine = engine
        self.members = members
        self.halo = halo
        self.shards_asked = shards_asked
        self.context = context
        self.training = training

    # -- fitted state -------------------------------------------------------------------------

    @property
    def aggregator_(self) -> BoundAggregator:
        state = self._snapshot.state
        return BoundAggregator(state.aggregator, state.ensemble)

    @property
    def classifier(self) -> GraphEraser | None:
        return self if self.graph_.label_kind.is_classes else None

    @property
    def classes_(self) -> NDArray[Any]:
        graph = self.graph_
        if graph.label_kind.is_numbers:
            raise AttributeError("numbers have no classes_; target_names_ names them.")
        return np.array(graph.class_names or range(graph.num_classes))

    @property
    def target_names_(self) -> tuple[str, ...]:
        return self.graph_.label_kind.target_names

    def __sklearn_tags__(self) -> Any:
        """Return a classifier's tags, or a regressor's once it is fitted to numbers."""
        return self.tags_for(self.graph_.label_kind if self.__sklearn_is_fitted__() else None)

    def tags_for(self, kind: LabelKind | None) -> Any:
        """Return scikit-learn's tags of an eraser that is fitted to such labels."""
        from sklearn.utils import ClassifierTags, RegressorTags

        tags, kind = super().__sklearn_tags__(), kind or LabelKind()
        if kind.is_numbers:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        else:
            several = not kind.is_classes
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags(multi_label=several)
        tags.target_tags.multi_output = not kind.is_classes and kind.count > 1
        return tags

    # -- fitting and predicting ---------------------------------------------------------------

    def fit(self, graph: Graph | Any, *, partition: Partition | None = None) -> Self:
        """Partition the training graph, train every shard, and fit the aggregation.

        Args:
            graph: a `Graph`, or a PyG ``Data``.
            partition: a partition to use as it is, restricted to the nodes that are in shards.
        """
        return self._fit(graph, partition)

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(nodes), num_classes]`` by node id, on the current graph.

        Of several labels, how likely each of them is, by itself.
        """
        refuse_numbers(self.graph_)
        return self.answers(nodes)

    def answers(self, nodes: ArrayLike) -> NDArray[Any]:
        """Return posteriors, or numbers ``[len(nodes), num_classes]``, by node id."""
        state = self._snapshot.state
        return posteriors_at(state, state.graph.positions(nodes))

    def predict(self, nodes: ArrayLike | None = None) -> NDArray[Any]:
        """Return the class of each node, by id; None: of the test nodes.

        Of several labels a row of 0 and 1 for each node: 1 from the probability on that gives the
        best F1 on held-out training nodes, relearned with every request. Of numbers these, a row
        for each node where there are several.
        """
        state = self._snapshot.state
        graph = state.graph
        asked = graph.positions(graph.test_nodes if nodes is None else nodes)
        return said_of(state, posteriors_at(state, asked))

    def predict_to(
        self,
        path: str | Path,
        nodes: ArrayLike | None = None,
        *,
        posteriors: bool = False,
        mitigation: Callable[[NDArray[np.float32]], NDArray[np.float32]] | None = None,
    ) -> Scored:
        """Write the class of every node to a ``.parquet``, ``.csv`` or ``.npz`` file.

        Nodes are judged in blocks, through the executor. Finished blocks are kept in a folder
        beside the file until it is written, so that the same call goes on after an interruption.

        Args:
            path: the file; one that is there is replaced.
            nodes: ids; None: all nodes, by ascending id; of a typed graph those of the target type.
            posteriors: whether to write them as well.
            mitigation: a `Mitigation`, or another function of posteriors ``[m, num_classes]``, to
                be applied to what is written.
        """
        now = self._snapshot
        if mitigation is not None:
            require_classes(now.state.graph, "a mitigation")
        graph = now.state.graph
        every = graph.ids[are_predicted(graph, graph.ids)]
        asked = every if nodes is None else graph.ids_of(nodes)
        return score_nodes(now, asked, Path(path), posteriors=posteriors, mitigation=mitigation)

    def predict_proba_new(
        self,
        x: ArrayLike | sp.sparray | Mapping[str, Any],
        neighbours: Sequence[ArrayLike],
        *,
        edge_weight: Sequence[ArrayLike] | None = None,
        edge_attr: Sequence[ArrayLike] | None = None,
    ) -> NDArray[np.float32]:
        """Posteriors ``[m, num_classes]`` of m nodes that are not in the graph.

        Each is judged as if it alone were a test node with these edges, under the id that follows
        the largest one. Nothing of it is kept.

        Args:
            x: their features ``[m, num_features]``; or a table, where the graph was made of one:
                its rule encodes the cells, and a gap gets the mean that the graph has now.
            neighbours: of each of them a list of the ids of its neighbours; in a directed graph
                edges lead both ways.
            edge_weight: of each of them one number for each neighbour, where edges have weights.
            edge_attr: likewise one row for each neighbour, where edges have features.
        """
        refuse_numbers(self.graph_)
        return predict_proba_new(self._snapshot, x, neighbours, edge_weight, edge_attr)

    def predict_new(
        self,
        x: ArrayLike | sp.sparray | Mapping[str, Any],
        neighbours: Sequence[ArrayLike],
        *,
        edge_weight: Sequence[ArrayLike] | None = None,
        edge_attr: Sequence[ArrayLike] | None = None,
    ) -> NDArray[Any]:
        """The class of each of m nodes that are not in the graph; see `predict_proba_new`."""
        found = predict_proba_new(self._snapshot, x, neighbours, edge_weight, edge_attr)
        return said_of(self._snapshot.state, found)

    def score(self, nodes: ArrayLike | None = None) -> float:
        """Return the micro F1 (with one label per node: accuracy) on labelled nodes, by id.

        Of numbers R2, the mean over targets. None: on the test nodes that have a label.
        """
        return next(iter(self.evaluate(nodes).values()))

    def evaluate(self, nodes: ArrayLike | None = None) -> dict[str, float]:
        """Return all scores on labelled nodes, by id; None: on the test nodes that have a label.

        ``f1``; of classes also ``macro_f1``, ``rarest_f1`` (of the rarest quarter of the classes),
        ``log_loss`` and ``calibration_error``; of several labels also ``auc``, the mean over those
        with both values, and ``accuracy``; of numbers ``r2``, ``rmse`` and ``mae``. The first is
        that of `score`.
        """
        state = self._snapshot.state
        return scores(state, state.graph.labelled_test_nodes if nodes is None else nodes)

    def on(self, graph: Graph | Any) -> OnGraph:
        """Bind these arguments to a graph, as a scikit-learn estimator whose ``X`` is node ids."""
        return OnGraph(self, graph if isinstance(graph, Graph) else Graph.from_pyg(graph))

    def explain(self, node: int | str, target: int | str | None = None) -> Explanation:
        """Name the members of the ensemble that decide about one node, with their weights.

        Args:
            node: its id or name.
            target: which of several labels or numbers, by its number or name; None: the first.
        """
        return self.aggregator_.explain(node, target)

    # -- adding ----------------------------------------------------------------

    def insert(
        self,
        node_id: int | str,
        features: ArrayLike | sp.sparray | Mapping[str, Any],
        label: ArrayLike,
        neighbours: ArrayLike,
        *,
        edge_weight: ArrayLike | None = None,
        edge_attr: ArrayLike | None = None,
    ) -> Receipt:
        """Add one training node with its edges: the short form of `update` with one `AddNodes`.

        Neighbours have no direction: in a directed graph edges lead both ways. Where edges have
        weights or features, each neighbour needs its own; see `Graph.with_node`.
        """
        with self._turn:
            carried = {"edge_weight": edge_weight, "edge_attr": edge_attr}
            graph = self.graph_
            new = one_training_node(graph, node_id, features, label, neighbours, **carried)
            return self._publish(update(self._sound(), new, action="insert"))

    def reshard(self, num_shards: int) -> Receipt:
        """Partition what is left into another number of shards, and fit it afresh.

        The result is that of a new fit on the current graph; the receipts go on. Nothing changes
        before all of it is done.
        """
        with self._turn:
            receipt = self._publish(reshard(self._sound(), num_shards))
            self.num_shards = num_shards
            return receipt

    # -- keeping ------------------------------------------------------------------------------

    def export(self, folder: str | Path, *, onnx: bool = False) -> None:
        """Write the fitted state as files that need nothing of this package.

        State dicts of torch modules, one a shard, arrays, and a model card; see the guide to
        exporting. An export can't forget: what is forgotten later is still in it.

        Args:
            folder: is made; refused where it holds anything already.
            onnx: write shards as ONNX files too; needs the extra ``onnx``.
        """
        # All of it before the first file is written: an export that fails leaves nothing.
        write_export(Path(folder), dict(exported(self._snapshot, onnx=onnx)))
