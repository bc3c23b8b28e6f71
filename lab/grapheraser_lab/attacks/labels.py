"""Labels: what class was the node that was just forgotten?

An attacker who sees both versions asks about the forgotten node's neighbours, by id. What they held
more likely before than after is what the node's label told them.
"""

from __future__ import annotations

import copy
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.attacks.shadow import labelled
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.graph import TRAIN, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import generator


@dataclass(frozen=True)
class LabelResult:
    """How often the label of a forgotten node is guessed.

    Attributes:
        requests: how many nodes were forgotten, one at a time.
        right: share of them whose label the fall of the neighbours' posteriors gives.
        before: the same from the neighbours' posteriors before the request alone: what a look at
            one version gives.
        majority: share of the most frequent class among them: what a guess without a look gives.
    """

    requests: int
    right: float
    before: float
    majority: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def label_attack(
    eraser: GraphEraser,
    graph: Graph,
    *,
    requests: int = 100,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> LabelResult:
    """Forget nodes one at a time, each from the run as it is, and guess their labels.

    Args:
        eraser: fitted on ``graph``; it is left as it is.
        graph: the run's graph.
        requests: how many nodes; each has a neighbour.
        seed: which nodes.
        budget: stops early when it is spent.
    """
    nodes = labelled(graph, TRAIN)
    nodes = nodes[graph.degree[graph.positions(nodes)] > 0]
    chosen = generator(seed, "audit", "labels").permutation(nodes)[:requests]
    right, before, truth = [], [], []
    for number in budget.rounds(len(chosen), least=min(10, len(chosen))):
        node = int(chosen[number])
        around = graph.neighbours(node)
        after = copy.copy(eraser)
        old = eraser.predict_proba(around)
        after.unlearn(Nodes([node]))
        fall = _sums(old) - _sums(after.predict_proba(around))
        label = int(graph.y[graph.positions([node])[0]])
        right.append(int(fall.argmax()) == label)
        before.append(int(_sums(old).argmax()) == label)
        truth.append(label)
    majority = float(np.bincount(truth).max() / len(truth))
    return LabelResult(len(truth), float(np.mean(right)), float(np.mean(before)), majority)


def _sums(posteriors: NDArray[np.float32]) -> NDArray[np.float64]:
    return posteriors.astype(np.float64).sum(axis=0)
