"""GraphEraser: fit, predict, unlearn, insert."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.aggregation import Aggregator, BoundAggregator, Ensemble, Explanation, Sample
from grapheraser.eraser import settings as settings_of
from grapheraser.eraser.conventions import Estimator, Turn
from grapheraser.eraser.plan import Plan
from grapheraser.eraser.recommend import AUTO, recommend_cut
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.state import State, fit_state
from grapheraser.eraser.unlearn import unlearn
from grapheraser.eraser.update import insert
from grapheraser.eraser.verify import Verification, verify
from grapheraser.eraser.warmup import warm_up
from grapheraser.errors import CorruptRunError, GraphEraserError, GraphError, NotFittedError
from grapheraser.execution import Executor
from grapheraser.graph import Graph, Request
from grapheraser.models import Model, ModuleFactory
from grapheraser.partition import Partition, Partitioner, partition_graph
from grapheraser.partition.base import EVERYTHING
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.partition.placing import given
from grapheraser.receipts import Ends, Receipt, digest_of
from grapheraser.store import RunLock, RunState, load_run, save_run
from grapheraser.training import ShardWeights, check_module


class GraphEraser(Estimator):
    """An ensemble of isolated shard models that forgets nodes and edges exactly.

    The constructor only stores its arguments; `fit` checks them.

    Args:
        model: gcn, sage, gat, gin or mlp, one of the paper's variants (``"gcn:paper"``), a
            `ModelSpec`, or a factory ``(in_channels, out_channels) -> torch.nn.Module`` whose
            modules have ``forward(x, edge_index)``.
        partition: name of a partition method, ``"auto"`` (what `recommend` advises), a
            `Partitioner`, or a function ``(graph, num_shards, seed) -> labels``.
        num_shards: k; 1 is training from scratch.
        aggregation: name of an aggregation or an `Aggregator`.
        epochs: of every shard's training.
        seed: every random number follows from it.
        device: a torch device.
        executor: local, process, or an `Executor`.
        gamma: slack of the shards' capacity, 0 (strictly balanced) to 1 (none).
        delta: the capacity itself, instead of ``gamma``.
        sample: the training nodes that an aggregation learns from, where it learns: a share in
            (0, 1], a count, ``"all"``, or ``"auto"`` (10 %, but 1000 at the most).
        global_expert: add a closed-form model of the whole training graph to the ensemble; it
            forgets as exactly as the shards do. ``"wide"``: one that tells more features apart and
            takes longer to forget. None: where several shards are routed, but not with the
            paper's own aggregations (mean, majority, learned).
        engine: auto, pyg, cpu or cuda.

    Attributes:
        graph_: the current graph.
        partition_: the shard of every training node.
        shards_: weights by shard id.
        aggregator_: the fitted aggregator; ``aggregator_.explain(node)`` says who decides.
        receipts_: one per change since the fit, oldest first.
        engine_: name of the engine that trained the shards, and will train them again.
    """

    def __init__(
        self,
        model: str | Model | ModuleFactory = "gcn",
        partition: str | Partitioner | PartitionFunction = "hash",
        num_shards: int = 20,
        aggregation: str | Aggregator = "routed",
        epochs: int = 100,
        seed: int = 0,
        device: str = "cpu",
        executor: str | Executor = "local",
        gamma: float = 0.0,
        delta: int | None = None,
        sample: Sample = "auto",
        global_expert: bool | str | None = None,
        engine: str = "auto",
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
        self._turn = Turn()  # requests from several threads are carried out one by one

    # -- fitted state -------------------------------------------------------------------------

    @property
    def graph_(self) -> Graph:
        return self._state.graph

    @property
    def partition_(self) -> Partition:
        return self._state.partition

    @property
    def shards_(self) -> Mapping[int, ShardWeights]:
        return self._state.shards

    @property
    def aggregator_(self) -> BoundAggregator:
        return BoundAggregator(self._state.aggregator, self._state.ensemble)

    @property
    def receipts_(self) -> tuple[Receipt, ...]:
        return self._now.receipts

    @property
    def engine_(self) -> str:
        return self._settings.engine.name

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in self.__dict__

    @property
    def _settings(self) -> Settings:
        return self._now.settings

    @property
    def _state(self) -> State:
        return self._now.state

    @property
    def _now(self) -> Snapshot:
        """What the last fit or request left. Read it once per call: the next time it may differ."""
        fitted: Snapshot | None = self.__dict__.get("_fitted")
        if fitted is None:
            raise NotFittedError(
                "this GraphEraser is not fitted yet.", hint="call fit(graph) first, or load a run."
            )
        return fitted

    # -- fitting and predicting ---------------------------------------------------------------

    def fit(self, graph: Graph | Any, *, partition: Partition | None = None) -> Self:
        """Cut the training graph into shards, train every shard, and fit the aggregation.

        Args:
            graph: a `Graph`, or a PyG ``Data``.
            partition: a partition to use as it is, restricted to the training nodes of ``graph``.
        """
        graph = graph if isinstance(graph, Graph) else Graph.from_pyg(graph)
        _check_trainable(graph)
        arguments = self.get_params()
        settings = settings_of.resolve(arguments)
        warm_up(settings)
        if partition is None:
            partition = self._partition(graph)
        else:
            partition = given(partition, graph, settings.partitioner)
        configuration = settings_of.describe(arguments, settings)
        state = fit_state(settings, graph, partition)
        # The fingerprint is worked out now, so that no request has to wait for it.
        ends = Ends(graph.fingerprint, digest_of(configuration))
        with self._turn:
            self._fitted = Snapshot(settings, state, configuration, (), ends)
        return self

    def predict_proba(self, nodes: ArrayLike) -> NDArray[np.float32]:
        """Posteriors ``[len(nodes), num_classes]`` by node id, on the current graph."""
        return self._now.predict_proba(nodes)

    def predict(self, nodes: ArrayLike) -> NDArray[np.int64]:
        """The class of each node, by id."""
        return self.predict_proba(nodes).argmax(axis=1)

    def score(self, nodes: ArrayLike) -> float:
        """Micro F1 (with one label per node: accuracy) on labelled nodes, by id."""
        return self._now.score(nodes)

    def explain(self, node: int) -> Explanation:
        """Which members of the ensemble decide about one node, with what weight."""
        return self.aggregator_.explain(node)

    # -- forgetting and adding ----------------------------------------------------------------

    def plan(self, request: Request | Sequence[Request]) -> Plan:
        """What `unlearn` would do, without doing it."""
        return self._now.plan(request)

    def unlearn(self, request: Request | Sequence[Request]) -> Receipt:
        """Forget nodes, edges or features, and everything that was learned from them.

        A list of requests is one batch: each touched shard is trained once. If anything fails,
        nothing has changed.
        """
        with self._turn:
            self._fitted = unlearn(self._now, request)
            return self._fitted.receipts[-1]

    def insert(
        self, node_id: int, features: ArrayLike | sp.sparray, label: int, neighbours: ArrayLike
    ) -> Receipt:
        """Add one training node with its edges, and train the shard that it joins again.

        It joins the shard that holds most of its neighbours; if it has none there, or that shard
        is full, the smallest one (under ``hash`` and any other data-free cut, the one that its id
        says).
        """
        with self._turn:
            self._fitted = insert(self._now, node_id, features, label, neighbours)
            return self._fitted.receipts[-1]

    # -- proof --------------------------------------------------------------------------------

    def verify(self) -> Verification:
        """Train again from the remaining data alone and compare every tensor bit for bit.

        Under a data-free partition the cut itself is made again too. The receipts must follow one
        another from the graph that was fitted to this one, and say what is so of this state.
        """
        return verify(self._now)

    # -- keeping ------------------------------------------------------------------------------

    def save(self, path: str | Path, *, lock: RunLock | None = None, replace: bool = False) -> None:
        """Write the run to a folder, all or nothing; what was forgotten leaves it.

        A run that is there already may have no receipts that this one lacks, unless ``replace``.
        """
        now = self._now
        state = now.state
        run = RunState(
            configuration=now.configuration | _kept(now.ends),
            graph=state.graph,
            partition=state.partition,
            shards=state.shards,
            aggregator=dict(state.aggregator.tensors),
            receipts=now.receipts,
        )
        save_run(Path(path), run, lock=lock, replace=replace)

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        model: Model | ModuleFactory | None = None,
        partition: Partitioner | PartitionFunction | None = None,
        aggregation: Aggregator | None = None,
        executor: str | Executor = "local",
        device: str | None = None,
    ) -> GraphEraser:
        """Read a run back.

        Args:
            path: its folder.
            model: again, where the run was fitted with the user's own module.
            aggregation: again, where it was the user's own.
            partition: likewise; needed only to cut, or to place nodes under a data-free cut.
            executor: as in the constructor; it has no part in the results.
            device: where to train, instead of where the run was fitted; of another kind, or on a
                machine without that one, the run can predict, but not train a shard again.
        """
        run = load_run(Path(path))
        own = {"model": model, "partition": partition, "aggregation": aggregation}
        try:
            configuration, ends = _split(run.configuration)
            arguments = settings_of.restore(configuration, own)
            eraser = cls(**{**arguments, "executor": executor})
            eraser.device = device or eraser.device
            settings = settings_of.resolve(eraser.get_params(), configuration["resolved"])
            settings_of.check(configuration, settings, own)
            aggregator = settings.aggregator.restore(run.aggregator)
            check_module(settings.training.model, run.shards.values(), run.graph)
        except GraphEraserError:
            raise
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise CorruptRunError(f"{path}: its settings don't fit ({error!r}).") from error
        parts = run.graph, run.partition, run.shards
        ensemble = Ensemble(*parts, settings.training.model, settings.seed)
        state = State(ensemble, aggregator)
        eraser._fitted = Snapshot(settings, state, configuration, run.receipts, ends)
        return eraser

    # -- inside -------------------------------------------------------------------------------

    def _partition(self, graph: Graph) -> Partition:
        method, chosen_by = self.partition, frozenset[str]()
        if method == AUTO:
            advice = recommend_cut(
                graph,
                self.model,
                num_shards=self.num_shards,
                epochs=self.epochs,
                seed=self.seed,
                engine=self.engine,
                device=self.device,
            )
            # Which method was taken depends on the data, even where the method itself does not.
            method, chosen_by = advice.partition, EVERYTHING
        partition = partition_graph(
            graph,
            method,
            num_shards=self.num_shards,
            seed=self.seed,
            gamma=self.gamma,
            delta=self.delta,
        )
        return replace(partition, inputs=partition.inputs | chosen_by)


def _check_trainable(graph: Graph) -> None:
    if graph.num_nodes == 0:
        raise GraphError(f"graph '{graph.name}' has no nodes.")
    if len(graph.train_nodes) == 0:
        raise GraphError(f"graph '{graph.name}' has no training nodes.")
    if graph.num_features == 0:
        raise GraphError(f"graph '{graph.name}' has no feature columns.")


# Beside the settings in a saved run, and no part of their digest.
_ENDS = "history"


def _kept(ends: Ends | None) -> dict[str, Any]:
    return {} if ends is None else {_ENDS: asdict(ends)}


def _split(kept: dict[str, Any]) -> tuple[dict[str, Any], Ends | None]:
    """The settings of a saved run, and the ends of its receipts where it has them."""
    configuration = {key: value for key, value in kept.items() if key != _ENDS}
    try:
        return configuration, Ends(**kept[_ENDS])
    except (KeyError, TypeError):
        return configuration, None
