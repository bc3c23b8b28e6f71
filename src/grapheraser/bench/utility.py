"""What unlearning costs in utility: every partition and aggregation beside training from scratch.

Micro F1 on the 20 % test nodes of the paper's data sets, at the paper's number of shards. Each
(data set, model, seed, partition) is one cell; its file is written when it is done, so a run that
was stopped goes on where it was. Within a cell all aggregations share the same trained shards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation import Aggregator, Ensemble, WithExpert, resolve_aggregator
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.eraser import GraphEraser
from grapheraser.graph import Graph
from grapheraser.partition import partition_graph
from grapheraser.state import Settings, fit_state
from grapheraser.versions import versions

DATASETS = ("cora", "citeseer", "pubmed", "cs", "physics")
GNNS = ("gcn", "sage", "gat", "gin")
SCRATCH = "scratch"
PARTITIONS = ("hash", "metis", "random", "blpa", "bekm")
AGGREGATIONS: dict[str, tuple[str, bool]] = {
    "mean": ("mean", False),
    "majority": ("majority", False),
    "learned": ("learned", False),
    "routed": ("routed", False),
    "routed-learned": ("routed-learned", False),
    "expert": ("expert", True),
    "mean + expert": ("mean", True),
    "learned + expert": ("learned", True),
    "routed + expert": ("routed", True),
    "routed-learned + expert": ("routed-learned", True),
}
BEST = "routed + expert"

# The paper's best F1 of any shard-based method (table:node_unlearning_utility), gcn sage gat gin.
PAPER_BEST = {
    "cora": (0.676, 0.740, 0.754, 0.801),
    "citeseer": (0.450, 0.716, 0.746, 0.739),
    "pubmed": (0.718, 0.863, 0.860, 0.859),
    "cs": (0.812, 0.927, 0.906, 0.891),
    "physics": (0.858, 0.933, 0.925, 0.926),
}
# What the default configuration, and the one with hash shards, must keep of scratch's F1.
BARS = {"default": {"mean": 0.995, "least": 0.975}, "hash": {"mean": 0.985, "least": 0.96}}

Report = Mapping[str, Any]


def run(
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = GNNS,
    *,
    partitions: Sequence[str] = PARTITIONS,
    seeds: int = 3,
    folder: str | Path = "runs/utility",
    root: str | Path | None = None,
    epochs: int = 100,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure what is not measured yet, and report on everything.

    Args:
        datasets: which data sets.
        models: which models.
        partitions: beside scratch.
        seeds: split, partition and training are seeded with 0, 1, 2, ...
        folder: where finished cells are kept.
        root: the data folder.
        epochs: of training.
        progress: told about every cell.

    Returns: a JSON-able report; ``cells`` is what the files hold.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for name, seed in ((name, seed) for name in datasets for seed in range(seeds)):
        graph: Graph | None = None
        for model, partition in _pairs(models, partitions):
            file = folder / f"{name}-{model}-{partition}-{seed}.json"
            if not file.exists():
                graph = load_dataset(name, root, split_seed=seed) if graph is None else graph
                progress(f"{name} {model} {partition} seed {seed}")
                result = measure(graph, name, model, partition, seed, epochs=epochs)
                partial = file.with_suffix(".partial")
                partial.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
                partial.replace(file)
            found.append(json.loads(file.read_text()))
    return {"benchmark": "utility", "versions": versions(), "cells": found}


def _pairs(models: Iterable[str], partitions: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((model, part) for model in models for part in (SCRATCH, *partitions))


def measure(
    graph: Graph, name: str, model: str, partition: str, seed: int, *, epochs: int = 100
) -> dict[str, Any]:
    """One cell: train the shards once, and score every aggregation on the test nodes."""
    started = time.perf_counter()
    shards = 1 if partition == SCRATCH else default_shards(name)
    method = "hash" if partition == SCRATCH else partition
    cut = partition_graph(graph, method, num_shards=shards, seed=seed)
    eraser = GraphEraser(
        model=model, num_shards=shards, aggregation="mean", seed=seed, epochs=epochs
    )
    settings = eraser._resolve()
    state = fit_state(settings, graph, cut)
    trained = time.perf_counter()
    ensemble = _remembering(settings, graph, cut, state.shards)
    truth = graph.y[ensemble.positions]
    scores = {}
    for label, aggregator in _aggregators(partition).items():
        posteriors = aggregator.fit(ensemble).predict_proba(ensemble, ensemble.positions)
        scores[label] = float((posteriors.argmax(axis=1) == truth).mean())
    return {
        "dataset": name,
        "model": model,
        "partition": partition,
        "seed": seed,
        "shards": len(state.shards),
        "f1": scores,
        "seconds": {"training": trained - started, "scoring": time.perf_counter() - trained},
    }


def _aggregators(partition: str) -> dict[str, Aggregator]:
    if partition == SCRATCH:
        return {SCRATCH: resolve_aggregator("mean")}
    return {
        label: WithExpert(None) if name == "expert" else resolve_aggregator(name, global_expert=on)
        for label, (name, on) in AGGREGATIONS.items()
    }


@dataclass(frozen=True, eq=False)
class _Remembering(Ensemble):
    """An ensemble that computes the posteriors of the test nodes once for all aggregations."""

    positions: NDArray[np.int64]

    @cached_property
    def _known(self) -> NDArray[np.float32]:
        return super().posteriors(self.positions)

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Ensemble`."""
        at = np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)
        if not np.array_equal(self.positions[at], positions):
            return super().posteriors(positions, shards)
        wanted = self.shard_ids if shards is None else shards
        rows = np.searchsorted(np.array(self.shard_ids), np.array(wanted, dtype=np.int64))
        return self._known[np.ix_(rows, at)]


