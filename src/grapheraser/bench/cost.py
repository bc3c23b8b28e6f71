"""What each operation costs: on the paper's graphs by part, and on generated graphs against size.

The default configuration, one thread. A request is timed as a caller sees it, up to its receipt.
The generated graphs have 100 dense features, ten classes, four fifths of their nodes for training
and shards of about 800 nodes, GCN with 20 epochs; each size runs in a process of its own, whose
peak memory is that of the whole.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.bench.comparison import EPOCHS, geometric_mean
from grapheraser.bench.unlearn import pyg_scratch_seconds
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.models import GNNS
from grapheraser.reports.figures.curves import Curves
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser.training import ShardTask

CLOSED_FORM = "closed-form"
# Nodes and average degree of the generated graphs.
SIZES = ((10_000, 20), (100_000, 10), (100_000, 20), (1_000_000, 20))
_FEATURES, _CLASSES, _NODES_PER_SHARD = 100, 10, 1000
_PARTS = ("planning", "graph", "training", "aggregation", "receipt")
_PYG_EPOCHS = {"physics": 1, "cs": 4}


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = (*GNNS, CLOSED_FORM),
    *,
    sizes: Sequence[tuple[int, int]] = SIZES,
    requests: int = 20,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure both: ``rows`` by data set and model, ``sizes`` by generated graph and model."""
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for model in models:
            progress(f"{name} {model}")
            rows.append(_on_dataset(graph, model, default_shards(name), requests, seed))
    generated = []
    for num_nodes, degree in sizes:
        for model in ("gcn", CLOSED_FORM):
            progress(f"{num_nodes:,} nodes {model}")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                generated.append(pool.apply(on_generated, (num_nodes, degree, model, requests)))
    return {
        "benchmark": "cost",
        "threads": 1,
        "requests": requests,
        "versions": versions(),
        "rows": rows,
        "sizes": generated,
    }


def _on_dataset(
    graph: Graph, model: str, num_shards: int, requests: int, seed: int
) -> dict[str, Any]:
    eraser = _eraser(model, num_shards, seed).fit(graph)
    nodes = generator(seed, "bench", "cost").permutation(graph.train_nodes)[: requests + 1]
    seconds, parts = _forgotten(eraser, nodes.tolist())
    scratch = pyg = None
    if model != CLOSED_FORM:
        scratch = _scratch_seconds(eraser, graph)
        pyg = pyg_scratch_seconds(graph, model, epochs=_PYG_EPOCHS.get(graph.name, EPOCHS))[0]
    one = [_seconds(partial(eraser.predict, [node])) for node in graph.test_nodes[:50]]
    return {
        "dataset": graph.name,
        "model": model,
        "shards": len(eraser.shards_),
        "request": float(np.median(seconds)),
        "parts": parts,
        "scratch": scratch,
        "pyg": pyg,
        "predict_one": float(np.median(one[1:])),
        "predict_all": min(_seconds(lambda: eraser.predict(graph.test_nodes)) for _ in range(2)),
        "test_nodes": len(graph.test_nodes),
    }


def _scratch_seconds(eraser: GraphEraser, graph: Graph) -> float:
    """Training on everything with the same engine, as one shard."""
    settings = eraser._settings
    task = ShardTask(0, graph.training_graph, settings.shard_seed(0))
    settings.engine.train(task, settings.training)
    times = [_seconds(lambda: settings.engine.train(task, settings.training)) for _ in range(3)]
    return float(np.median(times))


