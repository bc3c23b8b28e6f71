"""Several labels and numbers: closed-form members against GCN and SAGE, trained from scratch.

Targets are made of public graphs, so that the data are the reader's as well: columns of the
features that nobody gets to see are several labels; how many of a block of hidden columns a node
has, and a mixture of its own features, its neighbours' and its degree, are numbers. Generated
graphs with overlapping groups have several labels too, also inductively: validation and test nodes
then are graphs of their own, as in PPI.

GNNs are two layers in sparse PyTorch with binary cross-entropy or squared error. Their width,
dropout and weight decay are chosen, and the epoch to stop at, on validation nodes alone. The
members have no setting to choose. Every side sees the same graph and split.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.graph import Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.nodes.metrics import measured
from grapheraser.seeding import generator
from grapheraser_lab.figures.tables import markdown_table

# Width; dropout and weight decay.
_GRID = tuple((width, *less) for width, less in product((64, 256), ((0.2, 0.0), (0.5, 5e-4))))
_EPOCHS, _PATIENCE, _RATE = 300, 40, 0.01
_SHARES = (0.6, 0.2)  # of training and of validation nodes
DATASETS = ("generated", "cora", "citeseer", "pubmed", "facebook_pages", "flickr", "physics")
Made = tuple[str, Graph]


def run(
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = ("gcn", "sage"),
    *,
    root: str | Path | None = None,
    seeds: int = 3,
    requests: int = 20,
    folder: str | Path = "runs/targets",
    device: str = "cpu",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Score both sides on test nodes, and forget some training nodes one by one.

    Args:
        datasets: which graphs; ``generated`` stands for those with overlapping groups.
        models: the GNNs.
        root: folder of the public graphs.
        seeds: targets, splits and models are seeded with 0, 1, 2, ...
        requests: training nodes to forget.
        folder: where trained GNNs' scores are kept; what is there is not trained again.
        device: of torch, for the GNNs.
        progress: told how far it is.
    """
    models, rows = tuple(models), []
    for name in datasets:
        cells: dict[str, list[dict[str, Any]]] = {}
        for seed in range(seeds):
            for task, graph in _worlds(name, root, seed):
                progress(f"{name}, {task}, seed {seed}")
                cell = {"seed": seed, **_members(graph, seed, requests)}
                for model in models:
                    cell[model] = _kept(Path(folder), name, task, graph, model, seed, device)
                cell["ratio"] = cell["score"] / max(cell[model]["test"] for model in models)
                cells.setdefault(task, []).append(cell)
        rows += [_row(name, task, found, models) for task, found in cells.items()]
    ratios = {
        kind: [row["ratio"]["mean"] for row in rows if row["kind"] == kind]
        for kind in ("several", "numbers")
    }
    summary = {
        kind: {"mean": float(np.mean(found)), "least": min(found)}
        for kind, found in ratios.items()
        if found
    }
    return {"benchmark": "targets", "versions": versions(), "rows": rows, "summary": summary}


def train(
    name: str,
    folder: str | Path,
    device: str = "cuda",
    *,
    root: str | Path | None = None,
    seeds: int = 3,
) -> None:
    """Train the GNNs of one graph alone, for a later `run` with the same folder."""
    for seed in range(seeds):
        for task, graph in _worlds(name, root, seed):
            for model in ("gcn", "sage"):
                _kept(Path(folder), name, task, graph, model, seed, device)


def _kept(
    folder: Path, name: str, task: str, graph: Graph, model: str, seed: int, device: str
) -> dict[str, Any]:
    """Return a tuned GNN's scores; train it unless they are kept."""
    file = folder / f"{name}-{task}-{model}-{seed}.json".replace(" ", "-").replace(",", "")
    if not file.exists():
        found = _tuned(graph, model, seed, device)
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
    kept: dict[str, Any] = json.loads(file.read_text())
    return kept


def _row(
    name: str, task: str, cells: list[dict[str, Any]], models: tuple[str, ...]
) -> dict[str, Any]:
    """Summarise the seeds of one kind of targets."""
    found = {
        "score": [cell["score"] for cell in cells],
        "ratio": [cell["ratio"] for cell in cells],
        **{model: [cell[model]["test"] for cell in cells] for model in models},
    }
    cost = {
        key: float(np.median([cell[key] for cell in cells]))
        for key in ("request", "request_of_classes")
    }
    told = {key: _mean_and_error(values) for key, values in found.items()}
    kind = {key: cells[0][key] for key in ("kind", "targets")}
    return {"dataset": name, "task": task, **kind, **told, **cost, "cells": cells}


