"""Modules of typed graphs: what they are given, and the relational GCN that is built in.

A module of a typed graph has ``forward(x_dict, edge_index_dict)``, as PyG's ``HeteroData`` has
both. The engine and inference know one matrix of rows, so `TypedModule` stands between the two.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from grapheraser.errors import ParameterError
from grapheraser.kernels.typed import PER_COLUMN

if TYPE_CHECKING:
    from grapheraser.graph.types import Types

WEIGHTS = "edge_weight_dict"


class TypedModule(nn.Module):
    """A module of a typed graph as one of a graph without types.

    Rows of ``x`` ascend by id, so those of one type lie side by side; their last column is the
    number of the type. ``edge_attr`` is what entries of the adjacency carry (see `graph.types`).
    Types without features have a column of ones. Relations come with their opposites, by the name
    ``rev_...``, also where no edge has them. Scores are those of nodes of the target type.
    """

    def __init__(self, module: nn.Module, types: Types) -> None:
        super().__init__()
        self.module = module
        self.types = types
        self.weighs = WEIGHTS in inspect.signature(module.forward).parameters
        self._seen: tuple[Tensor, tuple[Any, Any, Any]] | None = None

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> Tensor:
        # A shard trains on the same tensors in every epoch.
        if self._seen is None or self._seen[0] is not x:
            self._seen = (x, self._arguments(x, edge_index, edge_attr))
        rows, edges, weights = self._seen[1]
        found = self.module(rows, edges, **({WEIGHTS: weights} if self.weighs else {}))
        if not self.training:
            self._seen = None
        scores = found[self.types.target] if isinstance(found, Mapping) else found
        own = int((x[:, -1] == 0).sum())
        if not isinstance(scores, Tensor) or scores.ndim != 2 or len(scores) != own:
            shape = tuple(getattr(scores, "shape", ()))
            raise ParameterError(
                f"a module of a typed graph must return scores [{own}, classes] of the nodes of "
                f"type '{self.types.target}', or a dict with them. Got {shape}."
            )
        return torch.cat([scores, scores.new_zeros(len(x) - own, scores.shape[1])])

    def _arguments(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor) -> tuple[Any, Any, Any]:
        """Return features by type, and edges and their weights by relation."""
        types, kinds = self.types, x[:, -1].long()
        ends = torch.searchsorted(kinds, torch.arange(len(types.names) + 1))
        first, rows = ends[:-1], {}
        for index, name in enumerate(types.names):
            a, b = types.starts[index : index + 2]
            own = x[ends[index] : ends[index + 1]]
            rows[name] = own[:, a:b] if b > a else own.new_ones(len(own), 1)
        sources, targets = edge_index
        edges, weights = {}, {}
        for number, relation in enumerate(types.relations):
            a, b = types.index(relation[0]), types.index(relation[2])  # of both ends
            up, down = map(int, types.bits[:, number])
            bits = torch.where(sources < targets, up, down)
            held = edge_attr.gather(1, (bits // PER_COLUMN)[:, None])[:, 0].long()
            there = (held >> (bits % PER_COLUMN)) & 1 != 0
            there &= (kinds[sources] == a) & (kinds[targets] == b)
            pairs = torch.stack([sources[there] - first[a], targets[there] - first[b]])
            carried = edge_attr[there].new_ones(pairs.shape[1])
            if types.weighted[number]:
                columns = types.weight_columns[up], types.weight_columns[down]
                chosen = torch.where(sources < targets, *columns)[there]
                carried = edge_attr[there].gather(1, chosen[:, None])[:, 0]
            for key, way in zip(types.ways_of(number), (pairs, pairs.flip(0)), strict=True):
                edges[key], weights[key] = way, carried
        return rows, edges, weights


class RelationalGCN(nn.Module):
    """Mean over the neighbours of each relation, its own weights for each, and for the node itself.

    Args:
        types: the schema.
        out_channels: classes, or targets.
        hidden: units of the layers before the last.
        layers: how many.
        dropout: on hidden units, while training.
    """

    def __init__(
        self, types: Types, out_channels: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.names, self.ways, self.dropout = types.names, types.metadata[1], dropout
        self.lift = nn.ModuleList(nn.Linear(types.in_channels[name], hidden) for name in self.names)
        self.own, self.near = nn.ModuleList(), nn.ModuleList()
        for layer in range(layers):
            out = out_channels if layer + 1 == layers else hidden
            self.own.append(nn.ModuleList(nn.Linear(hidden, out) for _ in self.names))
            linear = (nn.Linear(hidden, out, bias=False) for _ in self.ways)
            self.near.append(nn.ModuleList(linear))

    def forward(
        self,
        x_dict: Mapping[str, Tensor],
        edge_index_dict: Mapping[Any, Tensor],
        edge_weight_dict: Mapping[Any, Tensor],
    ) -> Tensor:
        rows = {
            name: self._hidden(lift(x_dict[name]))
            for name, lift in zip(self.names, self.lift, strict=True)
        }
        parts: Any = zip(self.own, self.near, strict=True)
        for layer, (own, near) in enumerate(parts):
            new = {n: part(rows[n]) for n, part in zip(self.names, own, strict=True)}
            for way, part in zip(self.ways, near, strict=True):
                source, _, target = way
                weight, count = edge_weight_dict[way], len(rows[target])
                mean = _mean(rows[source], edge_index_dict[way], weight, count)
                new[target] = new[target] + part(mean)
            last = layer + 1 == len(self.own)
            rows = new if last else {name: self._hidden(h) for name, h in new.items()}
        return rows[self.names[0]]

    def _hidden(self, h: Tensor) -> Tensor:
        return F.dropout(F.relu(h), self.dropout, self.training)


def _mean(x: Tensor, edges: Tensor, weight: Tensor, count: int) -> Tensor:
    """Return the weighted mean of what leads to each node; 0 where nothing does."""
    sources, targets = edges
    total = x.new_zeros(count).index_add(0, targets, weight.abs())
    sums = x.new_zeros(count, x.shape[1]).index_add(0, targets, x[sources] * weight[:, None])
    return sums / total.clamp(min=1e-12)[:, None]
