"""Few labels: F1 on the published splits beside a plain PyG loop, both sides in one run.

Every side sees the whole graph (``context="all"``) unless it says otherwise, with the features of
each node scaled to sum 1. The PyG loop and one shard have the same model and settings; the others
have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch

from grapheraser.datasets import load_dataset
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.models import ModelSpec
from grapheraser.nodes import GraphEraser
from grapheraser_lab.bench.comparison import pyg_f1, pyg_module
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework.cell import KINDS, Cell, Kind
from grapheraser_lab.framework.runner import measured_f1

EPOCHS = 200
SPEC = ModelSpec("gcn", hidden=16, weight_decay=5e-4)
PYG, ONE, DEFAULT, CLOSED = SIDES = ("PyG loop", "one shard", "20 shards", "closed-form")
LESS = {f"{CLOSED}, {context}": context for context in ("none", "unlabelled")}
# Arguments of a GraphEraser by side.
ARGUMENTS: dict[str, dict[str, Any]] = {
    ONE: {"model": SPEC, "num_shards": 1, "epochs": EPOCHS},
    DEFAULT: {},
    CLOSED: {"model": "closed-form"},
    **{side: {"model": "closed-form", "context": context} for side, context in LESS.items()},
}
# Told as shares of the PyG loop; one shard, as points apart from it.
SHARES = (DEFAULT, CLOSED)


def run(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed"),
    *,
    seeds: int = 5,
    folder: str | Path = "runs/public",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train every data set on every side; minutes, nearly all of it PyG.

    Returns: a JSON-able report with every single F1.
    """
    cells = {
        (name, side): [Cell.of("public", dataset=name, side=side, seed=n) for n in range(seeds)]
        for name, side in product(datasets, (*SIDES, *LESS))
    }
    f1 = measured_f1(cells, folder, progress)
    rows = [
        {"dataset": name, "f1": {side: f1[name, side] for side in (*SIDES, *LESS)}}
        for name in dict.fromkeys(key[0] for key in cells)
    ]
    return {"benchmark": "public", "epochs": EPOCHS, "rows": rows}


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Micro F1 of one side on one published split."""
    graph, side, seed = published(config["dataset"]), config["side"], config["seed"]
    if side == PYG:
        return {"f1": loop_f1(graph, SPEC, EPOCHS, seed)}
    options = {"context": "all", "seed": seed, "executor": LocalExecutor(workers=1)}
    return {"f1": GraphEraser(**options | ARGUMENTS[side]).fit(graph).score(graph.test_nodes)}


def loop_f1(graph: Graph, spec: ModelSpec, epochs: int, seed: int) -> float:
    """Micro F1 of a plain loop on the whole graph, with a loss on the training nodes."""
    torch.manual_seed(seed)
    whole = graph.with_context("all").training_graph
    module, train = pyg_module(whole, spec)
    train(epochs)
    return pyg_f1(module, graph, graph.test_nodes)


@lru_cache(maxsize=1)
def published(name: str) -> Graph:
    """A published split with features that sum to 1 per node."""
    graph = load_dataset(name, split="public")
    totals = np.asarray(graph.x.sum(axis=1)).ravel()
    return Graph.from_arrays(
        sp.diags_array(1 / np.where(totals > 0, totals, 1)) @ graph.x,
        graph.edges.T,
        graph.y,
        train=graph.train_nodes,
        validation=graph.validation_nodes,
        test=graph.test_nodes,
        each_edge_once=True,
        name=name,
    )


KINDS.add("public", Kind(measure))


def markdown(report: Mapping[str, Any]) -> str:
    """Means over the seeds with their standard deviations, and what they are of the PyG loop's."""
    rows = []
    for row in report["rows"]:
        base = float(np.mean(row["f1"][PYG]))
        cells = [_spread(row["f1"][PYG])]
        cells.append(f"{_spread(row['f1'][ONE])} ({100 * (_mean(row, ONE) - base):+.1f} points)")
        cells += [f"{_spread(row['f1'][side])} ({_mean(row, side) / base:.3f})" for side in SHARES]
        rows.append((row["dataset"], str(len(row["f1"][PYG])), *cells))
    return markdown_table(("data set", "seeds", *SIDES), rows)


def contexts(report: Mapping[str, Any]) -> str:
    """F1 of the closed form by the nodes without a label that take part."""
    sides = (*LESS, CLOSED)
    rows = [
        (row["dataset"], *(_spread(row["f1"][side]) for side in sides)) for row in report["rows"]
    ]
    return markdown_table(("data set", *(f"`{c}`" for c in (*LESS.values(), "all"))), rows)


def _mean(row: Mapping[str, Any], side: str) -> float:
    return float(np.mean(row["f1"][side]))


def _spread(values: list[float]) -> str:
    return f"{np.mean(values):.3f} ± {np.std(values, ddof=1) if len(values) > 1 else 0.0:.3f}"
