"""Time of the balanced partition methods (table:baseline_efficiency)."""

from __future__ import annotations

from typing import Any

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
from grapheraser.experiments.framework.shared_cells import measured, partition_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration

METHODS = ("blpa", "blpa-lp", "bekm", "bekm-hungarian", "metis")


def methods(options: Options) -> tuple[str, ...]:
    """The paper's five, and the user's own."""
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def _cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {
        (dataset, method): partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in methods(options)
    }


def cells(options: Options) -> list[Cell]:
    """One partition for each data set and method."""
    return list(_cells(options).values())


def summarise(options: Options, results: Results) -> Summary:
    """Seconds beside the paper's, and the share of edges that stay inside shards."""
    found = measured(results, _cells(options))
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(dataset),
            "method": method,
            "seconds": value["seconds"],
            "embedding_seconds": value["embedding_seconds"],
            "paper_seconds": paper.SECONDS.get((dataset, method)),
            "edges_kept": value["edges_kept"],
            "largest": max(value["sizes"]),
            "capacity": value["capacity"],
            "iterations": value["iterations"],
        }
        for (dataset, method), value in found.items()
    ]
    table_rows = []
    for dataset in options.datasets:
        line: list[Entry | str] = [shown(dataset)]
        for method in methods(options):
            value = found.get((dataset, method))
            told = paper.SECONDS.get((dataset, method))
            kept = "" if value is None else f", {100 * value['edges_kept']:.0f} % of edges kept"
            text = duration(None if value is None else value["seconds"])
            line.append(Entry(text + kept, "" if told is None else f"paper {duration(told)}"))
        table_rows.append(tuple(line))
    table = Table(
        "Time to partition the graph, and edges that stay inside shards",
        ("data set", *(shown(method) for method in methods(options))),
        tuple(table_rows),
        "One thread, compiled code. The k-means methods are timed without their embedding, which "
        "all of them share; `cost` counts it.",
    )
    groups = [shown(dataset) for dataset in options.datasets]
    return Summary(
        rows,
        [table],
        [
            *_faster(options, found, "blpa", "blpa-lp", "BLPA is faster than BLPA-LP."),
            *_faster(
                options, found, "bekm", "bekm-hungarian", "BEKM is faster than BEKM-Hungarian."
            ),
            *_faster(options, found, "blpa", "metis", "BLPA is as fast as METIS, or faster."),
        ],
        lambda: draw_bars(
            [
                Bars(
                    "partitioning the graph",
                    groups,
                    {
                        shown(m): [
                            found[d, m]["seconds"] if (d, m) in found else None
                            for d in options.datasets
                        ]
                        for m in methods(options)
                    },
                    paper={
                        m: [paper.SECONDS.get((d, m)) for d in options.datasets] for m in METHODS
                    },
                )
            ],
            "seconds",
            log=True,
        ),
    )


def _faster(
    options: Options,
    found: dict[tuple[str, str], dict[str, Any]],
    fast: str,
    slow: str,
    statement: str,
) -> list[Claim]:
    ratios = {
        d: found[d, slow]["seconds"] / found[d, fast]["seconds"]
        for d in options.datasets
        if (d, slow) in found and (d, fast) in found
    }
    told = [
        f"{shown(d)} {ratio:.3g}x"
        + (
            f" (paper {paper.SECONDS[d, slow] / paper.SECONDS[d, fast]:.3g}x)"
            if (d, slow) in paper.SECONDS
            else ""
        )
        for d, ratio in ratios.items()
    ]
    return judged_claim(
        statement,
        [ratio > 1 for ratio in ratios.values()],
        lambda count: f"On {count}: {', '.join(told)}.",
        noun="data set",
    )


register(
    Experiment(
        "partition-cost",
        "Time of the partition methods",
        "table:baseline_efficiency",
        "all five data sets 3 min; one process",
        cells,
        summarise,
    )
)
