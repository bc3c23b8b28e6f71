"""What unlearning costs in utility: every partition and aggregation beside training from scratch.

Micro F1 on the 20 % test nodes of the paper's data sets, at the paper's number of shards. Each
(data set, model, seed, partition) is one cell; its file is written when it is done, so a run that
was stopped goes on where it was. Within a cell all aggregations share the same trained shards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.aggregation import (
    WIDE,
    Aggregator,
    WithExpert,
    resolve_aggregator,
)
from grapheraser.aggregation.remembering import KeptEnsemble
from grapheraser.datasets import default_shards, load_dataset
from grapheraser.environment import versions
from grapheraser.eraser import GraphEraser
from grapheraser.experiments.paper import published as paper
from grapheraser.graph import Graph
from grapheraser.models import GNNS
from grapheraser.partition import partition_graph
from grapheraser.store import write_text

SCRATCH = paper.SCRATCH
PARTITIONS = ("hash", "metis", "random", "blpa", "bekm")
Aggregations = Mapping[str, tuple[str, bool | str]]
AGGREGATIONS: Aggregations = {
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
# The defaults with each kind of expert, on more graphs than the paper has. How many shards those
# are cut into.
EXPERTS: Aggregations = {
    "routed": ("routed", False),
    BEST: ("routed", True),
    "routed + wide expert": ("routed", WIDE),
}
OTHERS = {"amazon_computers": 20, "flickr": 20, "facebook_pages": 50, "debian": 100, "wordnet": 100}

DEFAULT = "hash"
# What must be kept of scratch's F1, on average and at least, by the package's defaults, which
# also are the configuration whose receipts say plain "exact".
BARS = {"mean": 0.995, "least": 0.975}

Report = Mapping[str, Any]


def run(
    datasets: Iterable[str] = paper.DATASETS,
    models: Iterable[str] = GNNS,
    *,
    partitions: Sequence[str] = PARTITIONS,
    seeds: int = 3,
    folder: str | Path = "runs/utility",
    root: str | Path | None = None,
    epochs: int = 100,
    aggregations: Aggregations = AGGREGATIONS,
    device: str = "cpu",
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
        aggregations: the shards' aggregation and the expert for each label.
        device: where shards are trained.
        progress: told about every cell.

    Returns: a JSON-able report; ``cells`` is what the files hold.
    """
    folder = Path(folder)
    found = []
    for name, seed in ((name, seed) for name in datasets for seed in range(seeds)):
        graph: Graph | None = None
        for model, partition in _pairs(models, partitions):
            file = folder / f"{name}-{model}-{partition}-{seed}.json"
            if not file.exists():
                graph = load_dataset(name, root, split_seed=seed) if graph is None else graph
                progress(f"{name} {model} {partition} seed {seed}")
                eraser = GraphEraser(model=model, seed=seed, epochs=epochs, device=device)
                result = measure(graph, name, partition, eraser, aggregations)
                write_text(file, json.dumps(result, indent=1, sort_keys=True) + "\n")
            found.append(json.loads(file.read_text()))
    return {"benchmark": "utility", "versions": versions(), "cells": found}


def _pairs(models: Iterable[str], partitions: Sequence[str]) -> Iterator[tuple[str, str]]:
    return ((model, part) for model in models for part in (SCRATCH, *partitions))


def experts(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    models: Iterable[str] = GNNS,
    *,
    folder: str | Path = "runs/experts",
    **options: Any,
) -> dict[str, Any]:
    """The defaults with the expert as it comes and with a wide one; options as for `run`."""
    options |= {"partitions": [DEFAULT], "aggregations": EXPERTS, "folder": folder}
    return run(datasets, models, **options) | {"benchmark": "utility-experts"}


def measure(
    graph: Graph,
    name: str,
    partition: str,
    eraser: GraphEraser,
    aggregations: Aggregations = AGGREGATIONS,
) -> dict[str, Any]:
    """One cell: train the shards once, and score every aggregation on the test nodes."""
    started = time.perf_counter()
    seed = eraser.seed
    shards = 1 if partition == SCRATCH else OTHERS.get(name) or default_shards(name)
    method = "hash" if partition == SCRATCH else partition
    cut = partition_graph(graph, method, num_shards=shards, seed=seed)
    eraser.set_params(num_shards=shards, aggregation="mean").fit(graph, partition=cut)
    trained = time.perf_counter()
    ensemble = KeptEnsemble.of(eraser.aggregator_.ensemble)
    positions = graph.positions(graph.test_nodes)
    truth = graph.y[positions]
    scores = {}
    for label, aggregator in _aggregators(partition, aggregations).items():
        posteriors = aggregator.fit(ensemble).predict_proba(ensemble, positions)
        scores[label] = float((posteriors.argmax(axis=1) == truth).mean())
    return {
        "dataset": name,
        "model": eraser.model,
        "partition": partition,
        "seed": seed,
        "shards": len(ensemble.shards),
        "f1": scores,
        "seconds": {"training": trained - started, "scoring": time.perf_counter() - trained},
    }


