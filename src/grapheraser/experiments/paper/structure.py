"""Edges taken out of the training graph: gain over random shards (figure:gap)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    along,
    curve_figure,
    curve_rows,
    curve_table,
    lines_of,
    percent,
)
from grapheraser.experiments.framework.means import Mean, mean_of, pearson
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import every_cell, utility_cells
from grapheraser.reports.tables import Table

SHARES = tuple(round(0.1 * step, 1) for step in range(10))
METHODS = ("random", "blpa", "bekm")


def _methods(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*METHODS, *options.partitions)))


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
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


def _gains(options: Options, results: Results) -> dict[tuple[str, str, str, float], Mean]:
    """F1 over that of random shards of the same run, with LBAggr."""
    scores = {
        key: [
            None if (value := results.value(cell)) is None else value["f1"][options.learned]
            for cell in group
        ]
        for key, group in _groups(options).items()
    }
    found = {}
    for (dataset, model, method, share), ours in scores.items():
        theirs = scores[dataset, model, METHODS[0], share]
        gain = mean_of(
            None if one is None or other is None else one - other
            for one, other in zip(ours, theirs, strict=True)
        )
        if method != METHODS[0] and gain is not None:
            found[dataset, model, method, share] = gain
    return found


def summarise(options: Options, results: Results) -> Summary:
    """Gain by share of deleted edges, and its correlation with that share."""
    found = _gains(options, results)
    correlations = {}
    for line in lines_of(found):
        curve = along(found, *line)
        correlations[line] = pearson([x for x, _ in curve], [value.mean for _, value in curve])
    known = {line: r for line, r in correlations.items() if r is not None}
    titles = {}
    for dataset, model in options.pairs:
        words = [
            f"{shown(s)} r = {r:.2f}"
            for (d, m, s), r in known.items()
            if (d, m) == (dataset, model)
        ]
        titles[dataset, model] = f"{shown(dataset)}, {shown(model).upper()}\n{', '.join(words)}"
    table = Table(
        "Pearson correlation of the gain with the share of deleted edges",
        ("data set", "model", "method", "correlation"),
        tuple((*map(shown, line), f"{r:.2f}") for line, r in known.items()),
        "Negative: the more structure is left, the more BLPA or BEKM gains over random shards.",
    )
    claims = judged_claim(
        "The more the structure matters, the more BLPA and BEKM gain over random shards.",
        [r < 0 for r in known.values()],
        lambda count: (
            f"The correlation is negative in {count}; {sum(known.values()) / len(known):.2f} on "
            "average."
        ),
    )
    return Summary(
        curve_rows(found, "deleted"),
        [table, curve_table(found, "Gain in F1 over random shards (LBAggr)", tell=percent)],
        claims,
        lambda: curve_figure(found, "deleted edges (%)", "gain in F1", titles=titles, scale=100),
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
        one_run_in=3,
    )
)
