"""GNNDelete, for the GCN of `gcn`.

After Cheng et al., "GNNDelete: A General Strategy for Unlearning in Graph Neural Networks", ICLR
2023.

The trained weights stay. Behind each layer comes a deletion operator, a square matrix that acts on
the nodes within so many steps of what was deleted: one behind the first layer, two behind the
second. Only these matrices are trained, each on the loss of its own layer:

- deleted edge consistency: the two ends of a deleted edge look like two random nodes;
- neighbourhood influence: all others whom the operator acts on look as they did.

A node is deleted as its edges. Later requests go on from the matrices of earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.graph import Edges, Graph
from grapheraser_lab.rivals.gcn import Inputs, Weights, hidden, outputs

Ids = NDArray[np.int64]
_NOBODY: Ids = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class DeleteSettings:
    """How the operators are trained.

    Attributes:
        balance: weight of deleted edge consistency beside neighbourhood influence; the paper's 0.5.
        lr: of Adam.
        steps: of Adam, per request.
    """

    balance: float = 0.5
    lr: float = 0.001
    steps: int = 100


@dataclass(frozen=True, eq=False)
class Operators:
    """A deletion operator behind each layer.

    Attributes:
        matrices: ``[h, h]`` and ``[c, c]``.
        acts_on: ids of the nodes that each acts on.
    """

    matrices: tuple[Tensor, Tensor]
    acts_on: tuple[Ids, Ids] = field(default=(_NOBODY, _NOBODY))

    @classmethod
    def identity(cls, weights: Weights) -> Operators:
        """Return operators that change nothing."""
        return cls((torch.eye(weights[2].shape[0]), torch.eye(weights[2].shape[1])))

    def apply(self, layer: int, rows: Tensor, ids: Ids) -> Tensor:
        """Return the output of a layer, behind its operator."""
        near = torch.from_numpy(np.isin(ids, self.acts_on[layer]))[:, None]
        return torch.where(near, rows @ self.matrices[layer], rows)


def deleted_logits(weights: Weights, operators: Operators, inputs: Inputs) -> Tensor:
    """Return the logits of every node, through both operators ``[n, c]``."""
    first = operators.apply(0, hidden(weights, inputs), inputs.ids)
    return operators.apply(1, outputs(weights, inputs, F.relu(first)), inputs.ids)


def trained(
    weights: Weights,
    operators: Operators,
    graph: Graph,
    deleted: NDArray[np.int64],
    settings: DeleteSettings,
    rng: np.random.Generator,
) -> Operators:
    """The operators after one more request.

    Args:
        weights: of the GCN; they stay.
        operators: from the requests before.
        graph: what is served, before the request.
        deleted: edges that go ``[m, 2]``, by id: for nodes, all of theirs.
        settings: how to train.
        rng: draws the nodes that deleted ends should look like.
    """
    ends = np.unique(deleted)
    reached = around(graph, ends, (1, 2))
    wider = (
        np.union1d(operators.acts_on[0], reached[0]),
        np.union1d(operators.acts_on[1], reached[1]),
    )
    if not len(deleted):
        return Operators(operators.matrices, wider)
    matrices = tuple(matrix.clone().requires_grad_() for matrix in operators.matrices)
    grown = Operators((matrices[0], matrices[1]), wider)
    inputs = Inputs.of(unlinked(graph.training_graph, deleted))
    sides = deleted[np.isin(deleted, inputs.ids).all(axis=1)]
    pairs = torch.from_numpy(np.searchsorted(inputs.ids, sides))
    strangers = torch.from_numpy(rng.integers(len(inputs.ids), size=sides.shape))
    originals = hidden(weights, inputs)
    wanted = originals, outputs(weights, inputs, F.relu(originals))
    others = [
        torch.from_numpy(np.flatnonzero(np.isin(inputs.ids, near) & ~np.isin(inputs.ids, ends)))
        for near in wider
    ]
    optimizer = torch.optim.Adam(matrices, lr=settings.lr)
    for _ in range(settings.steps):
        optimizer.zero_grad()
        first = grown.apply(0, originals, inputs.ids)
        # A layer's loss trains its own operator alone.
        second = grown.apply(1, outputs(weights, inputs, F.relu(first.detach())), inputs.ids)
        loss = torch.zeros(())
        for found, target, near in zip((first, second), wanted, others, strict=True):
            if len(pairs):
                random = F.mse_loss(found[pairs], target[strangers])
                loss = loss + settings.balance * random
            if len(near):
                loss = loss + (1 - settings.balance) * F.mse_loss(found[near], target[near])
        if loss.requires_grad:
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    return Operators((matrices[0].detach(), matrices[1].detach()), wider)


def around(graph: Graph, nodes: Ids, steps: Sequence[int]) -> list[Ids]:
    """Ids of all nodes within so many steps of some, themselves included; steps ascend."""
    inside, found = np.unique(nodes), []
    for step in range(1, max(steps) + 1):
        inside = np.union1d(inside, graph.around(inside))
        if step in steps:
            found.append(inside)
    return found


def edges_of(graph: Graph, nodes: Ids) -> NDArray[np.int64]:
    """All edges with an end among the nodes, by id ``[m, 2]``."""
    edges: NDArray[np.int64] = graph.edges
    return edges[np.isin(edges, nodes).any(axis=1)]


def unlinked(graph: Graph, pairs: NDArray[np.int64]) -> Graph:
    """The graph without those of the edges that it holds both ends of; all nodes stay."""
    known = pairs[np.isin(pairs, graph.ids).all(axis=1)]
    return graph.without(Edges(known)) if len(known) else graph
