"""The cost of each operation on the paper's graphs, by part; `bench.scratch` has its rivals.

The default configuration, one thread. A request is timed up to its receipt, in processor time. What
it costs against the size of the graph: `bench.scale`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import grapheraser as ge
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.models import GNNS
from grapheraser.nodes import GraphEraser
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser_lab.bench.comparison import EPOCHS, geometric_mean
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import median_of, processor_seconds, with_error

CLOSED_FORM = "closed-form"
# From scratch, the fairest first: what a request is divided by.
RIVALS = {"ours": "our engine", "sparse": "sparse PyTorch", "pyg": "PyG"}
_PARTS = ("planning", "graph", "training", "aggregation", "receipt")


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = (*GNNS, CLOSED_FORM),
    *,
    requests: int = 50,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure requests and predictions of every data set and model."""
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for model in models:
            progress(f"{name} {model}")
            rows.append(_on_dataset(graph, model, default_shards(name), requests, seed))
    return {
        "benchmark": "cost",
        "threads": 1,
        "requests": requests,
        "versions": versions(),
        "rows": rows,
    }


def _on_dataset(
    graph: Graph, model: str, num_shards: int, requests: int, seed: int
) -> dict[str, Any]:
    options: dict[str, Any] = {"epochs": EPOCHS, "executor": LocalExecutor(workers=1)}
    eraser = GraphEraser(model, num_shards=num_shards, seed=seed, **options).fit(graph)
    nodes = generator(seed, "bench", "cost").permutation(graph.train_nodes)[: requests + 1]
    seconds, parts = _forgotten(eraser, nodes.tolist())
    one = [processor_seconds(eraser.predict, [node]) for node in graph.test_nodes[:50]][1:]
    every = [processor_seconds(eraser.predict, graph.test_nodes) for _ in range(3)]
    runs = {"request": seconds, "predict_one": one, "predict_all": every}
    return {
        "dataset": graph.name,
        "model": model,
        "shards": len(eraser.shards_),
        **{name: median_of(some)[0] for name, some in runs.items()},
        "runs": runs,
        "parts": parts,
        "test_nodes": len(graph.test_nodes),
    }


def _forgotten(eraser: GraphEraser, nodes: Sequence[int]) -> tuple[list[float], dict[str, float]]:
    """Seconds of each request but the first, and the medians of their parts."""
    seconds, timings = [], []
    # Receipts time their parts by the clock on the wall: here by that of the processor.
    with patch("time.perf_counter", time.process_time):
        for node in nodes:
            started = time.process_time()
            receipt = eraser.unlearn(Nodes([node]))
            seconds.append(time.process_time() - started)
            timings.append(receipt.timings)
    parts = {part: float(np.median([t[part] for t in timings[1:]])) for part in _PARTS}
    return seconds[1:], parts


def beside(report: dict[str, Any], scratch: dict[str, Any]) -> dict[str, Any]:
    """The report with what training from scratch takes, which `bench.scratch` measures."""
    known = {(row["dataset"], row["model"]): row for row in scratch["rows"]}
    rows = []
    for row in report["rows"]:
        found = known.get((row["dataset"], row["model"]), {})
        # A report of before measured its rivals itself, when the machine was as idle.
        own = {"ours": row.get("scratch"), "pyg": row.get("pyg")}
        rows.append(row | {rival: own.get(rival) or found.get(rival) for rival in RIVALS})
    return {**report, "rows": rows}


