"""Plant a class that does not exist, forget it, and see whether it is still predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from grapheraser import checks
from grapheraser.audit.attacks.asking import ask, state_of
from grapheraser.audit.attacks.shadow import fitted, labelled
from grapheraser.eraser import GraphEraser
from grapheraser.graph import TRAIN, Graph, Nodes
from grapheraser.seeding import generator
from grapheraser.training import digest_tensors


@dataclass(frozen=True)
class PlantedResult:
    """How often the planted class was predicted.

    Attributes:
        planted: how many training nodes carried it.
        nodes: how many predictions were counted over: all other nodes of the graph, and the
            planted ones handed back with their edges.
        before: predictions of it by the run that was trained on it.
        after: once exactly those nodes are forgotten.
        never: by a run that never saw them, with the same partition.
        identical: whether the weights of the last two are the same, bit for bit.
    """

    planted: int
    nodes: int
    before: int
    after: int
    never: int
    identical: bool

    @property
    def passed(self) -> bool:
        """Whether forgetting gave what never having seen gives."""
        return self.identical and self.after == self.never

    def to_dict(self) -> dict[str, Any]:
        return {**self.__dict__, "passed": self.passed}


def plant_and_forget(
    graph: Graph, params: Mapping[str, Any], *, share: float = 0.3, seed: int = 0
) -> PlantedResult:
    """Relabel a share of the training nodes with a class of their own, train, forget them.

    Args:
        graph: it is left as it is; the class is one more than it has.
        params: arguments of the run.
        share: of the labelled training nodes, above 0 and below 1; large enough that the class is
            learned, or forgetting it shows nothing.
        seed: which nodes.
    """
    checks.real("share", "plant_and_forget", share, above=0, below=1)
    train = labelled(graph, TRAIN)
    count = max(1, int(share * len(train)))
    # The stream keeps the name that it had when the figures of the guide were measured.
    chosen = np.sort(generator(seed, "audit", "replay").permutation(train)[:count])
    planted = graph.num_classes
    y = graph.y.copy()
    y[graph.positions(chosen)] = planted
    poisoned = replace(graph, y=y, num_classes=planted + 1)

    run = fitted(params, poisoned)
    before = _count(run, poisoned, chosen, planted)
    partition = run.partition_
    run.unlearn(Nodes(chosen.tolist()))
    after = _count(run, poisoned, chosen, planted)
    clean = poisoned.without(Nodes(chosen.tolist()))
    never = GraphEraser(**params).fit(clean, partition=partition)
    same = run.shards_.keys() == never.shards_.keys() and all(
        run.shards_[shard].digest == never.shards_[shard].digest for shard in run.shards_
    )
    same &= digest_tensors(run.aggregator_.tensors) == digest_tensors(never.aggregator_.tensors)
    return PlantedResult(
        planted=count,
        nodes=graph.num_nodes,
        before=before,
        after=after,
        never=_count(never, poisoned, chosen, planted),
        identical=bool(same),
    )


def _count(run: GraphEraser, graph: Graph, chosen: np.ndarray[Any, Any], planted: int) -> int:
    others = np.setdiff1d(graph.ids, chosen)
    handed_back = ask(state_of(run), graph, chosen).argmax(axis=1)
    return int((run.predict(others) == planted).sum() + (handed_back == planted).sum())
