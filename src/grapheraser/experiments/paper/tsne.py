"""Shards in the plane by their embedding, with their importance scores (figure:tsne_vs_weitht)."""

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
from grapheraser.experiments.paper.importance import METHODS, model_of, scores
from grapheraser.reports.figures.points import Points, draw_points
from grapheraser.reports.tables import Table


def _cells(options: Options) -> dict[tuple[str, str], Cell]:
    found = {}
    for dataset in options.datasets:
        for method in METHODS:
            base = utility_cell(options, dataset, model_of(options), 0, method)
            found[dataset, method] = Cell.of("tsne", **base.config, embedding="sage")
    return found


def cells(options: Options) -> list[Cell]:
    """One for each data set and partition; needs scikit-learn."""
    return list(_cells(options).values())


def summarise(options: Options, results: Results) -> Summary:
    """Circles as large as the scores; and whether neighbours share a high score between them."""
    rows: list[dict[str, Any]] = []
    lines, panels = [], []
    found = []
    label, text = list(scores(options).items())[-1] if scores(options) else ("learned", "learned")
    for (dataset, method), value in measured(results, _cells(options)).items():
        if text not in value["importance"]:
            continue
        weights, places = value["importance"][text], value["places"]
        r = pearson(weights, [weights[other] for other in value["nearest"]])
        if r is not None:
            found.append(r)
        rows += [
            {
                "dataset": shown(dataset),
                "method": method,
                "shard": shard,
                "x": places[shard][0],
                "y": places[shard][1],
                "importance": weights[shard],
                "nearest": value["nearest"][shard],
            }
            for shard in range(len(weights))
        ]
        top = max(weights) or 1.0
        lines.append((shown(dataset), method, "-" if r is None else f"{r:.2f}"))
        panels.append(
            Points(
                f"{shown(dataset)}, {method}",
                [place[0] for place in places],
                [place[1] for place in places],
                [40 + 900 * weight / top for weight in weights],
                [f"{weight:.2f}" for weight in weights],
                method,
            )
        )
    table = Table(
        f"Score of a shard and of the one nearest to it ({label})",
        ("data set", "method", "correlation"),
        tuple(lines),
        "Negative: a high score beside a low one.",
    )
    claims = judged_claim(
        "Of similar shards one gets a high score and the others a low one.",
        [r < 0 for r in found],
        lambda count: (
            f"Scores of nearest shards are negatively correlated in {count}: {min(found):.2f} to "
            f"{max(found):.2f}."
        ),
        noun="partition",
    )
    return Summary(
        rows, [table], claims, lambda: draw_points(panels, "", "", columns=2, ticks=False)
    )


register(
    Experiment(
        "tsne",
        "Shard embeddings in the plane",
        "figure:tsne_vs_weitht",
        "seconds",
        cells,
        summarise,
        datasets=("cora",),
    )
)
