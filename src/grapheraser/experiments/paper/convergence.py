"""How many nodes move in each iteration of BLPA and BEKM (figure:convergence)."""

from __future__ import annotations

from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import measured, partition_cell
from grapheraser.reports.figures.curves import Curves, draw_curves
from grapheraser.reports.tables import Table

METHODS = ("blpa", "bekm")
STILL = 0.01


def _cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {
        (dataset, method): partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in METHODS
    }


def cells(options: Options) -> list[Cell]:
    """Shared with partition-cost."""
    return list(_cells(options).values())


def summarise(options: Options, results: Results) -> Summary:
    """Share of moved nodes by iteration, and where it ends."""
    moved = {
        key: [count / value["nodes"] for count in value["moved"]]
        for key, value in measured(results, _cells(options)).items()
        if value["moved"]
    }
    rows: list[dict[str, Any]] = [
        {"dataset": shown(d), "method": m, "iteration": i + 1, "moved": share}
        for (d, m), shares in moved.items()
        for i, share in enumerate(shares)
    ]
    table = Table(
        "Share of nodes that still move",
        ("data set", "method", "iterations", "after 1", "after 5", "after 10", "at the end"),
        tuple(
            (
                shown(d),
                m,
                f"{len(shares)}",
                *(f"{100 * shares[min(i, len(shares)) - 1]:.2f} %" for i in (1, 5, 10)),
                f"{100 * shares[-1]:.2f} %",
            )
            for (d, m), shares in moved.items()
        ),
        "At most 30 iterations; fewer where nothing moved any more.",
    )
    ends = [shares[-1] for shares in moved.values()]
    claims = judged_claim(
        "The share of moving nodes comes close to 0 within 30 iterations.",
        [share <= STILL for share in ends],
        lambda count: (
            f"At most {100 * STILL:.0f} % move at the end in {count}, none at all in "
            f"{ends.count(0)}; {100 * max(ends):.1f} % at the worst."
        ),
        noun="partition",
    )
    panels = [
        Curves(
            method.upper(),
            {
                shown(d): (
                    list(range(1, len(shares) + 1)),
                    [100 * share for share in shares],
                    [None] * len(shares),
                )
                for (d, m), shares in moved.items()
                if m == method
            },
        )
        for method in METHODS
    ]
    return Summary(
        rows,
        [table],
        claims,
        lambda: draw_curves(panels, "iteration", "moved nodes (%)", columns=2),
    )


register(
    Experiment(
        "convergence",
        "Convergence of BLPA and BEKM",
        "figure:convergence",
        "nothing beside partition-cost",
        cells,
        summarise,
    )
)