def _remembering(settings: Settings, graph: Graph, cut: Any, shards: Any) -> _Remembering:
    positions = graph.positions(graph.test_nodes)
    model = settings.training.model
    return _Remembering(graph, cut, shards, model, settings.seed, positions)


# -- reading the cells ------------------------------------------------------------------------


def means(report: Report) -> dict[tuple[str, str, str, str], float]:
    """F1 averaged over seeds by data set, model, partition and aggregation."""
    grouped: dict[tuple[str, str, str, str], list[float]] = {}
    for cell in report["cells"]:
        for label, value in cell["f1"].items():
            key = cell["dataset"], cell["model"], cell["partition"], label
            grouped.setdefault(key, []).append(value)
    return {key: float(np.mean(values)) for key, values in grouped.items()}


def ratios(report: Report, partition: str, label: str) -> dict[tuple[str, str], float]:
    """F1 over F1 from scratch in the same runs, by data set and model."""
    scratch = {
        (c["dataset"], c["model"], c["seed"]): c["f1"][SCRATCH]
        for c in report["cells"]
        if c["partition"] == SCRATCH
    }
    grouped: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for cell in report["cells"]:
        run_of = cell["dataset"], cell["model"], cell["seed"]
        if cell["partition"] == partition and run_of in scratch:
            pair = cell["f1"][label], scratch[run_of]
            grouped.setdefault(run_of[:2], []).append(pair)
    return {
        key: float(np.mean([f for f, _ in pairs]) / np.mean([s for _, s in pairs]))
        for key, pairs in grouped.items()
    }


def markdown(report: Report) -> str:
    """A row per data set and model, and a summary of the ratios to scratch."""
    found = means(report)
    parts = [p for p in PARTITIONS if any(key[2] == p for key in found)]
    lines = [
        "| data | model | scratch | paper's best | "
        + " | ".join(f"{p}, {BEST}" for p in parts)
        + " |",
        "|---|---|---|---|" + "---|" * len(parts),
    ]
    for name, model in dict.fromkeys((key[0], key[1]) for key in found):
        known = name in PAPER_BEST and model in GNNS
        best = f"{PAPER_BEST[name][GNNS.index(model)]:.3f}" if known else ""
        scratch = found.get((name, model, SCRATCH, SCRATCH))
        row = [name, model, "" if scratch is None else f"{scratch:.3f}", best]
        for part in parts:
            value = found.get((name, model, part, BEST))
            row.append("" if value is None else f"{value:.3f}")
        lines.append("| " + " | ".join(row) + " |")
    lines += ["", "Ratio to scratch, mean over data sets and models (least):", ""]
    lines += ["| aggregation | " + " | ".join(parts) + " |", "|---|" + "---|" * len(parts)]
    for label in AGGREGATIONS:
        row = [label]
        for part in parts:
            values = list(ratios(report, part, label).values())
            row.append(f"{np.mean(values):.3f} ({min(values):.3f})" if values else "")
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines)
