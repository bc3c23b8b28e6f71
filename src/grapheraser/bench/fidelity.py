"""F1 of the CPU engine beside the PyG loop's, over many seeds: is it as good, not only as fast?

Both train the whole training graph (one shard) of the same split; a seed decides the initial
weights, which both share, and the dropout, which they draw in their own ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.bench.cells import measured_cells
from grapheraser.datasets import load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.experiments.framework.cell import KINDS, Cell, Kind
from grapheraser.graph import Graph
from grapheraser.reports.tables import markdown_table

ENGINES = ("cpu", "pyg")
# How far the means may lie apart.
BAR = 0.005


def run(
    datasets: Iterable[str] = ("cora", "citeseer", "pubmed"),
    models: Iterable[str] = ("gcn", "sage", "gat", "gin", "mlp"),
    *,
    seeds: int = 10,
    epochs: int = 100,
    folder: str | Path = "runs/fidelity",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Train every data set and model with both engines; minutes to an hour, nearly all of it PyG.

    Returns: a JSON-able report with every single F1.
    """
    cells = {
        (name, model, engine): [
            Cell.of("fidelity", dataset=name, model=model, engine=engine, epochs=epochs, seed=seed)
            for seed in range(seeds)
        ]
        for name in datasets
        for model in models
        for engine in ENGINES
    }
    every = [cell for group in cells.values() for cell in group]
    results = measured_cells(every, folder, progress=progress)
    f1 = {key: [results[cell].value["f1"] for cell in group] for key, group in cells.items()}
    rows = [
        {"dataset": name, "model": model, "f1": {e: f1[name, model, e] for e in ENGINES}}
        for name, model in dict.fromkeys(key[:2] for key in cells)
    ]
    return {"benchmark": "fidelity", "epochs": epochs, "versions": versions(), "rows": rows}


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Micro F1 of one shard that holds the whole training graph."""
    graph = _graph(config["dataset"])
    eraser = GraphEraser(
        model=config["model"],
        num_shards=1,
        aggregation="mean",
        engine=config["engine"],
        epochs=config["epochs"],
        seed=config["seed"],
        executor=LocalExecutor(workers=1),
    )
    return {"f1": eraser.fit(graph).score(graph.test_nodes)}


@lru_cache(maxsize=1)
def _graph(name: str) -> Graph:
    return load_dataset(name)


KINDS.add("fidelity", Kind(measure))


def markdown(report: Mapping[str, Any]) -> str:
    """Means over the seeds with their standard deviations, and how far they lie apart."""
    rows, apart = [], [0.0]
    for row in report["rows"]:
        cpu, pyg = (np.array(row["f1"][engine]) for engine in ENGINES)
        apart.append(float(cpu.mean() - pyg.mean()))
        points = f"{100 * apart[-1]:+.2f} points"
        rows.append(
            (row["dataset"], row["model"], str(len(cpu)), _spread(cpu), _spread(pyg), points)
        )
    widest = f"**{100 * max(map(abs, apart)):.2f} points**"
    rows.append(("", f"widest (bar {100 * BAR:.1f})", "", "", "", widest))
    return markdown_table(
        ("data set", "model", "seeds", "CPU engine", "PyG loop", "difference"), rows
    )


def _spread(values: Any) -> str:
    return f"{values.mean():.4f} ± {values.std(ddof=1) if len(values) > 1 else 0.0:.4f}"
