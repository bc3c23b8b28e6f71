"""The size limit of a shard: gamma from 0 to 1 (figure:delta)."""

from __future__ import annotations

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
)
from grapheraser.experiments.framework.noise import all_of, paired
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import (
    every_cell,
    f1_means,
    standing,
    utility_cells,
)

GAMMAS = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
METHODS = ("bekm", "bekm-free", "blpa")
SLIGHT = 0.03


@rule(
    "delta/slight",
    "In general, we observe that delta only has a slight impact on the model utility.",
    f"Every data set, GNN and partition: at every gamma F1 is within {SLIGHT} of that at gamma 0.",
)
def slight(found: Line) -> Finding:
    """All gammas of a line together are one case."""
    cases, widest = [], 0.0
    for line in lines_of(found):
        curve = dict(along(found, *line))
        if GAMMAS[0] in curve and len(curve) > 1:
            gaps = [paired(mean, curve[GAMMAS[0]]) for g, mean in curve.items() if g != GAMMAS[0]]
            widest = max(widest, *(abs(gap.mean) for gap in gaps))
            cases.append(Case(named(*line), all_of(gap.within(SLIGHT) for gap in gaps)))
    return Finding(cases, f"At most {widest:.3f} from gamma 0.")


def models(options: Options) -> tuple[str, ...]:
    """The paper does not say which model; the cheapest two tell enough."""
    chosen = tuple(model for model in ("gcn", "gin") if model in options.models)
    return chosen or options.models[:1]


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    methods = [method for method in METHODS if method in options.main_partitions]
    return {
        (dataset, model, method, gamma): utility_cells(options, dataset, model, method, gamma=gamma)
        for dataset in options.datasets
        for model in models(options)
        for method in methods
        for gamma in GAMMAS
    }


def cells(options: Options) -> list[Cell]:
    """BLPA and BEKM at every gamma."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by gamma: delta = ceil(n/k) + gamma (n - ceil(n/k))."""
    found = f1_means(results, _groups(options), options.chosen)
    known, out = standing(found)
    return Summary(
        curve_rows(found, "gamma"),
        [curve_table(found, f"Micro F1 ({options.how.chosen}) by gamma", note="† collapsed.")],
        slight(known, left_out=out),
        lambda: curve_figure(found, "gamma", "micro F1"),
        runs=curve_runs(found, "gamma"),
    )


register(
    Experiment(
        "delta",
        "The size limit of a shard",
        "figure:delta",
        "Cora and Citeseer half a minute a run, all five data sets 15 min a run",
        cells,
        summarise,
        models=models,
        most_runs=SWEEP_RUNS,
    )
)
