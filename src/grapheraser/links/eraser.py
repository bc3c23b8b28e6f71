"""LinkEraser: fit, predict and rank links, and forget."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.base import Eraser
from grapheraser.eraser.update import update
from grapheraser.errors import ParameterError
from grapheraser.execution import Executor
from grapheraser.graph import AddNodes, Graph
from grapheraser.graph.changes.updates import edges_both_ways
from grapheraser.graph.ids import one_id
from grapheraser.links.answers import fitted_links, predict_links, score_links
from grapheraser.links.facts.answers import (
    FactReasons,
    FactScore,
    explain_fact,
    fitted_facts,
    predict_facts,
    rank_facts,
    score_facts,
)
from grapheraser.links.graph import Sides, given_side
from grapheraser.links.metrics import LinkScore
from grapheraser.links.rank import Ranked, rank
from grapheraser.links.task import LinkTask
from grapheraser.models import Model, ModuleFactory
from grapheraser.partition import Partitioner
from grapheraser.partition.partitioning import PartitionFunction
from grapheraser.receipts import Receipt


class LinkEraser(Eraser):
    """Predicts and ranks links, and forgets nodes, edges and features exactly.

    Labels and the split into training and test nodes have no part in it. The constructor only
    stores its arguments; `fit` checks them.

    Args:
        members: ``"closed-form"`` (numbers that are counted, and a regression on them),
            ``"shards"`` (a GNN encoder per shard) or ``"both"``.
        sample: how many edges, and how many pairs without one, to learn the weights from at the
            most; ``"auto"`` is 1000.
        sides: for bipartite graphs, how to tell the two sides: ``"labels"`` (classes 0 and 1), or
            the smallest id of the second side. Pairs of one side are then no candidates. None:
            any two nodes may be linked.
        model: of the encoders: gcn, sage, gat, gin, mlp, a `ModelSpec`, or a factory
            ``(in_channels, out_channels) -> torch.nn.Module``.
        partition: name of a partition method, a `Partitioner`, or a function.
        num_shards: how many encoders, at least 2.
        epochs: of every encoder's training.
        width: columns of the encoders' output.
        seed: every random number follows from it.
        device: a torch device, for the encoders.
        executor: local, process, ray, or an `Executor`.
        steps: of a typed graph, how many steps a rule may take from head to tail: 1, 2 or 3.

    Attributes:
        graph_: the current graph: nodes, edges and features, and the sides as classes.
        partition_: the shard of every node; one part where there are no shards.
        shards_: weights of the encoders by shard id.
        weights_: the learned weight of each column, by name.
        receipts_: one per change since the fit, oldest first.
        engine_: name of the engine that trains and retrains the encoders.
    """

    task = LinkTask()

    def __init__(
        self,
        members: str = "closed-form",
        sample: int | str = "auto",
        sides: Sides = None,
        model: str | Model | ModuleFactory = "gcn",
        partition: str | Partitioner | PartitionFunction = "hash",
        num_shards: int = 20,
        epochs: int = 100,
        width: int = 32,
        seed: int = 0,
        device: str = "cpu",
        executor: str | Executor = "local",
        steps: int = 2,
    ) -> None:
        self.members = members
        self.sample = sample
        self.sides = sides
        self.model = model
        self.partition = partition
        self.num_shards = num_shards
        self.epochs = epochs
        self.width = width
        self.seed = seed
        self.device = device
        self.executor = executor
        self.steps = steps

    # -- fitted state -------------------------------------------------------------------------

    @property
    def weights_(self) -> dict[str, float]:
        now = self._snapshot
        if now.state.graph.types is not None:
            facts = fitted_facts(now)
            return dict(zip(facts.model.members, facts.weights.tolist(), strict=True))
        return fitted_links(now).named_weights(directed=now.state.graph.directed)

    # -- fitting and predicting ---------------------------------------------------------------

    def fit(self, graph: Graph | Any) -> Self:
        """Learn links from a `Graph`, or a PyG ``Data``; labels are not needed.

        Of a typed graph facts are learned: heads, relations and tails.
        """
        return self._fit(graph)

    def predict_proba(self, pairs: Any) -> NDArray[np.float32]:
        """The probability of a link for each pair of ids ``[m, 2]``, on the current graph.

        In a directed graph a link leads from the first to the second. The probability is that of a
        sample with as many edges as other pairs. A pair with an edge is judged as
        if it had none, so that a prediction does not tell whether there is one. In a typed graph,
        ``pairs`` are facts: triples of a head, a relation and a tail.
        """
        if self._snapshot.state.graph.types is not None:
            return predict_facts(self._snapshot, pairs)
        return predict_links(self._snapshot, pairs)

    def rank(
        self, node: int | str, top: int = 10, *, relation: Any = None, inverse: bool = False
    ) -> Ranked:
        """The most likely new links of a node, best first; in a directed graph out of it.

        Args:
            node: id or name.
            top: how many.
            relation: in a typed graph: the relation, of which the node is the head.
            inverse: the node is the tail, and heads are ranked.
        """
        if self._snapshot.state.graph.types is not None:
            return rank_facts(self._snapshot, node, relation, top, inverse=inverse)
        if relation is not None or inverse:
            raise ParameterError("the edges of this run have no relations.")
        return rank(self._snapshot, node, top)

    @overload
    def score(self, pairs: Any, labels: ArrayLike) -> LinkScore: ...
    @overload
    def score(self, pairs: Any, labels: None = None, *, known: Any = ()) -> FactScore: ...

    def score(
        self, pairs: Any, labels: ArrayLike | None = None, *, known: Any = ()
    ) -> LinkScore | FactScore:
        """AUC, Hits@K and mean reciprocal rank over pairs with label 1 (edges) and 0 (others).

        Args:
            pairs: ``[m, 2]``; in a typed graph facts ``[m, 3]`` that the run was not fitted on,
                each end of which is ranked among all entities that make no known fact.
            labels: of the pairs; facts have none.
            known: further facts that are true, besides these and those of the run.
        """
        if self._snapshot.state.graph.types is not None:
            return score_facts(self._snapshot, pairs, known)
        if labels is None:
            raise ParameterError("'labels' of LinkEraser.score must be 0 or 1 for each pair.")
        return score_links(self._snapshot, pairs, labels)

    def explain(self, fact: Any) -> FactReasons:
        """Name the rules that speak for a fact of a typed graph, judged as if it were not known.

        Args:
            fact: a head, a relation and a tail.
        """
        return explain_fact(self._snapshot, fact)

    # -- adding ----------------------------------------------------------------

    def insert(
        self,
        node_id: int | str,
        features: ArrayLike | sp.sparray,
        neighbours: ArrayLike,
        *,
        side: int | None = None,
        edge_weight: ArrayLike | None = None,
    ) -> Receipt:
        """Add one node with its edges: the short form of `update` with one `AddNodes`.

        ``side`` is 0 or 1 where labels tell the sides. Where edges have weights, each neighbour
        needs its own. Neighbours have no direction: in a directed graph edges lead both ways.
        """
        with self._turn:
            now = self._sound()
            node = one_id(node_id, "node_id", "LinkEraser.insert")
            edges = edges_both_ways(now.state.graph.edge_kind, node, neighbours, edge_weight)
            y = given_side(now.arguments["sides"], side)
            new = AddNodes([node], features, y, **edges)
            return self._publish(update(now, new, action="insert"))

    # -- keeping ------------------------------------------------------------------------------

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        model: Model | ModuleFactory | None = None,
        partition: Partitioner | PartitionFunction | None = None,
        executor: str | Executor = "local",
        device: str | None = None,
    ) -> Self:
        """Read a run back.

        Args:
            path: its folder.
            model: the factory of the encoders, where it was the user's own.
            partition: the partitioner, where it was the user's own.
            executor: as in the constructor; it has no part in the results.
            device: where to train, instead of where the run was fitted.
        """
        return cls._load(path, executor, device, model=model, partition=partition)
