"""A run under attack beside one of the attacker's own, for benchmarks that attack."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.attacks.shadow import (
    Observations,
    fitted,
    labelled,
    observe,
    parameters,
    resplit,
)
from grapheraser.datasets import default_shards
from grapheraser.execution import LocalExecutor
from grapheraser.graph import TRAIN, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator


@dataclass(frozen=True, eq=False)
class Attacked:
    """Two runs of one configuration.

    Attributes:
        own: the attacker's, on other training nodes, from another seed.
        target: the one under attack.
        name: of the benchmark; what the attacker draws follows from it.
        seed: of everything.
    """

    own: GraphEraser
    target: GraphEraser
    name: str
    seed: int

    @classmethod
    def fit(
        cls,
        graph: Graph,
        options: Mapping[str, Any],
        *,
        dataset: str,
        epochs: int,
        name: str,
        seed: int,
    ) -> Attacked:
        """Fit both, with the paper's number of shards for the data set."""
        target = run_under_attack(graph, options, dataset=dataset, epochs=epochs, seed=seed)
        split = resplit(graph, derive(seed, name))
        return cls(fitted(parameters(target), split, seed + 1), target, name, seed)

    def seen(
        self, how: str, *, requests: int, nodes_per_request: int = 1
    ) -> tuple[Observations, Observations]:
        """Return what the attacker sees of both runs around such requests."""

        def of(run: GraphEraser, who: str) -> Observations:
            return observe(
                run,
                run.graph_,
                how,
                requests=requests,
                nodes_per_request=nodes_per_request,
                seed=derive(self.seed, self.name, who),
            )

        return of(self.own, "shadow"), of(self.target, "target")


def run_under_attack(
    graph: Graph, options: Mapping[str, Any], *, dataset: str, epochs: int, seed: int
) -> GraphEraser:
    """A fitted run, trained in this process."""
    shared = {"num_shards": default_shards(dataset), "epochs": epochs, "seed": seed}
    one = {"executor": LocalExecutor(workers=1)}
    return GraphEraser(**{**shared, **one, **options}).fit(graph)


# -- what class was the node that was just forgotten? -------------------------------------------


def label_attack(
    eraser: GraphEraser, graph: Graph, *, requests: int = 100, seed: int = 0
) -> dict[str, Any]:
    """Forget nodes with neighbours one at a time, each from the run as it is, and guess labels.

    An attacker who sees both versions asks about the forgotten node's neighbours, by id. What they
    held more likely before than after is what the node's label told them.

    Returns: the number of ``requests``, and the shares of labels that are guessed ``right``, by a
    look at the version ``before`` alone, and without a look, as the ``majority``.
    """
    nodes = labelled(graph, TRAIN)
    nodes = nodes[graph.degree[graph.positions(nodes)] > 0]
    chosen = generator(seed, "audit", "labels").permutation(nodes)[:requests]
    right, before, truth = [], [], []
    for node in chosen.tolist():
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
    shares = {"right": float(np.mean(right)), "before": float(np.mean(before))}
    return {"requests": len(truth), **shares, "majority": majority}


def _sums(posteriors: NDArray[np.float32]) -> NDArray[np.float64]:
    return posteriors.astype(np.float64).sum(axis=0)
