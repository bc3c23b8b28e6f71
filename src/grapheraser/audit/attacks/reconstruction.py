"""What of a forgotten node does someone reconstruct who sees both versions?

After the question of GraphToxin (Song and Palanisamy, "GraphToxin: Reconstructing Full Unlearned
Graphs from Graph Unlearning", arXiv 2511.10936): its links and its features, for nodes at random
and for the nodes of the highest degree. There, gradients are matched to what two models differ in.
An exact eraser makes that needless: nothing else differs, so answers are compared as they are.

- Links: nodes about which the versions differ most, asked by id, were its neighbours.
- Features: nodes with one feature and no edge are handed over, one for each column. Where the
  answers differ most, the forgotten node had the feature.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.audit.attacks.asking import ask, state_of
from grapheraser.audit.attacks.posterior_features import logarithms
from grapheraser.audit.attacks.shadow import labelled
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Interval, auc, mean_interval
from grapheraser.eraser import GraphEraser
from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, Graph, Nodes
from grapheraser.seeding import generator

RANDOM, HIGHEST_DEGREE = "at random", "of the highest degree"
# No more columns than these are asked about.
_MOST_COLUMNS = 2000


@dataclass(frozen=True)
class ReconstructionResult:
    """How well links and features of forgotten nodes are told.

    Attributes:
        requests: how many nodes were forgotten, one at a time, by how they were chosen.
        links: mean AUC of telling neighbours from other nodes, likewise.
        features: mean AUC of telling columns that the node had from other ones, likewise.
    """

    requests: dict[str, int]
    links: dict[str, Interval]
    features: dict[str, Interval]

    def to_dict(self) -> dict[str, Any]:
        return {
            "requests": self.requests,
            "links": {name: figure.to_dict() for name, figure in self.links.items()},
            "features": {name: figure.to_dict() for name, figure in self.features.items()},
        }


def reconstruction_attack(
    eraser: GraphEraser,
    graph: Graph,
    *,
    requests: int = 20,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> ReconstructionResult:
    """Forget nodes one at a time, each from the run as it is, and reconstruct them.

    Args:
        eraser: fitted on ``graph``; it is left as it is.
        graph: the run's graph.
        requests: nodes at random, and as many of the highest degree.
        seed: which nodes.
        budget: stops early when it is spent.
    """
    nodes = labelled(graph, TRAIN)
    degree = graph.degree[graph.positions(nodes)]
    if not (degree > 0).any():
        raise ParameterError("this attack needs training nodes with edges (found none).")
    linked = nodes[degree > 0]
    rng = generator(seed, "audit", "reconstruction")
    groups = {
        RANDOM: rng.permutation(linked)[:requests],
        HIGHEST_DEGREE: nodes[np.argsort(-degree, kind="stable")[:requests]],
    }
    probes, columns = _probes(graph, rng)
    known = logarithms(ask(state_of(eraser), probes, probes.ids))
    before = logarithms(eraser.predict_proba(graph.ids))
    links: dict[str, Interval] = {}
    features: dict[str, Interval] = {}
    done: dict[str, int] = {}
    for number, (name, chosen) in enumerate(groups.items()):
        share = budget.share(1 / (len(groups) - number))
        found: list[tuple[float, float]] = []
        for at in share.rounds(len(chosen), least=min(5, len(chosen))):
            node = int(chosen[at])
            after = copy.copy(eraser)
            after.unlearn(Nodes([node]))
            others = graph.ids != node
            moved = np.abs(before[others] - logarithms(after.predict_proba(graph.ids[others])))
            neighbour = np.isin(graph.ids[others], graph.neighbours(node))
            shifted = np.abs(known - logarithms(ask(state_of(after), probes, probes.ids)))
            had = np.isin(columns, _columns_of(graph, node))
            found.append((auc(moved.sum(axis=1), neighbour), auc(shifted.sum(axis=1), had)))
        told = np.array(found)
        done[name] = len(told)
        links[name] = mean_interval(told[:, 0], seed=seed)
        features[name] = mean_interval(told[:, 1], seed=seed)
    return ReconstructionResult(done, links, features)


def _probes(graph: Graph, rng: np.random.Generator) -> tuple[Graph, NDArray[np.int64]]:
    """Nodes with one feature each and no edges, and their columns."""
    columns = np.sort(rng.permutation(graph.num_features)[:_MOST_COLUMNS])
    count = len(columns)
    ones = np.ones(count, dtype=np.float32)
    x = sp.csr_array((ones, (np.arange(count), columns)), shape=(count, graph.num_features))
    none = np.zeros((2, 0), dtype=np.int64)
    labels = np.zeros(count, dtype=np.int64)
    probes = Graph.from_arrays(
        x if not graph.pages.dense else x.toarray(),
        none,
        labels,
        test=np.arange(count),
        num_classes=graph.num_classes,
    )
    return probes.with_context(graph.context), columns


def _columns_of(graph: Graph, node: int) -> NDArray[np.int64]:
    row = graph.x[graph.positions([node])]
    dense = row.toarray() if sp.issparse(row) else np.asarray(row)
    return np.flatnonzero(dense[0])
