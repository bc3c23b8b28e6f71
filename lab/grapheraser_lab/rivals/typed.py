"""Rivals on typed graphs: R-GCN, and an MLP on path means, which is SeHGNN's recipe.

The MLP has rows of path means, a projection of each, and layers on top. Both train on all of the
target type's training nodes at once, on any device of torch, and need no more of the package than
the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from grapheraser.graph import Graph

RGCN, MLP = "R-GCN", "MLP on path means"
# Of equally good settings the first is taken.
GRIDS: dict[str, list[dict[str, Any]]] = {
    RGCN: [{"layers": n, "dropout": d} for n, d in product((2, 3), (0.3, 0.6))],
    MLP: [{"power": p, "dropout": d} for p, d in product((1.0, 0.5), (0.3, 0.6))],
}
_WIDTH = 64
# Ends of paths that an MLP may have in its rows; others count by their labels alone.
_MAX_ENDS = 2 * 10**7


def _joins(graph: Graph) -> dict[tuple[str, str], sp.csr_array]:
    """Return matrices between the types of a graph, one for each relation and direction."""
    types = graph.types
    assert types is not None
    counts = np.bincount(types.of(graph.ids), minlength=len(types.names))
    facts = graph.facts
    found = {}
    for number, (source, _, target) in enumerate(types.relations):
        rows, columns = types.numbers(facts[facts[:, 1] == number][:, [0, 2]]).T
        shape = counts[types.index(source)], counts[types.index(target)]
        made = sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        if source == target:
            found[source, target] = sp.csr_array(made + made.T)
        else:
            found[source, target], found[target, source] = made, sp.csr_array(made.T)
    return found


def _averaged(matrix: sp.csr_array) -> sp.csr_array:
    totals = np.maximum(np.asarray(matrix.sum(axis=1)).ravel(), 1e-12)
    return sp.csr_array(sp.diags_array(1.0 / totals) @ matrix)


def trained(
    method: str, graph: Graph, setting: Mapping[str, Any], *, epochs: int, seed: int, device: str
) -> dict[str, Any]:
    """Train a rival; report the epoch that is best on the validation nodes."""
    import torch

    torch.manual_seed(seed)
    model = (_RelationalGCN if method == RGCN else _PathMLP)(graph, setting, device)
    assert graph.types is not None
    y = torch.from_numpy(graph.y[graph.types.of(graph.ids) == 0].copy()).to(device)
    parts = {
        name: torch.from_numpy(np.array(getattr(graph, f"{name}_nodes"))).to(device)
        for name in ("train", "validation", "test")
    }
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    best = {"validation": -1.0, "test": 0.0, "epoch": 0}
    for epoch in range(epochs):
        model.train()
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model()[parts["train"]], y[parts["train"]])
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        model.eval()
        with torch.no_grad():
            right = model().argmax(dim=1) == y
        scores = {name: float(right[nodes].float().mean()) for name, nodes in parts.items()}
        if scores["validation"] > best["validation"]:
            best = {"epoch": epoch, "validation": scores["validation"], "test": scores["test"]}
    return best


def _RelationalGCN(graph: Graph, setting: Mapping[str, Any], device: str) -> Any:  # noqa: N802
    """Return an R-GCN: learned rows of nodes, means of neighbours by relation and direction."""
    import torch
    from torch import nn

    assert graph.types is not None
    target = graph.types.target
    joins = {pair: _tensor(_averaged(m), device) for pair, m in _joins(graph).items()}
    counts = {target: matrix.shape[0] for (target, _), matrix in joins.items()}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.ParameterDict(
                {kind: nn.Parameter(0.1 * torch.randn(n, _WIDTH)) for kind, n in counts.items()}
            )
            widths = [_WIDTH] * setting["layers"] + [graph.num_classes]
            self.layers = nn.ModuleList()
            for i in range(setting["layers"]):
                names = [f"{a}-{b}" for a, b in joins] + list(counts)
                shape = widths[i], widths[i + 1]
                self.layers.append(nn.ModuleDict({name: nn.Linear(*shape) for name in names}))

        def forward(self) -> Any:
            rows = dict(self.rows.items())
            for i in range(len(self.layers)):
                layer: Any = self.layers[i]
                rows = {
                    kind: nn.functional.dropout(x, setting["dropout"], self.training)
                    for kind, x in rows.items()
                }
                new = {kind: layer[kind](x) for kind, x in rows.items()}
                for (a, b), matrix in joins.items():
                    new[a] = new[a] + layer[f"{a}-{b}"](torch.sparse.mm(matrix, rows[b]))
                last = i + 1 == len(self.layers)
                rows = new if last else {kind: x.relu() for kind, x in new.items()}
            return rows[target]

    return Model().to(device)


def _PathMLP(graph: Graph, setting: Mapping[str, Any], device: str) -> Any:  # noqa: N802
    """Return an MLP on means over the paths that the closed form reads, a projection of each."""
    import torch
    from torch import nn

    ends = list(ends_of(graph))
    blocks = [_averaged(sp.csr_array(block)) for block in ends]
    for block in blocks:
        block.data **= setting["power"]
    # Shares of classes are nowhere zero.
    inputs = [
        torch.from_numpy(block.toarray().astype(np.float32)).to(device)
        if block.nnz == block.shape[0] * block.shape[1]
        else _tensor(block, device)
        for block in blocks
    ]

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ParameterList(
                nn.Parameter(0.1 * torch.randn(block.shape[1], _WIDTH)) for block in blocks
            )
            self.rest = nn.Sequential(
                nn.BatchNorm1d(_WIDTH * len(blocks)),
                nn.ReLU(),
                nn.Dropout(setting["dropout"]),
                nn.Linear(_WIDTH * len(blocks), 2 * _WIDTH),
                nn.ReLU(),
                nn.Dropout(setting["dropout"]),
                nn.Linear(2 * _WIDTH, graph.num_classes),
            )

        def forward(self) -> Any:
            parts = zip(inputs, self.first, strict=True)
            return self.rest(torch.cat([x @ w for x, w in parts], dim=1))

    return Model().to(device)


def ends_of(graph: Graph) -> Iterator[sp.csr_array]:
    """Count the ends of paths of one and two steps, and the labels at those of the target type."""
    assert graph.types is not None
    joins, target = _joins(graph), graph.types.target
    count = next(own.shape[0] for (first, _), own in joins.items() if first == target)
    labels = np.zeros((count, graph.num_classes))
    labels[graph.train_nodes, graph.labels(graph.train_nodes)] = 1
    for (first, kind), own in joins.items():
        if first != target:
            continue
        yield own
        if kind == target:
            yield sp.csr_array(own @ labels + 1.0 / graph.num_classes)
        for (second, end), more in joins.items():
            if second != kind:
                continue
            if np.diff(more.indptr)[own.indices].sum() <= _MAX_ENDS:
                through = sp.csr_array(own @ more)
                if end == target:
                    through.setdiag(0)
                yield through
            if end == target:
                back = np.asarray(own.multiply(more.T).sum(axis=1)).reshape(-1, 1)
                told = own @ (more @ labels) - back * labels
                yield sp.csr_array(told + 1.0 / graph.num_classes)


def _tensor(matrix: sp.csr_array, device: str) -> Any:
    import torch

    at = matrix.tocoo()
    places = torch.from_numpy(np.stack([at.row, at.col]).astype(np.int64))
    values = torch.from_numpy(at.data.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, at.shape).coalesce().to(device)
