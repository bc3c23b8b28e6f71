"""Shards in the plane by their embedding, with their importance scores (figure:tsne_vs_weitht)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    SWEEP_RUNS,
    Experiment,
    Summary,
    register,
)
from grapheraser.experiments.framework.means import Mean, mean_of, pearson
from grapheraser.experiments.framework.noise import Difference
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import named, shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.experiments.framework.shared_cells import CONVEX, utility_cell
from grapheraser.experiments.paper.importance import methods, model_of, models, scores
from grapheraser.reports.figures.points import Points, draw_points
from grapheraser.reports.tables import Table

CLEAR = 0.3


@rule(
    "tsne/one-of-similar",
    "For shards trained on similar graphs, our learning-based aggregation assigns a higher score "
    "to one of them.",
    f"GAT on Cora, every partition, scores that reach the minimum: a shard's score and that of the "
    f"shard nearest to it have a correlation of -{CLEAR} or below, and below 0 beyond noise.",
    noun="partition",
)
def one_of_similar(correlations: Mapping[tuple[str, str], Mean]) -> Finding:
    """Negative, and clearly so."""
    falls = {k: Difference(-r.mean, r.error, max(0, r.runs - 1)) for k, r in correlations.items()}
    cases = [Case(named(*key), fall.above(CLEAR)) for key, fall in falls.items()]
    told = ", ".join(f"{named(*key)} {-fall}" for key, fall in falls.items())
    return Finding(cases, f"Correlation: {told}.")


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    """The scores of convex: as written they are all alike."""
    return {
        (dataset, method): [
            Cell.of(
                "tsne",
                **utility_cell(
                    options,
                    dataset,
                    model_of(options),
                    run,
                    method,
                    aggregations=[_solver(options)[1]],
                ).config,
                embedding="sage",
            )
            for run in range(options.runs)
        ]
        for dataset in options.datasets
        for method in methods(options)
    }


def _solver(options: Options) -> tuple[str, str]:
    return CONVEX, scores(options)[CONVEX]


def cells(options: Options) -> list[Cell]:
    """One for each data set, partition and run; needs scikit-learn."""
    return [cell for group in _groups(options).values() for cell in group]


def summarise(options: Options, results: Results) -> Summary:
    """Circles as large as the scores; and whether neighbours share a high score between them."""
    rows: list[dict[str, Any]] = []
    panels, found = [], {}
    name, text = _solver(options)
    for key, group in _groups(options).items():
        values = {int(c["seed"]): v for c in group if (v := results.value(c)) is not None}
        known = {run: v for run, v in values.items() if text in v["importance"]}
        r = mean_of({run: _near(v, text) for run, v in known.items()})
        if r is not None:
            found[key] = r
        for run, value in known.items():
            rows += _rows(key, run, value, text)
        if known:
            panels.append(_panel(key, next(iter(known.values())), text))
    table = Table(
        f"Score of a shard and of the one nearest to it ({name})",
        ("data set", "method", "correlation"),
        tuple((shown(d), m, str(r)) for (d, m), r in found.items()),
        "Mean and standard deviation over the runs. Negative: a high score beside a low one.",
    )
    return Summary(
        rows,
        [table],
        one_of_similar(found),
        lambda: draw_points(panels, "", "", columns=3, ticks=False),
    )


def _near(value: dict[str, Any], text: str) -> float | None:
    weights = value["importance"][text]
    return pearson(weights, [weights[other] for other in value["nearest"]])


def _rows(key: tuple[str, str], run: int, value: dict[str, Any], text: str) -> list[dict[str, Any]]:
    return [
        {
            "dataset": shown(key[0]),
            "method": key[1],
            "run": run,
            "shard": shard,
            "x": place[0],
            "y": place[1],
            "importance": value["importance"][text][shard],
            "nearest": value["nearest"][shard],
        }
        for shard, place in enumerate(value["places"])
    ]


def _panel(key: tuple[str, str], value: dict[str, Any], text: str) -> Points:
    weights, places = value["importance"][text], value["places"]
    top = max(weights) or 1.0
    return Points(
        named(*key),
        [place[0] for place in places],
        [place[1] for place in places],
        [40 + 900 * weight / top for weight in weights],
        [f"{weight:.2f}" for weight in weights],
        key[1],
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
        models=models,
        most_runs=SWEEP_RUNS,
    )
)