def on_generated(num_nodes: int, degree: int, model: str, requests: int) -> dict[str, Any]:
    """Everything on one generated graph; the figures of a process of its own."""
    arrays = generated_arrays(num_nodes, degree)
    _ = Graph.from_arrays(*generated_arrays(1000, degree))  # loads compiled code
    started = time.perf_counter()
    graph = Graph.from_arrays(*arrays, test=np.arange(0, num_nodes, 5), each_edge_once=True)
    build = time.perf_counter() - started
    del arrays
    eraser = _eraser(model, max(1, num_nodes // _NODES_PER_SHARD), 0, epochs=20)
    fit = _seconds(partial(eraser.fit, graph))
    edges, test = graph.num_edges, graph.test_nodes[:1051]
    order = generator(0, "bench", "cost").permutation(graph.train_nodes)
    nodes, later = order[: requests + 1].tolist(), order[requests + 1 : 2 * requests].tolist()
    del graph
    seconds, parts = _forgotten(eraser, nodes)
    with tempfile.TemporaryDirectory() as folder:
        first_save = _seconds(lambda: eraser.save(folder))
        saved = [_seconds(partial(_forget_and_save, eraser, node, folder)) for node in later]
        load = _seconds(lambda: GraphEraser.load(folder))
    one = [_seconds(partial(eraser.predict, [node])) for node in test[:51]]
    many = _seconds(lambda: eraser.predict(test[51:]))
    return {
        "nodes": num_nodes,
        "edges": edges,
        "model": model,
        "shards": len(eraser.shards_),
        "build": build,
        "fit": fit,
        "request": float(np.median(seconds)),
        "parts": parts,
        "first_save": first_save,
        "request_and_save": float(np.median(saved)),
        "load": load,
        "predict_one": float(np.median(one[1:])),
        "predict_many": many,
        "peak_gb": peak_memory() / 1e9,
    }


def peak_memory() -> float:
    """The most memory that this process has had, in bytes; 0 where the system doesn't tell.

    Not ``ru_maxrss``, in which a process that was started by a larger one begins with its peak.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(1024.0 * int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def generated_arrays(num_nodes: int, degree: int) -> tuple[Any, Any, Any]:
    """Features, edges and labels of a graph whose edges join like nodes half of the time."""
    rng = generator(num_nodes, "bench", "generated")
    y = np.arange(num_nodes) % _CLASSES
    source = rng.integers(0, num_nodes, num_nodes * degree // 2)
    target = rng.integers(0, num_nodes, len(source))
    like = rng.random(len(source)) < 0.5
    target[like] += (source[like] - target[like]) % _CLASSES
    target[target >= num_nodes] -= _CLASSES
    centres = rng.standard_normal((_CLASSES, _FEATURES), dtype=np.float32)
    x = rng.standard_normal((num_nodes, _FEATURES), dtype=np.float32)
    x += 0.3 * centres[y]
    return x, np.stack([source, target]), y


def _eraser(model: str, num_shards: int, seed: int, *, epochs: int = EPOCHS) -> GraphEraser:
    return GraphEraser(
        model, num_shards=num_shards, epochs=epochs, seed=seed, executor=LocalExecutor(workers=1)
    )


def _forgotten(eraser: GraphEraser, nodes: Sequence[int]) -> tuple[list[float], dict[str, float]]:
    """Seconds of each request but the first, and the medians of their parts."""
    seconds, timings = [], []
    for node in nodes:
        started = time.perf_counter()
        receipt = eraser.unlearn(Nodes([node]))
        seconds.append(time.perf_counter() - started)
        timings.append(receipt.timings)
    parts = {part: float(np.median([t[part] for t in timings[1:]])) for part in _PARTS}
    return seconds[1:], parts


def _forget_and_save(eraser: GraphEraser, node: int, folder: str) -> None:
    eraser.unlearn(Nodes([node]))
    eraser.save(folder)


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


# -- what a person looks at ---------------------------------------------------------------------


def markdown(report: dict[str, Any]) -> str:
    """Both tables."""
    return f"{by_dataset(report)}\n\n{by_size(report)}"


def by_dataset(report: dict[str, Any]) -> str:
    """One row per data set and model: a request by part, beside both rivals, and predictions."""
    rivals_header = ("our engine from scratch", "", "PyG from scratch", "")
    header = ("data set", "model", "a request", *_PARTS, *rivals_header)
    rows: list[tuple[str, ...]] = []
    for row in report["rows"]:
        rivals: list[str] = []
        for rival in ("scratch", "pyg"):
            known = row[rival]
            rivals += (
                ["", ""] if known is None else [duration(known), f"{known / row['request']:,.1f}x"]
            )
        rows.append(
            (
                row["dataset"],
                row["model"],
                duration(row["request"]),
                *(duration(row["parts"][part]) for part in _PARTS),
                *rivals,
                duration(row["predict_one"]),
                f"{duration(row['predict_all'])} ({row['test_nodes']:,})",
            )
        )
    for name in dict.fromkeys(row["dataset"] for row in report["rows"]):
        of_name = [r for r in report["rows"] if r["dataset"] == name and r["scratch"] is not None]
        if of_name:
            means = [
                geometric_mean(row[rival] / row["request"] for row in of_name)
                for rival in ("scratch", "pyg")
            ]
            blank = [""] * len(_PARTS)
            first, second = (f"**{mean:,.1f}x**" for mean in means)
            rows.append(
                (f"**{name}**", "geometric mean", "", *blank, "", first, "", second, "", "")
            )
    return markdown_table((*header, "predict one", "all test nodes"), rows)


def by_size(report: dict[str, Any]) -> str:
    """One row per generated graph and model."""
    names = {
        "build": "build",
        "fit": "fit",
        "request": "a node forgotten",
        "request_and_save": "and saved",
        "load": "load",
        "predict_one": "predict 1",
        "predict_many": "predict 1,000",
    }
    header = ("nodes", "edges", "model", "shards", *names.values(), "of it training", "memory")
    rows = [
        (
            f"{row['nodes']:,}",
            f"{row['edges']:,}",
            row["model"],
            f"{row['shards']:,}",
            *(duration(row[name]) for name in names),
            duration(row["parts"]["training"]),
            f"{row['peak_gb']:.1f} GB",
        )
        for row in report["sizes"]
    ]
    return markdown_table(header, rows)


def curves(report: dict[str, Any]) -> list[Curves]:
    """Cost against the number of nodes, one panel per operation; graphs of the largest degree."""
    panels = []
    dense = max(row["edges"] / row["nodes"] for row in report["sizes"])
    sizes = [row for row in report["sizes"] if row["edges"] / row["nodes"] > 0.9 * dense]
    for name, title in (
        ("request", "forget a node"),
        ("request_and_save", "forget and save"),
        ("predict_one", "predict a node"),
        ("build", "build the graph"),
    ):
        series = {}
        for model in dict.fromkeys(row["model"] for row in sizes):
            rows = [row for row in sizes if row["model"] == model]
            heights = [row[name] for row in rows]
            series[model] = ([row["nodes"] for row in rows], heights, [0.0] * len(rows))
        panels.append(Curves(title, series, log_y=True))
    return panels