def markdown(report: dict[str, Any]) -> str:
    """One row per data set and model: a request by part, beside its rivals, and predictions."""
    if report["benchmark"] == "changes":
        names = [name for name in report["rows"][0] if name != "dataset"]
        found = [(r["dataset"], *(duration(r[name]) for name in names)) for r in report["rows"]]
        return markdown_table(("data set", *names), found)
    rivals_header = [word for name in RIVALS.values() for word in (f"{name} from scratch", "")]
    header = ("data set", "model", "a request", *_PARTS, *rivals_header)
    rows: list[tuple[str, ...]] = []
    for row in report["rows"]:
        rivals: list[str] = []
        for rival in RIVALS:
            known = row.get(rival)
            rivals += (
                ["", ""] if known is None else [duration(known), f"{known / row['request']:,.1f}x"]
            )
        rows.append(
            (
                row["dataset"],
                row["model"],
                _told(row, "request"),
                *(duration(row["parts"][part]) for part in _PARTS),
                *rivals,
                _told(row, "predict_one"),
                f"{duration(row['predict_all'])} ({row['test_nodes']:,})",
            )
        )
    for name in dict.fromkeys(row["dataset"] for row in report["rows"]):
        of_name = [r for r in report["rows"] if r["dataset"] == name and r.get("ours")]
        if of_name:
            told = []
            for rival in RIVALS:
                ratios = [row[rival] / row["request"] for row in of_name if row.get(rival)]
                told += ["", f"**{geometric_mean(ratios):,.1f}x**" if ratios else ""]
            blank = [""] * len(_PARTS)
            rows.append((f"**{name}**", "geometric mean", "", *blank, *told, "", ""))
    return markdown_table((*header, "predict one", "all test nodes"), rows)


def _told(row: dict[str, Any], name: str) -> str:
    runs = row.get("runs", {}).get(name)
    return duration(row[name]) if runs is None else with_error(runs)


# -- adding nodes in one call and one by one, corrections, nodes outside the graph ----------------


MANY, EDGES = 1000, 4


def changes(
    datasets: Iterable[str] = ("pubmed",), *, progress: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Return the figures of each data set."""
    rows = []
    for dataset in datasets:
        progress(dataset)
        rows.append(_measured(dataset))
    return {"benchmark": "changes", "versions": versions(), "rows": rows}


def _measured(dataset: str) -> dict[str, Any]:
    graph, rng = ge.load_dataset(dataset), np.random.default_rng(0)
    rows = rng.choice(graph.num_nodes, MANY)
    x, y = graph.x[rows], graph.y[rows]
    near = np.array([rng.choice(graph.ids, EDGES, replace=False) for _ in range(MANY)])

    def nodes(first: int, part: slice) -> ge.AddNodes:
        ids = first + np.arange(MANY)[part]
        edges = np.stack([np.repeat(ids, EDGES), near[part].ravel()], axis=1)
        return ge.AddNodes(ids, x[part], y[part], edges)

    def fitted() -> ge.GraphEraser:
        return ge.GraphEraser(executor=ge.LocalExecutor(1)).fit(graph)

    eraser = fitted()
    eraser.update(nodes(10**6, slice(0, 2)))  # whatever is compiled first
    many = [nodes(first, slice(0, MANY)) for first in (2 * 10**6, 3 * 10**6, 4 * 10**6)]
    at_once = [processor_seconds(eraser.update, each) for each in many]
    eraser = fitted()
    singles: dict[str, Callable[[int], Any]] = {
        "one node": lambda at: nodes(5 * 10**6, slice(at, at + 1)),
        "one feature row": lambda at: ge.SetFeatures(graph.train_nodes[[at]], x[[at]]),
        "one label": lambda at: ge.SetLabels(graph.train_nodes[[at]], [(at + 1) % 2]),
        "one edge": lambda at: ge.AddEdges([(5 * 10**6 + at, int(graph.ids[0]) + at)]),
    }
    found = {}
    for name, change in singles.items():
        times = [processor_seconds(eraser.update, change(at)) for at in range(20)]
        found[name] = statistics.median(times[2:])
    asked = slice(0, 200)
    eraser.predict_proba_new(x[:2], list(near[:2]))
    new = processor_seconds(lambda: eraser.predict_proba_new(x[asked], list(near[asked]))) / 200
    return {
        "dataset": dataset,
        f"{MANY} nodes in one call": statistics.median(at_once),
        f"{MANY} nodes one by one, from the median of one": MANY * found["one node"],
        **found,
        "predict_new, a node": new,
    }