def _mean_and_error(values: list[float]) -> dict[str, float | None]:
    """Return the mean and its standard error; None of a single value."""
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else None
    return {"mean": float(np.mean(values)), "error": error}


def markdown(report: dict[str, Any]) -> str:
    """The report as a table."""
    gnns = [name for name in ("gcn", "sage") if name in report["rows"][0]]
    rows = [
        (
            row["dataset"],
            row["task"],
            row["kind"],
            *(_told(row[key]) for key in ("score", *gnns, "ratio")),
            f"{1000 * row['request']:.1f} ms",
            f"{1000 * row['request_of_classes']:.1f} ms",
            f"{row['request'] / row['request_of_classes']:.2f}",
        )
        for row in report["rows"]
    ]
    heads = ("graph", "targets", "kind", "members", *gnns, "ratio")
    return markdown_table((*heads, "a request", "of classes", "times"), rows)


def _told(found: dict[str, float | None]) -> str:
    error = "" if found["error"] is None else f" ± {found['error']:.3f}"
    return f"{found['mean']:.3f}{error}"


# -- worlds ---------------------------------------------------------------------------------------


def _worlds(name: str, root: str | Path | None, seed: int) -> Iterator[Made]:
    if name == "generated":
        yield "overlapping groups", _generated(seed, inductive=False)
        yield "overlapping groups, inductive", _generated(seed, inductive=True)
        return
    graph = load_dataset(name, root)
    x, rng = sp.csr_array(graph.x), generator(seed, "bench", "targets", name)
    held = np.diff(x.tocsc().indptr)
    common = np.argsort(-held, kind="stable")
    hidden = common[5:45:4]  # ten columns that are neither everywhere nor nowhere
    shown = np.setdiff1d(np.arange(x.shape[1]), hidden)
    several = (x[:, hidden].toarray() > 0).astype(np.int64)
    yield "hidden columns", _split(graph, x[:, shown], several, rng, "several")
    block = common[2:122:2]
    shown = np.setdiff1d(np.arange(x.shape[1]), block)
    count = (x[:, block].toarray() > 0).sum(axis=1).astype(np.float64)
    yield "how many of 60 hidden columns", _split(graph, x[:, shown], count, rng, "numbers")
    yield "features and degree", _split(graph, x, _driven(graph, x, rng), rng, "numbers")


def _driven(graph: Graph, x: sp.csr_array, rng: np.random.Generator) -> NDArray[np.float64]:
    """Mix a node's own features, the mean of its neighbours' and its degree, with noise."""
    unit = sp.csr_array(
        x.multiply(1 / np.maximum(np.sqrt(x.multiply(x).sum(axis=1)), 1e-9)[:, None])
    )
    own, around = (unit @ rng.normal(size=x.shape[1]) for _ in range(2))
    ones = np.ones(len(graph.indices))
    adjacency = sp.csr_array((ones, graph.indices, graph.indptr), shape=(graph.num_nodes,) * 2)
    means = adjacency @ around / np.maximum(graph.degree, 1)
    parts = [own, means, np.log1p(graph.degree), rng.normal(size=graph.num_nodes)]
    weights = (1.0, 1.0, 0.7, 0.5)
    return sum(w * (p - p.mean()) / p.std() for w, p in zip(weights, parts, strict=True))


def _split(graph: Graph, x: Any, y: NDArray[Any], rng: np.random.Generator, labels: str) -> Graph:
    order = rng.permutation(graph.ids)
    train, validation = (int(s * len(order)) for s in _SHARES)
    both = train + validation
    return Graph.from_arrays(
        x,
        graph.edges.T,
        y,
        ids=graph.ids,
        train=order[:train],
        validation=order[train:both],
        test=order[both:],
        labels=labels,
        each_edge_once=True,
        name=graph.name,
    )


