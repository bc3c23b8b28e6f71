"""Modules as users may write them: some look a few hops far, some at the whole graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import (
    APPNP,
    GCN,
    GATConv,
    GCNConv,
    GINConv,
    GraphNorm,
    GraphSizeNorm,
    SAGEConv,
    Sequential,
    TAGConv,
)

from tests.strategies import TwoHops

Factory = Callable[[int, int], nn.Module]


class TwoLayers(nn.Module):
    """Two convolutions with a norm between them."""

    def __init__(self, first: nn.Module, second: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        self.first, self.second, self.norm = first, second, norm

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = F.dropout(self.norm(self.first(x, edge_index)).relu(), 0.5, self.training)
        scores: Tensor = self.second(h, edge_index)
        return scores


def sage(inputs: int, classes: int) -> nn.Module:
    return TwoLayers(SAGEConv(inputs, 8), SAGEConv(8, classes), nn.BatchNorm1d(8))


def gcn(inputs: int, classes: int) -> nn.Module:
    return TwoLayers(GCNConv(inputs, 8), GCNConv(8, classes), nn.Identity())


def cached_gcn(inputs: int, classes: int) -> nn.Module:
    first, second = GCNConv(inputs, 8, cached=True), GCNConv(8, classes, cached=True)
    return TwoLayers(first, second, nn.Identity())


def gat(inputs: int, classes: int) -> nn.Module:
    first, second = GATConv(inputs, 4, heads=2), GATConv(8, classes, heads=2, concat=False)
    return TwoLayers(first, second, nn.LayerNorm(8))


def gin(inputs: int, classes: int) -> nn.Module:
    def mlp(i: int, o: int) -> nn.Module:
        return nn.Sequential(nn.Linear(i, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, o))

    return TwoLayers(GINConv(mlp(inputs, 8)), GINConv(mlp(8, classes)), nn.BatchNorm1d(8))


def max_sage(inputs: int, classes: int) -> nn.Module:
    first, second = SAGEConv(inputs, 8, aggr="max"), SAGEConv(8, classes, aggr="max")
    return TwoLayers(first, second, nn.BatchNorm1d(8))


def sequential(inputs: int, classes: int) -> nn.Module:
    layers = [(GCNConv(inputs, 8), "x, e -> x"), nn.ReLU(), (SAGEConv(8, classes), "x, e -> x")]
    return Sequential("x, e", layers)


def jumping(inputs: int, classes: int) -> nn.Module:
    return GCN(inputs, 8, 3, classes, jk="cat")


def tag(inputs: int, classes: int) -> nn.Module:
    return TAGConv(inputs, classes, K=3)


class Repeated(nn.Module):
    """One layer, several times."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.linear, self.conv = nn.Linear(inputs, classes), GCNConv(classes, classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.linear(x)
        for _ in range(4):
            h = torch.tanh(self.conv(h, edge_index))
        return h


class Alone(nn.Linear):
    """A node's own features alone."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:  # type: ignore[override]
        return super().forward(x)


# By the number of hops that they look.
LOCAL: dict[Factory, int] = {
    sage: 2,
    gcn: 2,
    cached_gcn: 2,
    gat: 2,
    gin: 2,
    max_sage: 2,
    sequential: 2,
    jumping: 3,
    tag: 3,
    Repeated: 4,
    TwoHops: 2,
    Alone: 0,
}

# Those that divide by the degrees of neighbours.
DIVIDING = {gcn, cached_gcn, sequential, jumping, tag, Repeated}


def graph_norm(inputs: int, classes: int) -> nn.Module:
    return TwoLayers(SAGEConv(inputs, 8), SAGEConv(8, classes), GraphNorm(8))


def size_norm(inputs: int, classes: int) -> nn.Module:
    return TwoLayers(SAGEConv(inputs, 8), SAGEConv(8, classes), GraphSizeNorm())


class OneLayer(nn.Module):
    """What the modules below look at beside the neighbours."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.conv = SAGEConv(inputs, classes)


class GlobalMean(OneLayer):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        return h + h.mean(dim=0)


class ShareOfPositive(OneLayer):
    """A comparison: no NaN comes through it."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        return h + (h > 0).float().mean(dim=0)


class Best(OneLayer):
    """Five nodes of all get something on top."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        best = torch.zeros(len(x), 1)
        best[h[:, 0].topk(5).indices] = 1
        return h + best


class CountsNodes(OneLayer):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        return h / len(x)


class ByPosition(OneLayer):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        return h + torch.arange(len(x))[:, None] % 3


class Branches(OneLayer):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h: Tensor = self.conv(x, edge_index)
        return h if bool(h.mean() > -1000) else -h


class DropsAlways(OneLayer):
    """Dropout in eval mode, too: a mistake, but a user's own."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return F.dropout(self.conv(x, edge_index), 0.5)


class DegreesFarAway(OneLayer):
    """Structure two hops away, through no features at all."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        count = torch.ones(len(x), 1)
        for _ in range(3):
            count = torch.zeros(len(x), 1).index_add(0, edge_index[0], count[edge_index[1]])
        h: Tensor = self.conv(x, edge_index)
        return h + count


def propagates_far(inputs: int, classes: int) -> nn.Module:
    layers = [(nn.Linear(inputs, classes), "x -> x"), (APPNP(10, 0.1), "x, e -> x")]
    return Sequential("x, e", layers)


GLOBAL: list[Factory] = [
    graph_norm,
    size_norm,
    GlobalMean,
    ShareOfPositive,
    Best,
    CountsNodes,
    ByPosition,
    Branches,
    DropsAlways,
    DegreesFarAway,
    propagates_far,
]
