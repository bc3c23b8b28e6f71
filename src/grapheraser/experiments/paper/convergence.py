"""How many nodes move in each iteration of BLPA and BEKM (figure:convergence)."""

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
from grapheraser.experiments.framework.noise import spread_of
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import partition_cell
from grapheraser.reports.figures.curves import Curves, draw_curves
from grapheraser.reports.tables import Table

METHODS = ("blpa", "bekm")
STILL = 0.01

# Share of moved nodes in each iteration, by data set and method, for each run.
Moved = Mapping[tuple[str, str], Mapping[int, list[float]]]


@rule(
    "convergence/zero",
    "The ratio of moved nodes gradually approximates to zero within 30 iterations for both "
    "algorithms on all five datasets.",
    f"Every data set and method: in the last of at most 30 iterations at most {100 * STILL:.0f} % "
    "of the nodes move, over the runs.",
    noun="partition",
)
def comes_to_rest(moved: Moved) -> Finding:
    """The last iteration."""
    ends = {key: spread_of(shares[-1] for shares in runs.values()) for key, runs in moved.items()}
    cases = [Case(named(*key), end.at_most(STILL)) for key, end in ends.items()]
    worst = max((end.mean for end in ends.values()), default=0.0)
    return Finding(cases, f"At most {100 * worst:.2f} % move at the end.")


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, method): [
            partition_cell(options, dataset, method, run) for run in range(options.runs)
        ]
        for dataset in options.datasets
        for method in METHODS
    }


def cells(options: Options) -> list[Cell]:
    """Shared with partition-cost."""
    return [cell for group in _groups(options).values() for cell in group]


def summarise(options: Options, results: Results) -> Summary:
    """Share of moved nodes by iteration, and where it ends."""
    moved: dict[tuple[str, str], dict[int, list[float]]] = {}
    for key, group in _groups(options).items():
        for cell in group:
            value = results.value(cell)
            if value is not None and value["moved"]:
                shares = [count / value["nodes"] for count in value["moved"]]
                moved.setdefault(key, {})[int(cell["seed"])] = shares
    rows: list[dict[str, Any]] = [
        {"dataset": shown(d), "method": m, "run": run, "iteration": i + 1, "moved": share}
        for (d, m), runs in moved.items()
        for run, shares in runs.items()
        for i, share in enumerate(shares)
    ]
    table = Table(
        "Share of nodes that still move",
        ("data set", "method", "iterations", "after 1", "after 5", "after 10", "at the end"),
        tuple(_line(key, list(runs.values())) for key, runs in moved.items()),
        "Means over the runs. At most 30 iterations; fewer where nothing moved any more.",
    )
    return Summary(rows, [table], comes_to_rest(moved), lambda: _figure(moved))


def _line(key: tuple[str, str], runs: list[list[float]]) -> tuple[str, ...]:
    lengths = [len(shares) for shares in runs]
    places = (1, 5, 10, max(lengths))
    means = [np.mean([shares[min(i, len(shares)) - 1] for shares in runs]) for i in places]
    span = (
        f"{min(lengths)}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}"
    )
    return (shown(key[0]), key[1], span, *(f"{100 * mean:.2f} %" for mean in means))


def _figure(moved: Moved) -> Any:
    panels = []
    for method in METHODS:
        series = {}
        for (d, m), runs in moved.items():
            if m != method:
                continue
            longest = max(map(len, runs.values()))
            # A partition that came to rest stays there.
            whole = np.array([s + [0.0] * (longest - len(s)) for s in runs.values()]) * 100
            spread = whole.std(axis=0, ddof=1) if len(whole) > 1 else np.zeros(longest)
            x = list(range(1, longest + 1))
            series[shown(d)] = (x, whole.mean(axis=0).tolist(), spread.tolist())
        panels.append(Curves(method.upper(), series))
    return draw_curves(panels, "iteration", "moved nodes (%)", columns=2, whole_x=True)


register(
    Experiment(
        "convergence",
        "Convergence of BLPA and BEKM",
        "figure:convergence",
        "nothing beside partition-cost",
        cells,
        summarise,
        models=no_models,
        most_runs=SWEEP_RUNS,
    )
)