def _generated(seed: int, *, inductive: bool, parts: int = 5, size: int = 600) -> Graph:
    """Nodes in two of twelve groups each; labels are of groups, features hint at them."""
    rng = generator(seed, "bench", "targets", "generated", str(inductive))
    n, groups, labels = parts * size, 12, 8
    member = np.zeros((n, groups), dtype=bool)
    for _ in range(2):
        member[np.arange(n), rng.integers(0, groups, n)] = True
    signs = rng.normal(size=(groups, labels))
    y = (member @ signs + 0.4 * rng.normal(size=(n, labels)) > 0.5).astype(np.int64)
    y[rng.random(y.shape) < 0.1] = -1
    y[(y < 0).all(axis=1), 0] = 0
    x = member @ rng.normal(size=(groups, 40)) + 2.0 * rng.normal(size=(n, 40))
    part = np.arange(n) // size if inductive else np.zeros(n, dtype=np.int64)
    edges = []
    for _ in range(8 * n):
        u = int(rng.integers(n))
        group = rng.choice(np.flatnonzero(member[u]))
        mates = member[:, group] & (part == part[u]) if rng.random() < 0.8 else part == part[u]
        v = int(rng.choice(np.flatnonzero(mates)))
        edges.append((u, v))
    order = np.arange(n) if inductive else rng.permutation(n)
    cuts = (3 * n // 5, 4 * n // 5)
    train, validation, test = np.split(order, cuts)
    roles: dict[str, Any] = {"train": train, "validation": validation, "test": test}
    pairs = np.array([pair for pair in edges if pair[0] != pair[1]]).T
    name = "generated-inductive" if inductive else "generated"
    return Graph.from_arrays(x, pairs, y, **roles, labels="several", name=name)


# -- the two sides --------------------------------------------------------------------------------


def _members(graph: Graph, seed: int, requests: int) -> dict[str, Any]:
    eraser = GraphEraser("closed-form", seed=seed).fit(graph)
    kind = graph.label_kind
    # The same graph with as many classes as there are targets.
    rng = generator(seed, "bench", "targets", "classes")
    classes = rng.integers(0, max(2, kind.count), graph.num_nodes)
    roles: dict[str, Any] = {"train": graph.train_nodes, "test": graph.test_nodes}
    other = Graph.from_arrays(
        graph.x, graph.edges.T, classes, ids=graph.ids, **roles, each_edge_once=True
    )
    with_classes = GraphEraser("closed-form", seed=seed).fit(other)
    return {
        "kind": kind.name,
        "targets": kind.count,
        "score": eraser.score(),
        "validation": eraser.score(graph.validation_nodes),
        "scores": eraser.evaluate(),
        "weights": eraser.aggregator_.fitted.weights,  # type: ignore[attr-defined]
        "request": _request_seconds(eraser, seed, requests),
        "request_of_classes": _request_seconds(with_classes, seed, requests),
    }


def _request_seconds(eraser: GraphEraser, seed: int, requests: int) -> float:
    """Forget training nodes one by one; return the median of the processor's seconds."""
    order = generator(seed, "bench", "targets", "forgotten").permutation(eraser.graph_.train_nodes)
    taken = []
    for node in order[: requests + 3].tolist():
        started = time.process_time()
        eraser.unlearn(Nodes([node]))
        taken.append(time.process_time() - started)
    return float(np.median(taken[3:]))


class _Layers(nn.Module):
    """Two layers of GCN, or of SAGE with means."""

    def __init__(self, model: str, columns: int, width: int, outputs: int, dropout: float) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(columns, width), nn.Linear(width, outputs)
        self.own = model == "sage"
        self.first_own = nn.Linear(columns, width) if self.own else None
        self.second_own = nn.Linear(width, outputs) if self.own else None
        self.dropout = dropout

    def forward(self, x: _Matrix, adjacency: _Matrix) -> Tensor:
        h = adjacency @ _linear(self.first, x)
        if self.first_own is not None:
            h = h + _linear(self.first_own, x)
        h = F.dropout(F.relu(h), self.dropout, self.training)
        out = adjacency @ self.second(h)
        return out + self.second_own(h) if self.second_own is not None else out


class _Matrix:
    """A sparse matrix that gradients flow through, but not to; or a dense one."""

    def __init__(self, matrix: Any, device: str) -> None:
        if not isinstance(matrix, np.ndarray):
            self.ways = [_sparse(each).to(device) for each in (matrix, matrix.T)]
        else:
            self.ways = [torch.tensor(matrix, device=device)] * 2

    def __matmul__(self, other: Tensor) -> Tensor:
        if self.ways[0].layout is torch.strided:
            return self.ways[0] @ other
        product: Tensor = _Product.apply(*self.ways, other)  # type: ignore[no-untyped-call]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, transposed: Tensor, other: Tensor) -> Tensor:
        ctx.transposed = transposed
        return matrix @ other

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, None, Tensor]:
        return None, None, ctx.transposed @ gradients[0]


