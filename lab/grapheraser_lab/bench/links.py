"""Link prediction: closed-form members beside GNN encoders from scratch, and what they cost.

`cost` times the closed form. `run` measures AUC and Hits@50 on a tenth of the edges, held out,
against as many pairs without an edge. The encoders are plain PyG; learning rate and dropout are
chosen by the AUC on validation edges, for each graph, model and seed. Each (data set, model,
learning rate, dropout, seed) is a cell of kind ``links``, run and kept as those of the experiments
are: a run goes on where it was, and parts of it may be run elsewhere into the same folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from grapheraser_lab.figures.tables import filled, markdown_table
from grapheraser_lab.framework.cell import Cell
from grapheraser_lab.framework.runner import measured_cells
from grapheraser_lab.framework.shared_cells import CLOSED, ENCODERS, chosen, link_cells

DATASETS = ("cora", "citeseer", "pubmed", "facebook_pages", "amazon_computers", "cs")

Report = Mapping[str, Any]


def run(
    datasets: Iterable[str] = DATASETS,
    models: Iterable[str] = ENCODERS,
    *,
    seeds: int = 3,
    folder: str | Path = "runs/links",
    epochs: int = 200,
    device: str = "cpu",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Measure what is not measured yet, and report on everything.

    Args:
        datasets: which data sets.
        models: which encoders, beside the closed form.
        seeds: split and training are seeded with 0, 1, 2, ...
        folder: where finished cells are kept.
        epochs: of an encoder's training, at the most.
        device: where encoders are trained.
        progress: told how far it is.

    Returns: a JSON-able report; ``cells`` has the score of every model, seed and data set.
    """
    groups = {
        (name, model, seed): link_cells({"dataset": name, "seed": seed}, model, epochs)
        for name in datasets
        for model in (CLOSED, *models)
        for seed in range(seeds)
    }
    wanted = [cell for group in groups.values() for cell in group]
    results = measured_cells(wanted, folder, device=device, progress=progress)
    found = []
    for (name, model, seed), cells in groups.items():
        best = chosen({cell: results[cell].value for cell in cells})
        value = results[best].value
        found.append(
            {
                "dataset": name,
                "model": model,
                "seed": seed,
                "auc": value["auc"],
                "hits": value["hits"]["50"],
                "mrr": value["mrr"],
                "seconds": sum(results[cell].value["seconds"] for cell in cells),
                "lr": best.config.get("lr"),
                "dropout": best.config.get("dropout"),
            }
        )
    return {"benchmark": "links", "cells": found}


def cost(
    datasets: Iterable[str] = ("physics",),
    *,
    folder: str | Path = "runs/links",
    requests: int = 30,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Time a fit, requests, predictions and rankings of the closed form.

    Args:
        datasets: which data sets.
        folder: where finished cells are kept.
        requests: how many of each kind are timed.
        progress: told how far it is.
    """
    cells = {
        name: Cell.of("links-cost", dataset=name, seed=0, requests=requests) for name in datasets
    }
    results = measured_cells(cells.values(), folder, progress=progress)
    costs = {name: results[cell].value for name, cell in cells.items()}
    return {"benchmark": "links-cost", "costs": costs}


def means(report: Report) -> dict[tuple[str, str], dict[str, float]]:
    """AUC, Hits@50 and seconds averaged over seeds, by data set and model."""
    grouped: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for cell in report["cells"]:
        grouped.setdefault((cell["dataset"], cell["model"]), []).append(cell)
    return {
        key: {name: float(np.mean([c[name] for c in some])) for name in ("auc", "hits", "seconds")}
        for key, some in grouped.items()
    }


def markdown(report: Report) -> str:
    """The table and the verdict, or what requests cost."""
    if report["benchmark"] == "links-cost":
        return costs(report)
    return f"{table(report)}\n\n{verdict(report)}"


def table(report: Report) -> str:
    """AUC (Hits@50) and seconds by data set and model."""
    found = means(report)
    models = list(dict.fromkeys(model for _, model in found))
    rows = []
    for name in dict.fromkeys(name for name, _ in found):
        cells = [found.get((name, model)) for model in models]
        scores = ["" if c is None else f"{c['auc']:.4f} ({c['hits']:.3f})" for c in cells]
        seconds = " / ".join("-" if c is None else f"{c['seconds']:.1f}" for c in cells)
        rows.append((name, *scores, seconds))
    header = ("AUC (Hits@50)", *models, f"seconds: {' / '.join(models)}")
    note = "Means over the seeds. Seconds of an encoder are those of all choices of its options."
    return f"{markdown_table(header, rows)}\n\n{note}"


def verdict(report: Report) -> str:
    """How often the closed form is as good as the better encoder, and how far below at most."""
    found = means(report)
    good, total, least = 0, 0, 1.0
    for name in dict.fromkeys(name for name, _ in found):
        rivals = [
            value for (other, model), value in found.items() if other == name and model != CLOSED
        ]
        if not rivals or (name, CLOSED) not in found:
            continue
        ours = found[name, CLOSED]
        auc, hits = (ours[key] - max(rival[key] for rival in rivals) for key in ("auc", "hits"))
        good, total, least = good + (auc >= 0 and hits >= 0), total + 1, min(least, auc)
    if total == 0:
        return "No encoder was measured."
    return (
        f"The closed form is at least as good as the better encoder in AUC and Hits@50 on {good} "
        f"of {total} graphs; its AUC is {least:+.4f} from the better encoder's at the least."
    )


def costs(report: Report) -> str:
    """Processor time of one thread, by operation."""
    header = " | fit | forget an edge | forget a node | 10,000 pairs | rank"
    row = "{name} | {fit:.2f} s | {edge:ms} | {node:ms} | {pairs:.2f} s | {rank:ms0}"
    known = [{"name": name, **value} for name, value in report["costs"].items()]
    words = {"ms": lambda s: f"{1e3 * s:.1f} ms", "ms0": lambda s: f"{1e3 * s:.0f} ms"}
    return f"{filled(header, row, known, words=words)}\n\nMedians, processor time of one thread."
