"""F1 by how many shards are asked about a node, and what a halo brings and costs.

`hash` shards with routing, on validation nodes: a tenth of the training nodes, the test nodes taken
out. Times are processor time of one thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from grapheraser.datasets import load_dataset
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.reports.wording import duration
from grapheraser_lab.bench.comparison import validation_graph
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.timing import median_of, processor_seconds, swept

ASKED, SHARDS = (1, 4, 8, 16, 20), 20


def run(
    datasets: Iterable[str] = ("cora", "citeseer"),
    models: Iterable[str] = ("gcn", "sage"),
    *,
    requests: int = 20,
    seed: int = 0,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """One split: the pool and shards alone by shards asked; shards alone with a halo."""

    def row(name: str, model: str) -> dict[str, Any]:
        graph, alone = validation_graph(load_dataset(name), seed), {"global_expert": False}
        return {
            "pool": [_f1(graph, model, seed, shards_asked=n) for n in ASKED],
            "alone": [_f1(graph, model, seed, shards_asked=n, **alone) for n in ASKED],
            "without": _halo(graph, model, seed, requests, **alone),
            "halo": _halo(graph, model, seed, requests, halo=True, **alone),
        }

    told = {"benchmark": "asked", "requests": requests, "shards": SHARDS, "asked": list(ASKED)}
    return told | {"rows": swept(row, progress, dataset=datasets, model=models)}


def _fitted(graph: Graph, model: str, seed: int, **settings: Any) -> GraphEraser:
    alone = LocalExecutor(workers=1)
    return GraphEraser(model, num_shards=SHARDS, seed=seed, executor=alone, **settings).fit(graph)


def _f1(graph: Graph, model: str, seed: int, **settings: Any) -> float:
    return _fitted(graph, model, seed, **settings).score(graph.test_nodes)


def _halo(graph: Graph, model: str, seed: int, requests: int, **settings: Any) -> dict[str, Any]:
    fit = processor_seconds(lambda: _fitted(graph, model, seed, **settings))
    eraser = _fitted(graph, model, seed, **settings)
    score, times, shards = eraser.score(graph.test_nodes), [], []
    for node in np.random.default_rng(seed).permutation(graph.train_nodes)[:requests].tolist():
        shards.append(len(eraser.plan(Nodes([node])).retrain))
        times.append(processor_seconds(eraser.unlearn, Nodes([node])))
    return {"f1": score, "fit": fit, "request": median_of(times), "retrained": shards}


def markdown(report: dict[str, Any]) -> str:
    """Shards asked, a row for each data set and model; below it the halo."""
    return f"{asked(report)}\n\n{halo(report)}"


def asked(report: dict[str, Any]) -> str:
    """F1 by the number of shards asked."""
    names = [f"{n}, {which}" for which in ("pool", "alone") for n in report["asked"]]
    rows = [
        (r["dataset"], r["model"], *_three(r["pool"]), *_three(r["alone"])) for r in report["rows"]
    ]
    means = [_three(np.mean([r[k] for r in report["rows"]], axis=0)) for k in ("pool", "alone")]
    rows.append(("mean", "", *means[0], *means[1]))
    return markdown_table(("data", "model", *names), rows)


def halo(report: dict[str, Any]) -> str:
    """F1, fit and request without and with a halo."""
    header = (
        *("data", "model", "F1 alone", "with a halo", "fit", "with a halo"),
        *("a node request", "with a halo", "shards retrained (most)"),
    )
    rows = []
    for row in report["rows"]:
        two = row["without"], row["halo"]
        shards = two[1]["retrained"]
        rows.append(
            (
                *(row["dataset"], row["model"], *_three([some["f1"] for some in two])),
                *(duration(some["fit"]) for some in two),
                *(_request(some["request"]) for some in two),
                f"{np.mean(shards):.1f} ({max(shards)})",
            )
        )
    return markdown_table(header, rows)


def _three(figures: Iterable[float]) -> list[str]:
    return [f"{figure:.3f}" for figure in figures]


def _request(told: tuple[float, float]) -> str:
    return f"{duration(told[0])} ± {100 * told[1] / told[0]:.0f} %"