def _aggregators(partition: str, aggregations: Aggregations) -> dict[str, Aggregator]:
    if partition == SCRATCH:
        return {SCRATCH: resolve_aggregator("mean")}
    return {
        label: WithExpert(None) if name == "expert" else resolve_aggregator(name, global_expert=on)
        for label, (name, on) in aggregations.items()
    }


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


def paper_best(dataset: str, model: str) -> float | None:
    """The best F1 that the paper has for shards of any kind."""
    columns = [column for column in paper.UTILITY.columns if column != paper.SCRATCH]
    figures = [paper.UTILITY.get(dataset, model, column) for column in columns]
    return max((figure.mean for figure in figures if figure is not None), default=None)


def markdown(report: Report) -> str:
    """The whole table, then the summary."""
    if report["benchmark"] == "utility-experts":
        return _experts_table(report)
    return f"{table(report)}\n\n{summary(report)}"


def table(report: Report) -> str:
    """Every data set, model and aggregation by partition."""
    found = means(report)
    lines = _header("data", "model", "aggregation", SCRATCH, *_partitions(report), "paper's best")
    for name, model in dict.fromkeys((key[0], key[1]) for key in found):
        for label in AGGREGATIONS:
            lines.append(
                _row(
                    name,
                    model,
                    label,
                    _figure(found, (name, model, SCRATCH, SCRATCH)),
                    *(_figure(found, (name, model, p, label)) for p in _partitions(report)),
                    _decimals(paper_best(name, model)),
                )
            )
    note = "In brackets: the paper's own figure. Micro F1 on the test nodes, mean over the seeds."
    return "\n".join([*lines, "", note])


def summary(report: Report) -> str:
    """Ratios to scratch over all data sets and models, and what became of the bars."""
    parts = _partitions(report)
    lines = ["Ratio to scratch, mean over data sets and models (least):", ""]
    lines += _header("aggregation", *parts)
    for label in AGGREGATIONS:
        kept = [list(ratios(report, part, label).values()) for part in parts]
        lines.append(_row(label, *(f"{np.mean(v):.3f} ({min(v):.3f})" if v else "" for v in kept)))
    return "\n".join([*lines, *_verdict(report)])


def _experts_table(report: Report) -> str:
    """How much of F1 from scratch each kind of expert keeps, on every graph."""
    found = means(report)
    lines = _header("data", "model", SCRATCH, *EXPERTS)
    kept = {label: ratios(report, DEFAULT, label) for label in EXPERTS}
    for name, model in dict.fromkeys((key[0], key[1]) for key in found):
        scratch = _decimals(found.get((name, model, SCRATCH, SCRATCH)))
        texts = [
            f"{found[name, model, DEFAULT, label]:.3f}, {kept[label][name, model]:.3f}x"
            for label in EXPERTS
        ]
        lines.append(_row(name, model, scratch, *texts))
    return "\n".join(lines)


def _verdict(report: Report) -> list[str]:
    kept = ratios(report, DEFAULT, BEST)
    if not kept:
        return []
    found = means(report)
    best = {cell: paper_best(*cell) for cell in kept}
    above = [found[*cell, DEFAULT, BEST] > value for cell, value in best.items() if value]
    mean, least = float(np.mean(list(kept.values()))), min(kept.values())
    text = (
        f"The defaults ({DEFAULT}, {BEST}): mean {mean:.3f} (bar {BARS['mean']}), "
        f"least {least:.3f} (bar {BARS['least']}); "
        f"above the paper's best in {sum(above)} of {len(above)} cells."
    )
    return ["", text]


def _partitions(report: Report) -> list[str]:
    present = {cell["partition"] for cell in report["cells"]}
    return [partition for partition in PARTITIONS if partition in present]


def _figure(
    found: Mapping[tuple[str, str, str, str], float], key: tuple[str, str, str, str]
) -> str:
    name, model, partition, label = key
    published = paper.utility(name, model, partition, label)
    ours = _decimals(found.get(key))
    return f"{ours} ({published.mean:.3f})" if ours and published else ours


def _decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _header(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _row(*texts: str) -> str:
    return "| " + " | ".join(texts) + " |"
