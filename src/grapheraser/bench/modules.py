"""How long a user's own module takes to predict: every shard's, beside one pass through PyG.

The module is a two-layer SAGE with batch norm. PyG's pass is one module's over the whole graph, as
a model without shards would need for a prediction. Times are processor time of this process: a busy
machine stretches the wall clock, not these.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.reports.tables import markdown_table
from grapheraser.reports.wording import duration
from grapheraser.training import reference


def run(
    datasets: Iterable[str] = ("cora", "pubmed"),
    *,
    num_shards: int = 20,
    aggregations: Iterable[str] = ("routed", "mean"),
    repeats: int = 50,
    root: str | Path | None = None,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Predict test nodes one by one, and a hundred at once."""
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        alone = _whole_graph(graph)
        for aggregation in aggregations:
            progress(f"{name} {aggregation}")
            eraser = GraphEraser(
                model=_sage, num_shards=num_shards, aggregation=aggregation, epochs=1, seed=seed
            ).fit(graph)
            nodes = graph.test_nodes[: repeats + 1]
            first, *others = [_seconds(eraser.predict, [node]) for node in nodes]
            rows.append(
                {
                    "dataset": graph.name,
                    "shards": len(eraser.shards_),
                    "aggregation": aggregation,
                    "first": first,
                    "median": float(np.median(others)),
                    "p95": float(np.quantile(others, 0.95)),
                    "hundred": _seconds(eraser.predict, graph.test_nodes[:100]),
                    "pyg": alone,
                }
            )
    return {"benchmark": "modules", "versions": versions(), "rows": rows}


def markdown(report: dict[str, Any]) -> str:
    """One row per data set and aggregation."""
    keys = ("first", "median", "p95", "hundred", "pyg")
    rows = [
        (row["dataset"], str(row["shards"]), row["aggregation"], *(duration(row[k]) for k in keys))
        for row in report["rows"]
    ]
    header = ("data", "shards", "aggregation", "first node", "median", "95 %", "100 nodes", "PyG")
    return markdown_table(header, rows)


def _whole_graph(graph: Any, repeats: int = 5) -> float:
    """One module's pass over the whole graph, its tensors made beforehand."""
    import torch

    module, data = _sage(graph.num_features, graph.num_classes).eval(), graph.to_pyg()
    with reference.reproducible(0), torch.no_grad():
        times = [_seconds(module, data.x, data.edge_index) for _ in range(repeats + 1)]
    return float(np.median(times[1:]))


def _seconds(function: Callable[..., Any], *arguments: Any) -> float:
    started = time.process_time()
    function(*arguments)
    return time.process_time() - started


def _sage(in_channels: int, out_channels: int) -> Any:
    from torch_geometric.nn import GraphSAGE

    return GraphSAGE(in_channels, 64, 2, out_channels, dropout=0.5, norm="batch_norm")
