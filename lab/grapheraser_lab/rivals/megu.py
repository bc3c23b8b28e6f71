"""MEGU, for the GCN of `gcn`.

After Li et al., "Towards Effective and General Graph Unlearning via Mutual Evolution", AAAI 2024.

Two modules are trained together: the GCN itself, on the graph without what was deleted, and a
linear map of its logits, which unlearns. Both losses look at what the GCN said before the request:

- where nodes were deleted, the map is driven away from that, and the GCN towards the map;
- at the neighbours that were influenced most, the GCN is held to it, and the map to the GCN.

Influenced most are the neighbours within two hops whose smoothed features point elsewhere once the
deleted nodes' own are inverted. A deleted node stays in training without its edges; the ends of a
deleted edge count as deleted. Answers are corrected and smoothed along the edges that are left,
towards what the GCN said of training nodes before. Later requests go on from the weights of earlier
ones; the map begins afresh.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.nn import CorrectAndSmooth

from grapheraser.graph import Edges, Graph, Nodes
from grapheraser_lab.rivals.gcn import SPEC, Inputs, Weights, hidden, logits, outputs
from grapheraser_lab.rivals.gnndelete import around, edges_of, unlinked

Ids = NDArray[np.int64]
_HOPS, _TEMPERATURE, _LAYERS = 2, 1.5, 80
_LEAST = 1e-6  # weight of a loss
_FIRST, _STEP = 0.1, 0.1  # of the similarity below which a neighbour counts as influenced


@dataclass(frozen=True)
class MutualSettings:
    """How the modules are trained, and how answers are smoothed.

    Attributes:
        kappa: weight of the deleted nodes' loss.
        lr: of plain gradient descent.
        steps: of it, per request.
        correction: share of a neighbour's error that is passed on.
        smoothing: likewise of its answer.
    """

    kappa: float = 0.01
    lr: float = 0.1
    steps: int = 100
    correction: float = 0.8
    smoothing: float = 0.5


def evolved(
    weights: Weights,
    graph: Graph,
    request: Nodes | Edges,
    settings: MutualSettings,
    draws: torch.Generator,
) -> Weights:
    """The weights after a request.

    The loss at the deleted nodes has no lower bound, and where no neighbour is influenced nothing
    holds it: where the weights diverge, they are trained again with a tenth of its weight.

    Args:
        weights: before it.
        graph: the training graph before it.
        request: what goes.
        settings: how to train.
        draws: the map's first weights, and dropout.
    """
    named = np.asarray(request.ids if isinstance(request, Nodes) else request.pairs, dtype=np.int64)
    gone = np.intersect1d(named, graph.ids)
    edges = edges_of(graph, gone) if isinstance(request, Nodes) else named.reshape(-1, 2)
    before = Inputs.of(graph)
    told = logits(weights, before).argmax(dim=1)
    there, near = (
        torch.from_numpy(np.searchsorted(before.ids, some))
        for some in (gone, influenced(before, graph, gone))
    )
    inputs = Inputs.of(unlinked(graph, edges))
    classes = weights[3].shape[0]
    bound = classes**-0.5
    first = [(torch.rand(shape, generator=draws) * 2 - 1) * bound for shape in
             ((classes, classes), (classes,))]  # fmt: skip
    trained = [part.clone().requires_grad_() for part in (*weights, *first)]
    optimizer = torch.optim.SGD(trained, lr=settings.lr)
    keep = 1 - SPEC.dropout
    for _ in range(settings.steps if len(gone) else 0):
        optimizer.zero_grad()
        own = tuple(trained[:4])
        kept = (torch.rand(len(inputs.ids), SPEC.hidden, generator=draws) < keep) / keep
        said = outputs(own, inputs, F.relu(hidden(own, inputs)) * kept)
        loss = settings.kappa * (
            _towards(said[there], (mapped := said @ trained[4] + trained[5])[there])
            - F.cross_entropy(mapped[there], told[there])
        )
        if len(near):
            loss = loss + _towards(mapped[near], said[near])
            loss = loss + F.cross_entropy(said[near], told[near])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    if settings.kappa > _LEAST and not all(torch.isfinite(part).all() for part in trained):
        less = replace(settings, kappa=settings.kappa / 10)
        return evolved(weights, graph, request, less, draws)
    return tuple(part.detach() for part in trained[:4])


def _towards(student: Tensor, teacher: Tensor) -> Tensor:
    """Kullback-Leibler divergence of softened answers; the teacher is held still."""
    softened = F.log_softmax(student / _TEMPERATURE, dim=1)
    target = F.softmax(teacher.detach() / _TEMPERATURE, dim=1)
    return F.kl_div(softened, target, reduction="batchmean")


def influenced(inputs: Inputs, graph: Graph, deleted: Ids) -> Ids:
    """Neighbours of deleted nodes whose smoothed features turn most when those are inverted."""
    step, x = inputs.adjacency.matrix, inputs.features.matrix.toarray()
    turned = x.copy()
    rows = graph.positions(deleted)
    turned[rows] = 1 - turned[rows]
    plain, other = step @ (step @ x), step @ (step @ turned)
    lengths = np.linalg.norm(plain, axis=1) * np.linalg.norm(other, axis=1)
    similar = (plain * other).sum(axis=1) / np.maximum(lengths, 1e-8)
    (near,) = around(graph, deleted, (_HOPS,))
    near = np.setdiff1d(near, deleted)
    return near[similar[graph.positions(near)] <= _threshold(similar)]


def _threshold(similar: NDArray[np.float64]) -> float:
    """Raise the threshold until another step lets in nobody who is more alike."""
    alpha, most = _FIRST, 0.0
    while True:
        below = similar[similar <= alpha]
        if len(below):
            if below.max() == most:
                return alpha
            most = float(below.max())
        alpha += _STEP


def smoothed_answers(
    answers: NDArray[np.float32], graph: Graph, told: Ids, settings: MutualSettings
) -> NDArray[np.float32]:
    """Correct and smooth the answers about all nodes of a graph.

    Args:
        answers: posteriors ``[n, c]``.
        graph: that is asked about.
        told: the class of each node by the GCN of before ``[n]``, -1 of others than training nodes.
        settings: how far answers are passed on.
    """
    shares = settings.correction, settings.smoothing
    passes = CorrectAndSmooth(_LAYERS, shares[0], _LAYERS, shares[1], autoscale=False, scale=1.0)
    known, edges = torch.from_numpy(told >= 0), torch.from_numpy(graph.edge_index)
    given = torch.from_numpy(told[told >= 0]), known, edges
    found = passes.smooth(passes.correct(torch.from_numpy(answers), *given), *given).numpy()
    total = np.maximum(found.sum(axis=1, keepdims=True), 1e-12)
    return np.asarray(found / total, dtype=np.float32)
