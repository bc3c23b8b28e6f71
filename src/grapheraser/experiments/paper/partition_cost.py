"""Time of the balanced partition methods (table:baseline_efficiency)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    no_models,
    register,
)
from grapheraser.experiments.framework.means import Mean, heights, mean_of, spreads
from grapheraser.experiments.framework.noise import paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import partition_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table
from grapheraser.reports.wording import duration, three_figures

METHODS = ("blpa", "blpa-lp", "bekm", "bekm-hungarian", "metis")
MUCH_HIGHER, STEEP = 10.0, 2.0

# Seconds by data set and method.
Seconds = Mapping[tuple[str, str], Mean]


def _slower(found: Seconds, slow: str, fast: str, times: float = 1.0) -> Finding:
    """On how many data sets one method takes so many times as long as another."""
    cases, told = [], []
    for d in dict.fromkeys(key[0] for key in found):
        one, other = found.get((d, slow)), found.get((d, fast))
        if one is None or other is None:
            continue
        gap = paired(one, scaled(other, times))
        cases.append(Case(shown(d), True if gap.low > 0 else False if gap.high < 0 else None))
        published = paper.SECONDS.get((d, slow)), paper.SECONDS.get((d, fast))
        words = f"{shown(d)} {three_figures(one.mean / other.mean)}x"
        if published[0] is not None and published[1] is not None:
            words += f" (paper {three_figures(published[0] / published[1])}x)"
        told.append(words)
    return Finding(cases, f"Times as long: {', '.join(told)}.")


def scaled(mean: Mean, factor: float) -> Mean:
    """The same figure times a number."""
    std = None if mean.std is None else mean.std * factor
    by_run = tuple((run, value * factor) for run, value in mean.by_run)
    return Mean(mean.mean * factor, std, mean.runs, mean.tested, by_run)


@rule(
    "partition-cost/blpa-lp",
    "GraphEraser-BLPA is more efficient than BLPA-LP.",
    "Every data set: BLPA-LP takes longer, beyond noise.",
    noun="data set",
)
def blpa_faster(found: Seconds) -> Finding:
    """Run by run."""
    return _slower(found, "blpa-lp", "blpa")


@rule(
    "partition-cost/hungarian",
    "The computational complexity of BEKM-Hungarian is much higher than that of GraphEraser-BEKM.",
    f"Every data set: BEKM-Hungarian takes more than {MUCH_HIGHER:g} times as long, beyond noise.",
    noun="data set",
)
def hungarian_slower(found: Seconds) -> Finding:
    """Run by run."""
    return _slower(found, "bekm-hungarian", "bekm", MUCH_HIGHER)


@rule(
    "partition-cost/hungarian-scales",
    "We also observe that BEKM-Hungarian is not scalable to large graphs.",
    f"Over the data sets, its time grows with the number of nodes to the power of at least "
    f"{STEEP:g} (the paper names n cubed).",
)
def hungarian_does_not_scale(found: Seconds, nodes: Mapping[str, int]) -> Finding:
    """The slope of the logarithms."""
    there = [(nodes[d], mean.mean) for (d, m), mean in found.items() if m == "bekm-hungarian"]
    if len({count for count, _ in there}) < 3:
        return Finding([], "")
    x, y = np.log(np.array(there, dtype=np.float64)).T
    power = float(np.polyfit(x, y, 1)[0])
    most = max(seconds for _, seconds in there)
    told = (
        f"Its time grows with the power {power:.2f} of the nodes, to {duration(most)}. Here the "
        "assignment is solved as a transport problem with as many sinks as shards; the paper's "
        "code pads it to a square of n by n."
    )
    return Finding([Case("power", power >= STEEP)], told)


@rule(
    "partition-cost/metis",
    "BLPA is as fast as METIS, or faster.",
    "Every data set: METIS takes longer, beyond noise.",
    noun="data set",
    ours=True,
)
def metis_slower(found: Seconds) -> Finding:
    """The paper's table says so on four of five, its text does not."""
    return _slower(found, "metis", "blpa")


