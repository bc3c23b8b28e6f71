"""Edges taken out of the training graph: gain over random shards (figure:gap)."""

from __future__ import annotations

from collections.abc import Mapping

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    Line,
    along,
    curve_figure,
    curve_rows,
    curve_runs,
    curve_table,
    lines_of,
    percent,
)
from grapheraser.experiments.framework.means import Mean, mean_of, pearson
from grapheraser.experiments.framework.noise import Difference
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import MOST, Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    every_cell,
    f1_means,
    standing,
    utility_cells,
)
from grapheraser.reports.tables import Table

SHARES = tuple(round(0.1 * step, 1) for step in range(10))
METHODS = ("random", "blpa", "bekm", "bekm-free")

Key = tuple[str, str, str, float]


@rule(
    "structure/gain",
    "When the graph structure is more important, the utility improvement of GraphEraser over "
    "Random is more significant in most of the cases.",
    "Every data set, GNN and partition: the correlation of the gain over random shards with the "
    "share of deleted edges is negative, beyond noise over the runs.",
    limits=MOST,
)
def more_with_structure(correlations: Mapping[tuple[str, str, str], Mean]) -> Finding:
    """Pearson's correlation of each run."""
    falls = {k: Difference(-r.mean, r.error, max(0, r.runs - 1)) for k, r in correlations.items()}
    cases = [Case(named(*key), fall.above(0.0)) for key, fall in falls.items()]
    if not cases:
        return Finding([], "")
    average = sum(r.mean for r in correlations.values()) / len(correlations)
    return Finding(cases, f"The correlation is {average:.2f} on average.")


def _methods(options: Options) -> tuple[str, ...]:
    there = [method for method in METHODS if method in options.main_partitions]
    return tuple(dict.fromkeys((*there, *options.partitions)))


def _groups(options: Options) -> dict[Key, list[Cell]]:
    return {
        (dataset, model, method, share): utility_cells(
            options, dataset, model, method, drop_edges=share
        )
        for dataset, model in options.pairs
        for method in _methods(options)
        for share in SHARES
    }


def cells(options: Options) -> list[Cell]:
    """Random, BLPA and BEKM on every thinned graph."""
    return every_cell(_groups(options))


def gains_of(found: Mapping[Key, Mean]) -> dict[Key, Mean]:
    """F1 over that of random shards of the same run; collapsed where the method is."""
    gains = {}
    for (dataset, model, method, share), ours in found.items():
        random = found.get((dataset, model, METHODS[0], share))
        if method == METHODS[0] or random is None:
            continue
        theirs = dict(random.by_run)
        by_run = {run: value - theirs[run] for run, value in ours.by_run if run in theirs}
        gain = mean_of(by_run, collapsed=ours.collapsed)
        if gain is not None:
            gains[dataset, model, method, share] = gain
    return gains


def correlations_of(gains: Line) -> dict[tuple[str, str, str], Mean]:
    """Of the gain with the share of deleted edges, run by run."""
    found = {}
    for line in lines_of(gains):
        by_run: dict[int, list[tuple[float, float]]] = {}
        for share, mean in along(gains, *line):
            for run, gain in mean.by_run:
                by_run.setdefault(run, []).append((share, gain))
        known = {
            run: pearson([x for x, _ in points], [y for _, y in points])
            for run, points in by_run.items()
        }
        mean_r = mean_of(known)
        if mean_r is not None:
            found[line] = mean_r
    return found


def summarise(options: Options, results: Results) -> Summary:
    """Gain by share of deleted edges, and its correlation with that share."""
    gains = gains_of(f1_means(results, _groups(options), options.chosen))
    known, out = standing(gains)
    correlations = correlations_of(known)
    titles = {}
    for dataset, model in options.pairs:
        words = [
            f"{shown(s)} {r.mean:.2f}"
            for (d, m, s), r in correlations.items()
            if (d, m) == (dataset, model)
        ]
        told = ",\n".join(", ".join(words[at : at + 2]) for at in range(0, len(words), 2))
        titles[dataset, model] = f"{shown(dataset)}, {shown(model).upper()}; r:\n{told}"
    table = Table(
        "Pearson correlation of the gain with the share of deleted edges",
        ("data set", "model", "method", "correlation"),
        tuple((*map(shown, line), str(r)) for line, r in correlations.items()),
        "Negative: the more structure is left, the more BLPA or BEKM gains over random shards. "
        "Mean and standard deviation over the runs, without collapsed figures.",
    )
    title = f"Gain in F1 over random shards ({options.how.chosen})"
    return Summary(
        curve_rows(gains, "deleted"),
        [table, curve_table(gains, title, tell=percent, note="† collapsed.")],
        more_with_structure(correlations, left_out=out),
        lambda: curve_figure(gains, "deleted edges (%)", "gain in F1", titles=titles, scale=100),
        runs=curve_runs(gains, "deleted", "gain"),
    )


register(
    Experiment(
        "structure",
        "Deleting 0 to 90 % of the edges",
        "figure:gap",
        "Cora and Citeseer 4 min a run",
        cells,
        summarise,
        datasets=("cora", "citeseer"),
        most_runs=SWEEP_RUNS,
    )
)
