"""The cost of unlearning in utility: the defaults and their parts beside training from scratch.

Micro F1 on the 20 % test nodes of ten graphs (`run`), and of the paper's five for every partition
and aggregation (`partitions`). Each (data set, model, seed, partition) is a cell of kind
``utility``, run and kept as those of the experiments are; within a cell all aggregations share the
same trained shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser.datasets import default_shards
from grapheraser.environment import versions
from grapheraser.models import GNNS
from grapheraser_lab.figures.tables import markdown_table
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell
from grapheraser_lab.framework.runner import measured_cells

SCRATCH = paper.SCRATCH
PARTITIONS = ("hash", "metis", "random", "blpa", "bekm")
# By label, as a cell names it.
Aggregations = Mapping[str, str]
AGGREGATIONS: Aggregations = {
    "mean": "mean",
    "majority": "majority",
    "learned": "learned",
    "routed": "routed",
    "closed-form": "closed-form",
    "pooled": "pooled",
}
BEST = "pooled"
# The defaults, their shards alone and their closed-form members alone, on more graphs than the
# paper has.
MEMBERS: Aggregations = {name: name for name in ("routed", "closed-form", BEST)}
# Those graphs, with their number of shards.
OTHERS = {"amazon_computers": 20, "flickr": 20, "facebook_pages": 50, "debian": 100, "wordnet": 100}

DEFAULT = "hash"
BEST_OF_FOUR, SAME = "the best of four from scratch", "the same model from scratch"
# Ratios to a baseline that failed say nothing: they are capped.
CAP = 1.05
# Compared with scratch: the defaults, whose receipts say plain "exact", their closed-form members
# alone, and their shards alone.
COMPARED = ((BEST, SAME), (BEST, BEST_OF_FOUR), ("closed-form", BEST_OF_FOUR), ("routed", SAME))

Report = Mapping[str, Any]


def run(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    models: Iterable[str] = GNNS,
    *,
    partitions: Sequence[str] = ("hash",),
    seeds: int = 3,
    folder: str | Path = "runs/utility",
    epochs: int = 100,
    aggregations: Aggregations = MEMBERS,
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
        epochs: of training.
        aggregations: as a cell names them, by label.
        device: where shards are trained.
        progress: told how far it is.

    Returns: a JSON-able report; ``cells`` has the F1 of every cell by label.
    """
    cells = {
        (name, model, partition, seed): _cell(name, model, partition, seed, epochs, aggregations)
        for name in datasets
        for seed in range(seeds)
        for model in models
        for partition in (SCRATCH, *partitions)
    }
    results = measured_cells(cells.values(), folder, device=device, progress=progress)
    found = []
    for (name, model, partition, seed), cell in cells.items():
        result = results[cell]
        labels = {SCRATCH: "mean"} if partition == SCRATCH else aggregations
        found.append(
            {
                "dataset": name,
                "model": model,
                "partition": partition,
                "seed": seed,
                "shards": len(result.value["sizes"]),
                "f1": {label: result.value["f1"][text] for label, text in labels.items()},
                "seconds": result.seconds,
            }
        )
    return {"benchmark": "utility", "versions": versions(), "cells": found}


def _cell(
    name: str, model: str, partition: str, seed: int, epochs: int, aggregations: Aggregations
) -> Cell:
    """Scratch is one shard of everything, whatever the partition."""
    scratch = partition == SCRATCH
    return Cell.of(
        "utility",
        dataset=name,
        split_seed=seed,
        seed=seed,
        model=model,
        partition="random" if scratch else partition,
        num_shards=1 if scratch else OTHERS.get(name) or default_shards(name),
        epochs=epochs,
        aggregations=["mean"] if scratch else sorted(aggregations.values()),
    )


def partitions(
    datasets: Iterable[str] = paper.DATASETS,
    models: Iterable[str] = GNNS,
    *,
    partitions: Sequence[str] = PARTITIONS,
    folder: str | Path = "runs/utility-partitions",
    **options: Any,
) -> dict[str, Any]:
    """Every partition and aggregation on the paper's data sets; options as for `run`."""
    options |= {"partitions": partitions, "aggregations": AGGREGATIONS, "folder": folder}
    return run(datasets, models, **options) | {"benchmark": "utility-partitions"}


# -- reading the cells ------------------------------------------------------------------------


Key = tuple[str, str, str, str]


def means(report: Report) -> dict[Key, float]:
    """F1 averaged over seeds by data set, model, partition and aggregation."""
    return {key: float(np.mean(values)) for key, values in _grouped(report).items()}


def errors(report: Report) -> dict[Key, float]:
    """The standard errors of `means` over the seeds, where there are several."""
    return {
        key: float(np.std(values, ddof=1)) / len(values) ** 0.5
        for key, values in _grouped(report).items()
        if len(values) > 1
    }