def methods(options: Options) -> tuple[str, ...]:
    """The paper's five, and the user's own."""
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, method): [
            partition_cell(options, dataset, method, run) for run in range(options.runs)
        ]
        for dataset in options.datasets
        for method in methods(options)
    }


def cells(options: Options) -> list[Cell]:
    """A partition for each data set, method and run."""
    return [cell for group in _groups(options).values() for cell in group]


def seconds_of(
    results: Results, groups: Mapping[tuple[str, str], list[Cell]], *, embedding: bool = False
) -> dict[tuple[str, str], Mean]:
    """Seconds of each partition, mean over the runs; with its embedding where that is wanted."""
    found = {}
    for key, group in groups.items():
        values = {int(cell["seed"]): results.value(cell) for cell in group}
        mean = mean_of(
            {
                run: value["seconds"] + (value["embedding_seconds"] if embedding else 0.0)
                for run, value in values.items()
                if value is not None
            }
        )
        if mean is not None:
            found[key] = mean
    return found


def summarise(options: Options, results: Results) -> Summary:
    """Seconds beside the paper's, and the share of edges that stay inside shards."""
    groups = _groups(options)
    found = seconds_of(results, groups)
    runs: list[dict[str, Any]] = []
    nodes: dict[str, int] = {}
    kept: dict[tuple[str, str], Mean] = {}
    for (dataset, method), group in groups.items():
        known = [(int(c["seed"]), value) for c in group if (value := results.value(c)) is not None]
        runs += [_row(dataset, method, run, value) for run, value in known]
        inside = mean_of({run: value["edges_kept"] for run, value in known})
        if inside is not None:
            kept[dataset, method] = inside
            nodes[dataset] = known[0][1]["nodes"]
    table = Table(
        "Time to partition the graph, and edges that stay inside shards",
        ("data set", *(shown(method) for method in methods(options))),
        tuple(
            (shown(d), *(_entry(found, kept, (d, m)) for m in methods(options)))
            for d in options.datasets
        ),
        "Mean and standard deviation over the runs, one thread, compiled code. The k-means methods "
        "are timed without their embedding, which all of them share; `cost` counts it.",
    )
    return Summary(
        runs,
        [table],
        [
            *blpa_faster(found),
            *hungarian_slower(found),
            *hungarian_does_not_scale(found, nodes),
            *metis_slower(found),
        ],
        lambda: _figure(options, found),
    )


def _row(dataset: str, method: str, run: int, value: dict[str, Any]) -> dict[str, Any]:
    return {
        "dataset": shown(dataset),
        "method": method,
        "run": run,
        "seconds": value["seconds"],
        "embedding_seconds": value["embedding_seconds"],
        "paper_seconds": paper.SECONDS.get((dataset, method)),
        "edges_kept": value["edges_kept"],
        "largest": max(value["sizes"]),
        "capacity": value["capacity"],
        "iterations": value["iterations"],
    }


def _entry(found: Seconds, kept: Mapping[tuple[str, str], Mean], key: tuple[str, str]) -> Entry:
    told = paper.SECONDS.get(key)
    below = "" if told is None else f"paper {duration(told)}"
    mean = found.get(key)
    if mean is None:
        return Entry("-", below)
    text = duration(mean.mean)
    if mean.std is not None:
        text += f" ± {duration(mean.std)}"
    return Entry(f"{text}, {100 * kept[key].mean:.0f} % of edges kept", below)


def _figure(options: Options, found: Seconds) -> Any:
    lines = {m: [found.get((d, m)) for d in options.datasets] for m in methods(options)}
    panel = Bars(
        "partitioning the graph",
        [shown(dataset) for dataset in options.datasets],
        {shown(m): heights(line) for m, line in lines.items()},
        {shown(m): spreads(line) for m, line in lines.items()},
        {m: [paper.SECONDS.get((d, m)) for d in options.datasets] for m in METHODS},
    )
    return draw_bars([panel], "seconds", log=True)


register(
    Experiment(
        "partition-cost",
        "Time of the partition methods",
        "table:baseline_efficiency",
        "all five data sets 3 min a run; one process",
        cells,
        summarise,
        models=no_models,
        most_runs=SWEEP_RUNS,
    )
)
