"""Time of a node or edge request (figure:node_unlearning_efficiency and its edge twin).

Every request is carried out for real, from the call to the receipt, on a copy of the same fitted
model: the shard is retrained and LBAggr relearned. Scratch is the one-shard case on the
same engine, so the ratio says what sharding gives, and nothing about the engine.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import SCRATCH, measured, requests_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration

SIMILAR = 1.5

Key = tuple[str, str, str]
Times = dict[Key, dict[str, Any]]


def _methods(options: Options) -> tuple[str, ...]:
    return (SCRATCH, *options.main_partitions)


def _cells(options: Options) -> dict[Key, Cell]:
    return {
        (dataset, model, method): requests_cell(options, dataset, model, method)
        for dataset, model in options.pairs
        for method in _methods(options)
    }


def cells(options: Options) -> list[Cell]:
    """One cell gives node and edge requests, predictions and LBAggr's learning."""
    return list(_cells(options).values())


def summarise(options: Options, results: Results, what: str) -> Summary:
    """Mean seconds of a request, and how many times faster than scratch."""
    values = measured(results, _cells(options))
    found: Times = {key: value[what] for key, value in values.items()}
    ratios = {
        key: found[key[0], key[1], SCRATCH]["mean"] / value["mean"]
        for key, value in found.items()
        if key[2] != SCRATCH and (key[0], key[1], SCRATCH) in found
    }
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(dataset),
            "model": shown(model),
            "partition": method,
            "seconds": value["mean"],
            "std": value["std"],
            "median": value["median"],
            "training": value["training"],
            "aggregation": value["aggregation"],
            "shards_retrained": value["retrained"],
            "requests": value["requests"],
            "speedup": ratios.get((dataset, model, method)),
            "paper_speedup": paper.SPEEDUP.get(dataset),
        }
        for (dataset, model, method), value in found.items()
    ]
    claims = _claims(options, found, ratios)
    tables = [_table(options, found, ratios, what), _speedups(options, ratios)]
    return Summary(rows, tables, claims, lambda: _figure(options, found))


def _table(options: Options, found: Times, ratios: dict[Key, float], what: str) -> Table:
    rows = []
    for dataset, model in options.pairs:
        line: list[Entry | str] = [shown(dataset), shown(model)]
        for method in _methods(options):
            key = dataset, model, method
            text = duration(found[key]["mean"] if key in found else None)
            line.append(f"{text} ({ratios[key]:.3g}x)" if key in ratios else text)
        rows.append(tuple(line))
    one = {"nodes": "a node", "edges": "an edge"}[what]
    counts = sorted({value["requests"] for value in found.values()})
    told = f"{counts[0]} to {counts[-1]}" if len(counts) > 1 else f"{counts[0]}" if counts else "no"
    return Table(
        f"Time to forget {one}, and how many times less than scratch",
        ("data set", "model", *(shown(method) for method in _methods(options))),
        tuple(rows),
        f"Means of {told} independent requests, processor time on one thread; LBAggr is learned "
        "again every time.",
    )


def _by_dataset(options: Options, ratios: dict[Key, float]) -> dict[str, float]:
    """Geometric mean over models and partitions."""
    found = {}
    for dataset in options.datasets:
        logs = [np.log(ratio) for key, ratio in ratios.items() if key[0] == dataset]
        if logs:
            found[dataset] = float(np.exp(np.mean(logs)))
    return found


def _speedups(options: Options, ratios: dict[Key, float]) -> Table:
    rows = []
    for dataset, ratio in _by_dataset(options, ratios).items():
        told = paper.SPEEDUP.get(dataset)
        least = min(r for key, r in ratios.items() if key[0] == dataset)
        most = max(r for key, r in ratios.items() if key[0] == dataset)
        rows.append(
            (
                shown(dataset),
                f"{options.shards(dataset)}",
                f"{ratio:.2f}x",
                f"{least:.2f}x to {most:.2f}x",
                "-" if told is None else f"{told:.2f}x",
            )
        )
    return Table(
        "How many times less than scratch, geometric mean over models and partitions",
        ("data set", "shards", "ours", "from to", "paper"),
        tuple(rows),
    )


def _claims(options: Options, found: Times, ratios: dict[Key, float]) -> list[Claim]:
    means = _by_dataset(options, ratios)
    words = ", ".join(f"{shown(d)} {r:.1f}x" for d, r in means.items())
    small = [r for d, r in means.items() if d in ("cora", "citeseer")]
    large = [r for d, r in means.items() if d in ("pubmed", "cs", "physics")]
    told = ", ".join(f"{d} {paper.SPEEDUP[d]}x" for d in means if d in paper.SPEEDUP)
    similar = [
        1 / SIMILAR <= value["mean"] / found[dataset, model, "random"]["mean"] <= SIMILAR
        for (dataset, model, method), value in found.items()
        if method in ("blpa", "bekm") and (dataset, model, "random") in found
    ]
    return [
        *judged_claim(
            "Sharding makes unlearning much faster than training from scratch.",
            [ratio > 1 for ratio in ratios.values()],
            lambda count: f"Faster in {count}: {words}.",
        ),
        *judged_claim(
            "The gain is larger on the larger graphs (Pubmed, CS, Physics).",
            [r > max(small) for r in large] if small else [],
            lambda _: f"{words}; the paper: {told}.",
        ),
        *judged_claim(
            "BLPA and BEKM take about as long as random shards, because they are balanced.",
            similar if ratios else [],
            lambda count: f"Within a factor of {SIMILAR} in {count}.",
        ),
    ]


def _figure(options: Options, found: Times) -> Any:
    panels = []
    for dataset in options.datasets:
        values = {
            shown(method): [
                found[dataset, model, method]["mean"] if (dataset, model, method) in found else None
                for model in options.models
            ]
            for method in _methods(options)
        }
        groups = [shown(model).upper() for model in options.models]
        panels.append(Bars(shown(dataset), groups, values))
    return draw_bars(panels, "seconds per request", log=True)


for _name, _what, _label in (
    ("node-efficiency", "nodes", "figure:node_unlearning_efficiency"),
    ("edge-efficiency", "edges", "figure:edge_unlearning_efficiency"),
):
    register(
        Experiment(
            _name,
            f"Time to forget {'a node' if _what == 'nodes' else 'an edge'}",
            _label,
            "Cora and Citeseer 5 min, all five data sets about 45 min; both figures share it",
            cells,
            partial(summarise, what=_what),
        )
    )
