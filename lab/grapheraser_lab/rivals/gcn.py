"""The GCN that the approximate methods start from: two layers on sparse features.

The same function as PyG's `GCNConv` layers (a test holds it to them), without the zeros: on bags of
words it trains many times faster, and whatever is compared with it gets that speed too. It is a
function of its weights, which are a plain tuple, so that gradients and Hessians are easy to take.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.graph import UNLABELLED, Graph
from grapheraser.models import PRESETS
from grapheraser.seeding import derive
from grapheraser_lab.bench.sparse import Sparse

SPEC = PRESETS["gcn"]
EPOCHS = 100
# Weight and bias of both layers: [d, h], [h], [h, c], [c].
Weights = tuple[Tensor, ...]


def looped(graph: Graph) -> sp.csr_array:
    """The adjacency matrix of a graph, with self-loops ``[n, n]``."""
    n = graph.num_nodes
    plain = sp.csr_array((np.ones(len(graph.indices)), graph.indices, graph.indptr), (n, n))
    return sp.csr_array(plain + sp.eye_array(n, format="csr"))


@dataclass(frozen=True, eq=False)
class Inputs:
    """A graph as the GCN sees it.

    Attributes:
        ids: of the nodes ``[n]``, ascending.
        features: ``[n, d]``.
        adjacency: ``[n, n]``, with self-loops, normalised by degrees on both sides.
        y: classes ``[n]``, `UNLABELLED` where there is no loss.
    """

    ids: NDArray[np.int64]
    features: Sparse
    adjacency: Sparse
    y: Tensor

    @classmethod
    def of(cls, graph: Graph) -> Inputs:
        adjacency = looped(graph)
        scale = sp.diags_array(1 / np.sqrt(adjacency.sum(axis=0)))
        normalised = sp.csr_array(scale @ adjacency @ scale).astype(np.float32)
        return cls(
            ids=np.asarray(graph.ids, dtype=np.int64),
            features=Sparse.of(sp.csr_array(graph.x).astype(np.float32)),
            adjacency=Sparse(normalised, normalised),  # undirected: its own transpose
            y=torch.from_numpy(np.array(graph.y, dtype=np.int64)),
        )

    @property
    def num_labelled(self) -> int:
        return int((self.y != UNLABELLED).sum())


@dataclass(frozen=True, eq=False)
class View:
    """A graph to ask about, read by the GCN where it is the one that is asked."""

    graph: Graph

    @cached_property
    def inputs(self) -> Inputs:
        return Inputs.of(self.graph)


def hidden(weights: Weights, inputs: Inputs) -> Tensor:
    """The first layer's output, before the activation ``[n, h]``."""
    return inputs.adjacency @ (inputs.features @ weights[0]) + weights[1]


def outputs(weights: Weights, inputs: Inputs, active: Tensor) -> Tensor:
    """The second layer's output, given what follows the first one's activation ``[n, c]``."""
    return inputs.adjacency @ (active @ weights[2]) + weights[3]


def logits(weights: Weights, inputs: Inputs) -> Tensor:
    """Return the logits of every node, without dropout ``[n, c]``."""
    return outputs(weights, inputs, F.relu(hidden(weights, inputs)))


def posteriors(logits: Tensor, inputs: Inputs, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the posteriors of the nodes named ``[len(nodes), c]``."""
    at = torch.from_numpy(np.searchsorted(inputs.ids, nodes))
    return torch.softmax(logits.detach()[at], dim=1).numpy()


def objective(weights: Weights, inputs: Inputs) -> Tensor:
    """Return the training loss as a sum over nodes: each brings its share of the weight decay."""
    entropy = F.cross_entropy(
        logits(weights, inputs), inputs.y, ignore_index=UNLABELLED, reduction="sum"
    )
    norm = torch.stack([weight.square().sum() for weight in weights]).sum()
    return entropy + inputs.num_labelled * SPEC.weight_decay / 2 * norm


def train(
    inputs: Inputs,
    num_classes: int,
    seed: int,
    everybody: NDArray[np.int64],
    epochs: int = EPOCHS,
    start: Weights | None = None,
) -> Weights:
    """Weights after full-batch training with the settings of the preset ``gcn``.

    Args:
        inputs: to train on.
        num_classes: of the graph, whoever is left of it.
        seed: of the initial weights and of dropout.
        everybody: all nodes that were ever trained on, ascending. Dropout is drawn for them all, so
            that those who are left see the same of it whoever was forgotten: two trainings from
            one seed are as close as they can be.
        epochs: of Adam.
        start: weights to go on from; default fresh ones.
    """
    draws = torch.Generator().manual_seed(derive(seed, "peers", "train") >> 1)
    shapes = ((inputs.features.matrix.shape[1], SPEC.hidden), (SPEC.hidden, num_classes))
    weights: list[Tensor] = [weight.clone() for weight in start or ()]
    for inner, out in shapes if start is None else ():
        bound = (6 / (inner + out)) ** 0.5
        weights += [(torch.rand(inner, out, generator=draws) * 2 - 1) * bound, torch.zeros(out)]
    for weight in weights:
        weight.requires_grad_()
    optimizer = torch.optim.Adam(weights, lr=SPEC.lr, weight_decay=SPEC.weight_decay)
    rows = torch.from_numpy(np.searchsorted(everybody, inputs.ids))
    keep = 1 - SPEC.dropout
    for _ in range(epochs):
        optimizer.zero_grad()
        kept = (torch.rand(len(everybody), SPEC.hidden, generator=draws) < keep)[rows] / keep
        found = outputs(tuple(weights), inputs, F.relu(hidden(tuple(weights), inputs)) * kept)
        loss = F.cross_entropy(found, inputs.y, ignore_index=UNLABELLED)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return tuple(weight.detach() for weight in weights)
