"""The size limit of a shard: gamma from 0 to 1 (figure:delta)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    along,
    curve_figure,
    curve_rows,
    curve_table,
    lines_of,
)
from grapheraser.experiments.framework.means import Mean
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.shared_cells import f1, utility_cells

GAMMAS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
METHODS = ("bekm", "blpa")
SLIGHT = 0.03


def _models(options: Options) -> tuple[str, ...]:
    """The paper does not say which model; the cheapest two tell enough."""
    chosen = tuple(model for model in ("gcn", "gin") if model in options.models)
    return chosen or options.models[:1]


def cells(options: Options) -> list[Cell]:
    """BLPA and BEKM at every gamma."""
    return [
        cell
        for dataset in options.datasets
        for model in _models(options)
        for method in METHODS
        for gamma in GAMMAS
        for cell in utility_cells(options, dataset, model, method, gamma=gamma)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """F1 by gamma: delta = ceil(n/k) + gamma (n - ceil(n/k))."""
    text = options.how.aggregations.get("learned", "mean")
    found: dict[tuple[str, str, str, float], Mean] = {}
    for dataset in options.datasets:
        for model in _models(options):
            for method in METHODS:
                for gamma in GAMMAS:
                    group = utility_cells(options, dataset, model, method, gamma=gamma)
                    value = f1(results, group, text)
                    if value is not None:
                        found[dataset, model, method, gamma] = value
    ranges = []
    for line in lines_of(found):
        means = [value.mean for _, value in along(found, *line)]
        ranges.append(max(means) - min(means))
    claims = []
    if ranges:
        good = sum(width <= SLIGHT for width in ranges)
        claims.append(
            Claim(
                "The size limit has only a slight impact on F1.",
                judged(good, len(ranges)),
                f"All gammas lie within {SLIGHT} in {counted(good, len(ranges), 'cases')}; "
                f"{max(ranges):.3f} at the widest.",
            )
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
