"""F1 of the CPU engine beside the PyG loop's, over many seeds: is it as good, not only as fast?

Both train the whole training graph (one shard) of the same split; a seed decides the initial
weights, which both share, and the dropout, which they draw in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor

ENGINES = ("cpu", "pyg")
# How far the means may lie apart.
BAR = 0.005


def run(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed"),
    models: Iterable[str] = ("gcn", "sage", "gat", "gin", "mlp"),
    *,
    seeds: int = 10,
    epochs: int = 100,
    root: str | Path | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train every data set and model with both engines; minutes to an hour, nearly all of it PyG.

    Returns: a JSON-able report with every single F1.
    """
    rows = []
    for name in datasets:
        graph = load_dataset(name, root)
        for model in models:
            progress(f"{name} {model}")
            scores: dict[str, list[float]] = {
                engine: [
                    GraphEraser(
                        model=model,
                        num_shards=1,
                        aggregation="mean",
                        engine=engine,
                        epochs=epochs,
                        seed=seed,
                        executor=LocalExecutor(workers=1),
                    )
                    .fit(graph)
                    .score(graph.test_nodes)
                    for seed in range(seeds)
                ]
                for engine in ENGINES
            }
            rows.append({"dataset": name, "model": model, "f1": scores})
    return {"benchmark": "fidelity", "epochs": epochs, "versions": versions(), "rows": rows}


def markdown(report: Mapping[str, Any]) -> str:
    """Means over the seeds with their standard deviations, and how far they lie apart."""
    lines = [
        "| data set | model | seeds | CPU engine | PyG loop | difference |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for row in report["rows"]:
        cpu, pyg = (np.array(row["f1"][engine]) for engine in ENGINES)
        lines.append(
            f"| {row['dataset']} | {row['model']} | {len(cpu)} | {_spread(cpu)} | {_spread(pyg)} "
            f"| {100 * (cpu.mean() - pyg.mean()):+.2f} points |"
        )
    widest = max((_apart(row) for row in report["rows"]), default=0.0)
    lines.append(f"| | widest (bar {100 * BAR:.1f}) | | | | **{100 * widest:.2f} points** |")
    return "\n".join(lines)


def _apart(row: Mapping[str, Any]) -> float:
    cpu, pyg = (float(np.mean(row["f1"][engine])) for engine in ENGINES)
    return abs(cpu - pyg)


def _spread(values: Any) -> str:
    return f"{values.mean():.4f} ± {values.std(ddof=1) if len(values) > 1 else 0.0:.4f}"
