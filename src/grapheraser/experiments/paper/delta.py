"""The size limit of a shard: gamma from 0 to 1 (figure:delta)."""

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
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.shared_cells import every_cell, f1_means, utility_cells

GAMMAS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
METHODS = ("bekm", "blpa")
SLIGHT = 0.03


def _models(options: Options) -> tuple[str, ...]:
    """The paper does not say which model; the cheapest two tell enough."""
    chosen = tuple(model for model in ("gcn", "gin") if model in options.models)
    return chosen or options.models[:1]


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    return {
        (dataset, model, method, gamma): utility_cells(options, dataset, model, method, gamma=gamma)
        for dataset in options.datasets
        for model in _models(options)
        for method in METHODS
        for gamma in GAMMAS
    }


def cells(options: Options) -> list[Cell]:
    """BLPA and BEKM at every gamma."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by gamma: delta = ceil(n/k) + gamma (n - ceil(n/k))."""
    found = f1_means(results, _groups(options), options.learned)
    ranges = []
    for line in lines_of(found):
        means = [value.mean for _, value in along(found, *line)]
        ranges.append(max(means) - min(means))
    claims = judged_claim(
        "The size limit has only a slight impact on F1.",
        [width <= SLIGHT for width in ranges],
        lambda count: (
            f"All gammas lie within {SLIGHT} in {count}; {max(ranges):.3f} at the widest."
        ),
    )
    return Summary(
        curve_rows(found, "gamma"),
        [curve_table(found, "Micro F1 (LBAggr) by gamma")],
        claims,
        lambda: curve_figure(found, "gamma", "micro F1"),
    )


register(
    Experiment(
        "delta",
        "The size limit of a shard",
        "figure:delta",
        "Cora and Citeseer half a minute a run, all five data sets 15 min a run",
        cells,
        summarise,
        one_run_in=3,
    )
)