def _linear(layer: nn.Linear, x: _Matrix) -> Tensor:
    return x @ layer.weight.T + layer.bias


def _tuned(graph: Graph, model: str, seed: int, device: str) -> dict[str, Any]:
    """Train every setting; keep the one with the best score on validation nodes."""
    x, adjacency = _inputs(graph, model, device)
    found = [_trained(graph, model, x, adjacency, seed, device, *setting) for setting in _GRID]
    best = max(found, key=lambda one: one["validation"])
    where = "cpu" if device == "cpu" else torch.cuda.get_device_name(device)
    return best | {"settings": len(found), "device": where}


def _inputs(graph: Graph, model: str, device: str) -> tuple[_Matrix, _Matrix]:
    ones = np.ones(len(graph.indices), dtype=np.float32)
    n = graph.num_nodes
    adjacency: Any = sp.csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
    if model == "gcn":
        adjacency = sp.csr_array(adjacency + sp.eye_array(n, dtype=np.float32))
        root = sp.diags_array(1 / np.sqrt(np.asarray(adjacency.sum(axis=1)).ravel()))
        adjacency = root @ adjacency @ root
    else:
        degree = np.maximum(np.asarray(adjacency.sum(axis=1)).ravel(), 1)
        adjacency = sp.diags_array(1 / degree) @ adjacency
    dense = graph.x.nnz > 0.2 * n * graph.num_features
    x = graph.x.toarray() if dense else graph.x
    return _Matrix(x, device), _Matrix(adjacency, device)


def _sparse(matrix: Any) -> Tensor:
    found = sp.csr_array(matrix).astype(np.float32)
    found.sort_indices()
    rows, columns = (torch.tensor(part.astype(np.int64)) for part in (found.indptr, found.indices))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse", UserWarning)  # CSR tensors are in beta state
        return torch.sparse_csr_tensor(rows, columns, torch.tensor(found.data), found.shape)


def _trained(
    graph: Graph,
    model: str,
    x: _Matrix,
    adjacency: _Matrix,
    seed: int,
    device: str,
    width: int,
    dropout: float,
    decay: float,
) -> dict[str, Any]:
    torch.manual_seed(seed)
    kind, started = graph.label_kind, time.process_time()
    rows = kind.rows(graph.y)
    train, validation, test = (
        graph.positions(nodes)
        for nodes in (graph.train_nodes, graph.validation_nodes, graph.test_nodes)
    )
    mean, spread = np.nanmean(rows[train], axis=0), np.nanstd(rows[train], axis=0) + 1e-12
    scaled = (rows - mean) / spread if kind.is_numbers else rows
    y = torch.tensor(scaled[train], dtype=torch.float32, device=device)
    learned = torch.tensor(train, device=device)
    known = ~torch.isnan(y)
    loss_of = F.mse_loss if kind.is_numbers else F.binary_cross_entropy_with_logits
    module = _Layers(model, graph.num_features, width, kind.count, dropout).to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=_RATE, weight_decay=decay)
    best = {"validation": -np.inf, "test": -np.inf, "epoch": 0}
    for epoch in range(_EPOCHS):
        module.train()
        optimizer.zero_grad()
        loss = loss_of(module(x, adjacency)[learned][known], y[known])
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if epoch % 5 == 4:
            module.eval()
            with torch.no_grad():
                out = module(x, adjacency).double().cpu()
            said = (out.numpy() * spread + mean) if kind.is_numbers else torch.sigmoid(out).numpy()
            scores = [
                next(iter(measured(kind, graph.y[nodes], said[nodes]).values()))
                for nodes in (validation, test)
            ]
            if scores[0] > best["validation"]:
                best = {"validation": scores[0], "test": scores[1], "epoch": epoch}
            if epoch - best["epoch"] > _PATIENCE:
                break
    setting = {"width": width, "dropout": dropout, "weight_decay": decay}
    return best | setting | {"seconds": time.process_time() - started}