def _grouped(report: Report) -> dict[Key, list[float]]:
    grouped: dict[Key, list[float]] = {}
    for cell in report["cells"]:
        for label, value in cell["f1"].items():
            key = cell["dataset"], cell["model"], cell["partition"], label
            grouped.setdefault(key, []).append(value)
    return grouped


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
        if cell["partition"] == partition and run_of in scratch and label in cell["f1"]:
            pair = cell["f1"][label], scratch[run_of]
            grouped.setdefault(run_of[:2], []).append(pair)
    return {
        key: float(np.mean([f for f, _ in pairs]) / np.mean([s for _, s in pairs]))
        for key, pairs in grouped.items()
    }


def kept(report: Report) -> dict[str, dict[tuple[str, str], float]]:
    """Return the ratios of every partition and aggregation that was measured, by both names."""
    found = {
        f"{part}, {label}": ratios(report, part, label)
        for part in PARTITIONS
        for label in AGGREGATIONS
    }
    return {name: some for name, some in found.items() if some}


def paper_best(dataset: str, model: str) -> float | None:
    """The best F1 that the paper has for shards of any kind."""
    columns = [column for column in paper.UTILITY.columns if column != paper.SCRATCH]
    figures = [paper.UTILITY.get(dataset, model, column) for column in columns]
    return max((figure.mean for figure in figures if figure is not None), default=None)


def markdown(report: Report) -> str:
    """The whole table, then the summary."""
    if report["benchmark"] == "utility-partitions":
        return f"{table(report)}\n\n{summary(report)}"
    return f"{graphs(report)}\n\n{verdict(report)}"


def table(report: Report) -> str:
    """Every data set, model and aggregation by partition."""
    found = means(report)
    parts = _partitions(report)
    rows = [
        (
            name,
            model,
            label,
            _figure(found, (name, model, SCRATCH, SCRATCH)),
            *(_figure(found, (name, model, part, label)) for part in parts),
            _decimals(paper_best(name, model)),
        )
        for name, model in dict.fromkeys(key[:2] for key in found)
        for label in _labels(report)
    ]
    header = ("data", "model", "aggregation", SCRATCH, *parts, "paper's best")
    far = list(errors(report).values())
    note = "In brackets: the paper's own figure. Micro F1 on the test nodes, mean over the seeds"
    note += f" (standard error {np.median(far):.3f}, at most {max(far):.3f})." if far else "."
    return f"{markdown_table(header, rows)}\n\n{note}"


def summary(report: Report) -> str:
    """Ratios to scratch over all data sets and models."""
    parts = _partitions(report)
    rows = []
    for label in _labels(report):
        kept = [list(ratios(report, part, label).values()) for part in parts]
        rows.append((label, *(f"{np.mean(v):.3f} ({min(v):.3f})" if v else "" for v in kept)))
    table = markdown_table(("aggregation", *parts), rows)
    title = "Ratio to scratch, mean over data sets and models (least):"
    return "\n".join([title, "", table])


def graphs(report: Report) -> str:
    """F1 from scratch, of the defaults, of their shards and of their closed-form members."""
    found, far = means(report), errors(report)

    def told(key: Key) -> str:
        return _decimals(found.get(key)) + (f" ± {far[key]:.3f}" if key in far else "")

    rows = []
    for name, model in dict.fromkeys(key[:2] for key in found):
        parts = [told((name, model, DEFAULT, label)) for label in MEMBERS]
        rows.append((name, model, told((name, model, SCRATCH, SCRATCH)), *parts))
    return markdown_table(("data", "model", SCRATCH, *MEMBERS), rows)


def verdict(report: Report) -> str:
    """How much of F1 from scratch is kept, of the same model and of the best one."""
    rows = []
    for label, against in COMPARED:
        found = against_scratch(report, label, best=against == BEST_OF_FOUR)
        if found:
            graphs = dict.fromkeys(name for name, _ in found)
            each = [np.mean([r for key, r in found.items() if key[0] == g]) for g in graphs]
            error = float(np.std(each, ddof=1)) / len(each) ** 0.5 if len(each) > 1 else 0.0
            mean = f"{np.mean(list(found.values())):.3f} ± {error:.3f}"
            rows.append((label, against, mean, f"{min(found.values()):.3f}"))
    note = (
        f"A ratio counts as {CAP} at the most. Means are over all graphs and models, with the "
        "standard error over the graphs."
    )
    return f"{markdown_table(('', 'against', 'mean', 'least'), rows)}\n\n{note}"


def against_scratch(report: Report, label: str, *, best: bool) -> dict[tuple[str, str], float]:
    """F1 over F1 from scratch, of the same model or of the graph's best, at most `CAP`."""
    found = means(report)
    pairs = [key[:2] for key in found if key[2] == DEFAULT and key[3] == label]
    scratch = {pair: found.get((*pair, SCRATCH, SCRATCH)) for pair in pairs}
    top: dict[str, float] = {}
    for (name, _), value in scratch.items():
        top[name] = max(top.get(name, 0.0), value or 0.0)
    return {
        pair: min(CAP, found[*pair, DEFAULT, label] / (top[pair[0]] if best else value))
        for pair, value in scratch.items()
        if value
    }


def _labels(report: Report) -> list[str]:
    present = {label for cell in report["cells"] for label in cell["f1"]}
    return [label for label in AGGREGATIONS if label in present]


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
