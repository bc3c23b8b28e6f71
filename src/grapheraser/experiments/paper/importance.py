"""Importance score against the F1 of the shard (figure:f1_score_vs_weitht)."""

from __future__ import annotations

from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.means import pearson
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import measured, utility_cell
from grapheraser.reports.figures.points import Points, draw_points
from grapheraser.reports.tables import Table

METHODS = ("blpa", "bekm")


def model_of(options: Options) -> str:
    """The paper's GAT, or the first model where it was not asked for."""
    return "gat" if "gat" in options.models else options.models[0]


def scores(options: Options) -> dict[str, str]:
    """LBAggr's solvers, by label."""
    named = options.aggregation_names
    return {label: named[label] for label in ("learned", "convex") if label in named}


def _cells(options: Options) -> dict[tuple[str, str], Cell]:
    return {
        (dataset, method): utility_cell(options, dataset, model_of(options), 0, method)
        for dataset in options.datasets
        for method in METHODS
    }


def cells(options: Options) -> list[Cell]:
    """Shared with `utility`."""
    return list(_cells(options).values())


def summarise(options: Options, results: Results) -> Summary:
    """A point for each shard; Pearson's correlation for each partition."""
    rows: list[dict[str, Any]] = []
    lines, panels = [], []
    correlations = []
    for (dataset, method), value in measured(results, _cells(options)).items():
        for label, text in scores(options).items():
            if text not in value["importance"]:
                continue
            weights, quality = value["importance"][text], value["shard_f1"]
            rows += [
                {
                    "dataset": shown(dataset),
                    "method": method,
                    "solver": label,
                    "shard": shard,
                    "f1": quality[shard],
                    "importance": weights[shard],
                }
                for shard in range(len(weights))
            ]
            r = pearson(quality, weights)
            if r is not None:
                correlations.append(r)
            lines.append(
                (
                    shown(dataset),
                    method,
                    label,
                    "-" if r is None else f"{r:.2f}",
                    f"{min(weights):.4f} to {max(weights):.4f}",
                    f"{sum(weight > 0 for weight in weights)} of {len(weights)}",
                )
            )
            title = f"{shown(dataset)}, {method}, {label}"
            told = "" if r is None else f" (r = {r:.2f})"
            panels.append(Points(title + told, quality, weights, colour=method))
    table = Table(
        f"Importance score and F1 of the shards ({shown(model_of(options)).upper()})",
        ("data set", "method", "scores", "correlation", "scores from to", "shards with weight"),
        tuple(lines),
        "learned: the paper's gradient steps with a softmax after each, where the protocol is the "
        "paper's; convex: the minimum of the same objective.",
    )
    claims = judged_claim(
        "Shards with a better F1 get a higher importance score.",
        [r > 0.3 for r in correlations],
        lambda count: (
            f"The correlation is above 0.3 in {count}: {min(correlations):.2f} to "
            f"{max(correlations):.2f}."
        ),
        noun="partition",
    )
    return Summary(
        rows,
        [table],
        claims,
        lambda: draw_points(panels, "F1 of the shard model", "importance score", columns=4),
    )


register(
    Experiment(
        "importance",
        "Importance scores and shard F1",
        "figure:f1_score_vs_weitht",
        "nothing beside utility",
        cells,
        summarise,
        datasets=("cora",),
    )
)
