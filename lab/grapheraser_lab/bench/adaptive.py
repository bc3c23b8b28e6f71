"""Requests that are chosen by looking at the published model, and what of it they leave behind.

A test node t is watched whose class hangs on the random numbers of the training. Where the
published model gives it its usual class, somebody asks for node a to be forgotten, else for node b.
After a fit with new random numbers, which request it was says nothing about t. The figure is how
much it does say: the difference between both requests in how often t has its usual class
afterwards; 0 is nothing, 1 everything. docs/adaptive.md has the argument.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.partition import partition_graph
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import swept

# How often a watched node has its usual class, over the seeds.
UNCERTAIN = (0.2, 0.8)
SHARDS = 20
# By name: arguments of the eraser, and whether the partition is the same for all seeds.
CONFIGURATIONS: dict[str, tuple[dict[str, Any], bool]] = {
    "shards, partition the same for all": ({"aggregation": "mean"}, True),
    "shards, `hash` with a key of its own": ({"aggregation": "mean"}, False),
    "`closed-form`": ({"model": "closed-form"}, False),
}
WAYS = ("none", "touched", "all", "a fresh fit")


def run(
    datasets: Iterable[str] = ("cora",),
    *,
    seeds: int = 40,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure every configuration and every way to answer a request."""
    rows = swept(
        lambda dataset, name: _told(load_dataset(dataset), name, seeds),
        progress,
        dataset=datasets,
        configuration=CONFIGURATIONS,
    )
    return {"benchmark": "adaptive", "seeds": seeds, "rows": rows}


def _told(graph: Graph, name: str, seeds: int) -> dict[str, Any]:
    arguments, fixed = CONFIGURATIONS[name]
    a, b = graph.train_nodes[:2].tolist()
    before: list[NDArray[np.int64]] = []
    ways = WAYS if "model" not in arguments else (WAYS[0], WAYS[-1])  # no shards, no seeds
    after: dict[str, list[list[NDArray[np.int64]]]] = {way: [] for way in ways}
    part = partition_graph(graph, "hash", num_shards=SHARDS, seed=0) if fixed else None
    for seed in range(seeds):
        options = {**arguments, "executor": LocalExecutor(workers=1)}
        if "model" not in options:
            options["num_shards"] = SHARDS
        eraser = GraphEraser(**options, seed=seed).fit(graph, partition=part)
        before.append(eraser.predict(graph.test_nodes))
        for way in ways:
            pair = []
            for node in (a, b):
                if way == "a fresh fit":
                    other = GraphEraser(**options, seed=10_000 + seed)
                    other.fit(graph.without(Nodes([node])), partition=part)
                else:
                    other = copy.copy(eraser)
                    other.unlearn(Nodes([node]), refresh=way)
                pair.append(other.predict(graph.test_nodes))
            after[way].append(pair)
    first = np.stack(before)
    usual = np.array([np.bincount(column).argmax() for column in first.T])
    seen = first == usual
    often = seen.mean(axis=0)
    watched = np.flatnonzero((often >= UNCERTAIN[0]) & (often <= UNCERTAIN[1]))
    found = {way: _leak(np.array(after[way]), usual, seen, watched) for way in ways}
    return {"watched": len(watched), "leak": found}


def _leak(
    after: NDArray[np.int64],
    usual: NDArray[np.int64],
    seen: NDArray[np.bool_],
    watched: NDArray[np.int64],
) -> dict[str, float | None]:
    """Mean over the watched nodes, and a standard error over halves of the seeds."""
    if not len(watched):
        return {"value": 0.0, "error": None}
    chosen = np.where(seen, after[:, 0], after[:, 1]) == usual

    def gap(rows: NDArray[np.int64]) -> float:
        said = [
            chosen[rows, t][seen[rows, t]].mean() - chosen[rows, t][~seen[rows, t]].mean()
            for t in watched
            if 0 < seen[rows, t].sum() < len(rows)
        ]
        return float(np.mean(said)) if said else 0.0

    every = np.arange(len(after))
    quarters = [gap(every[start::4]) for start in range(4)]
    return {"value": gap(every), "error": float(np.std(quarters, ddof=1) / 2)}


def markdown(report: dict[str, Any]) -> str:
    """A row for each configuration, a column for each way."""
    header = ("data", "configuration", "nodes that hang on chance", *(_name(w) for w in WAYS))
    rows = []
    for row in report["rows"]:
        leaks = [row["leak"].get(way) for way in WAYS]
        told = ["-" if one is None else _figure(one) for one in leaks]
        rows.append((row["dataset"], row["configuration"], f"{row['watched']}", *told))
    return (
        f"{markdown_table(header, rows)}\n\nWhat the request says about the model after it, "
        f"{report['seeds']} seeds; 0 is nothing, 1 everything. Standard errors over quarters of "
        "the seeds. Shards: `gcn`, mean of 20."
    )


def _figure(leak: dict[str, Any]) -> str:
    error = "" if leak["error"] is None else f" ± {leak['error']:.2f}"
    return f"{leak['value']:.2f}{error}"


def _name(way: str) -> str:
    return way if way == WAYS[-1] else f"refresh={way}"
