"""How long forgetting takes, request to receipt, beside PyG training from scratch.

Both sides run in one process on one thread. PyG's side is what a user writes: the same
architecture from PyG's layers, on dense features, full batch. Where a hundred epochs of it would
take minutes, a few are measured and scaled, and the row says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.bench.comparison import EPOCHS, geometric_mean, pyg_loop
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.experiments.paper import published as paper
from grapheraser.graph import Edges, Graph, Nodes, Request
from grapheraser.models import GNNS, PRESETS
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration
from grapheraser.seeding import generator
from grapheraser.training.reference import reproducible

BARS = {"cora": 100.0, "physics": 1000.0}
_MOST_DENSE_EPOCHS = {"physics": 1, "cs": 4}


def run(
    datasets: Iterable[str] = ("cora", "physics"),
    models: Iterable[str] = GNNS,
    *,
    requests: int = 100,
    partition: str = "blpa",
    aggregation: str = "learned",
    root: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure node and edge requests for every data set and model.

    Returns: a JSON-able report; ``rows`` has one entry per data set and model, ``summary`` the
    geometric means over the models.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for model in models:
            progress(f"{name} {model}")
            scratch, epochs = pyg_scratch_seconds(
                graph, model, epochs=_MOST_DENSE_EPOCHS.get(name, EPOCHS)
            )
            eraser = GraphEraser(
                model=model,
                partition=partition,
                aggregation=aggregation,
                num_shards=default_shards(name),
                seed=seed,
                executor=LocalExecutor(workers=1),
            ).fit(graph)
            rows.append(
                {
                    "dataset": name,
                    "model": model,
                    "scratch_seconds": scratch,
                    "scratch_epochs_measured": epochs,
                    **_measured("node", eraser, _node_requests(graph, requests, seed), scratch),
                    **_measured("edge", eraser, _edge_requests(eraser, requests, seed), scratch),
                }
            )
    return {
        "benchmark": "unlearn",
        "partition": partition,
        "aggregation": aggregation,
        "requests": requests,
        "threads": 1,
        "versions": versions(),
        "rows": rows,
        "summary": _summary(rows),
    }


def pyg_scratch_seconds(graph: Graph, model: str, *, epochs: int) -> tuple[float, int]:
    """Seconds of ``EPOCHS`` epochs of PyG on the training graph, scaled from ``epochs``."""
    with reproducible(0):
        train = pyg_loop(graph.training_graph, PRESETS[model])
        train(1)  # pays for allocations
        started = time.perf_counter()
        train(epochs)
        seconds = time.perf_counter() - started
    return seconds * EPOCHS / epochs, epochs


def _measured(
    kind: str, eraser: GraphEraser, requests: Sequence[Request], scratch: float
) -> dict[str, Any]:
    """Carry the requests out one after the other; the clock runs around each whole call."""
    eraser.unlearn(requests[0])  # the first one pays for loading compiled code
    seconds, parts = [], []
    for request in requests[1:]:
        started = time.perf_counter()
        receipt = eraser.unlearn(request)
        seconds.append(time.perf_counter() - started)
        parts.append(receipt.timings)
    mean = float(np.mean(seconds))
    return {
        f"{kind}_seconds": mean,
        f"{kind}_median": float(np.median(seconds)),
        f"{kind}_p99": float(np.quantile(seconds, 0.99)),
        f"{kind}_speedup": scratch / mean,
        f"{kind}_parts": {
            part: float(np.mean([timing[part] for timing in parts])) for part in parts[0]
        },
    }


def _node_requests(graph: Graph, count: int, seed: int) -> list[Request]:
    rng = generator(seed, "bench", "nodes")
    chosen = rng.choice(graph.train_nodes, size=count + 1, replace=False)
    return [Nodes([int(node)]) for node in chosen]


def _edge_requests(eraser: GraphEraser, count: int, seed: int) -> list[Request]:
    """Edges of the training graph as it is now, whether or not a shard has seen them."""
    rng = generator(seed, "bench", "edges")
    edges: NDArray[np.int64] = eraser.graph_.training_graph.edges
    chosen = edges[rng.choice(len(edges), size=count + 1, replace=False)]
    return [Edges([(int(u), int(v))]) for u, v in chosen]


def _summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    summary = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        of_name = [row for row in rows if row["dataset"] == name]
        bar, published = BARS.get(name), paper.SPEEDUP.get(name)
        entry: dict[str, Any] = {"dataset": name, "bar": bar, "paper": published}
        for kind in ("node", "edge"):
            entry[f"{kind}_speedup"] = geometric_mean(row[f"{kind}_speedup"] for row in of_name)
        summary.append(entry)
    return summary


def markdown(report: dict[str, Any]) -> str:
    """The report as a table."""
    rows = []
    for row in report["rows"]:
        scaled = "" if row["scratch_epochs_measured"] == EPOCHS else " *"
        rows.append(
            (
                row["dataset"],
                row["model"],
                duration(row["scratch_seconds"]) + scaled,
                duration(row["node_seconds"]),
                f"{row['node_speedup']:,.0f}x",
                duration(row["edge_seconds"]),
                f"{row['edge_speedup']:,.0f}x",
            )
        )
    for entry in report["summary"]:
        node, edge = (f"**{entry[f'{kind}_speedup']:,.0f}x**" for kind in ("node", "edge"))
        rows.append((f"**{entry['dataset']}**", "geometric mean", "", "", node, "", edge))
    header = ("data set", "model", "PyG from scratch", "a node", "", "an edge", "")
    table = markdown_table(header, rows)
    if any(row["scratch_epochs_measured"] != EPOCHS for row in report["rows"]):
        table += f"\n\n\\* a few epochs measured and scaled to {EPOCHS}."
    return table
