"""Training from scratch as a competent engineer writes it: PyTorch on sparse matrices.

Rows of bags of words are mostly zeros, so the first layer's linear map is a sparse product; it is
taken before neighbours are summed, which is a sparse product too. Attention is PyG's. The same
function of the same weights as PyG's module on dense features (a test holds it to that), in a
fraction of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grapheraser.graph import UNLABELLED, Graph
from grapheraser.models import ModelSpec
from grapheraser.models.modules import build_module
from grapheraser.partition.kmeans import mean_adjacency
from grapheraser_lab.timing import processor_seconds

Layer = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Sparse:
    """A constant sparse matrix that can be differentiated through, as often as one likes."""

    matrix: sp.csr_array
    transposed: sp.csr_array

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Sparse:
        return cls(matrix, sp.csr_array(matrix.T))

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(self, dense)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    """Sparse times dense; its derivative is another one."""

    @staticmethod
    def forward(ctx: Any, left: Sparse, dense: Tensor) -> Tensor:
        ctx.left = left
        return torch.from_numpy(left.matrix @ dense.detach().numpy())

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor]:
        return None, Sparse(ctx.left.transposed, ctx.left.matrix) @ grad.contiguous()


class SparseLinear(nn.Module):
    """``X W' + b`` of constant sparse rows X, whatever it is handed."""

    def __init__(self, linear: Any, x: sp.csr_array, drop: float) -> None:
        super().__init__()
        self.weight, self.bias = linear.weight, linear.bias
        self.x, self.sparse, self.drop = x, Sparse.of(x), drop

    def forward(self, _: Tensor) -> Tensor:
        rows = self.sparse
        if self.drop and self.training:
            kept = (torch.rand(self.x.nnz).numpy() >= self.drop) / (1 - self.drop)
            data = (self.x.data * kept).astype(np.float32)
            rows = Sparse.of(sp.csr_array((data, self.x.indices, self.x.indptr), self.x.shape))
        out = rows @ self.weight.t().contiguous()
        return out if self.bias is None else out + self.bias


def sparse_module(graph: Graph, spec: ModelSpec) -> tuple[nn.Module, Callable[[], Tensor]]:
    """PyG's module with a sparse first layer, and what computes the logits of all nodes."""
    module: Any = build_module(spec, graph.num_features, graph.num_classes)
    x = sp.csr_array(graph.x).astype(np.float32)
    first: Any = module.get_submodule("conv1")
    for name in ("lin", "res", "lin_l", "lin_r", "nn.0"):
        owner, _, leaf = name.rpartition(".")
        holder = getattr(first, owner, None) if owner else first
        linear = None if holder is None else dict(holder.named_children()).get(leaf)
        if linear is not None:
            setattr(holder, leaf, SparseLinear(linear, x, spec.input_dropout))
    layers = [_layer(module.get_submodule(f"conv{i}"), graph, spec) for i in (1, 2)]
    nothing = torch.empty(graph.num_nodes, 0)

    def logits() -> Tensor:
        h = nothing
        for number, layer in enumerate(layers, start=1):
            h = layer(h)
            if number == 1 or module.head is not None:
                h = module._activate(module.get_submodule(f"norm{number}")(h))
        found: Tensor = h if module.head is None else module.head(h)
        return found

    return module, logits


def _layer(conv: Any, graph: Graph, spec: ModelSpec) -> Layer:
    """A layer as a function of what comes before it; linear maps before sums over neighbours."""
    if spec.kind == "gat":
        edges = torch.from_numpy(graph.edge_index)
        return lambda h: conv(h, edges)
    around = _neighbours(graph, spec)
    if spec.kind == "gcn":
        none = torch.zeros(1)
        bias = none if conv.bias is None else conv.bias
        return lambda h: around @ conv.lin(h) + bias
    if spec.kind == "sage":

        def mean(h: Tensor) -> Tensor:
            linear = conv.lin_l
            own = linear(h) - linear.bias  # a sum over nobody has no bias to add up
            out: Tensor = around @ own + linear.bias + conv.lin_r(h)
            return out

        return mean
    first, *rest = conv.nn

    def perceptron(h: Tensor) -> Tensor:
        h = around @ (first(h) - first.bias) + first.bias
        for step in rest:
            h = step(h)
        return h

    return perceptron


def _neighbours(graph: Graph, spec: ModelSpec) -> Sparse:
    """The matrix by which a model sums over neighbours, with the node itself where it counts."""
    n = graph.num_nodes
    ones = np.ones(len(graph.indices))
    plain = sp.csr_array((ones, graph.indices, graph.indptr), (n, n))
    own = sp.eye_array(n, format="csr")
    if spec.kind == "gcn":
        looped = plain + own if spec.self_loops else plain
        degree: Any = np.asarray(looped.sum(axis=0)).ravel()
        scale = sp.diags_array(np.where(degree > 0, degree, np.inf) ** -0.5)
        return Sparse.of(sp.csr_array(scale @ looped @ scale).astype(np.float32))
    matrix = mean_adjacency(graph) if spec.kind == "sage" or spec.mean else plain
    matrix = matrix if spec.kind == "sage" else matrix + own
    return Sparse.of(sp.csr_array(matrix).astype(np.float32))


def sparse_scratch_seconds(
    graph: Graph, spec: ModelSpec, *, epochs: int, measured: int, repeats: int = 3
) -> list[float]:
    """Processor seconds of so many epochs on the training graph, scaled from those measured."""
    training = graph.training_graph
    y = torch.from_numpy(training.y.copy())
    module, logits = sparse_module(training, spec)
    module.train()
    adam = torch.optim.Adam(module.parameters(), lr=spec.lr, weight_decay=spec.weight_decay)

    def train(count: int) -> None:
        for _ in range(count):
            adam.zero_grad()
            loss = F.cross_entropy(logits(), y, ignore_index=UNLABELLED)
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()

    train(1)  # pays for allocations
    return [processor_seconds(train, measured) * epochs / measured for _ in range(repeats)]
