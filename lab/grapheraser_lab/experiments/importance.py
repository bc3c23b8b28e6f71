"""Importance score against the F1 of the shard (figure:f1_score_vs_weitht)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from grapheraser.reports.tables import Table
from grapheraser_lab.figures.points import Points, draw_points
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import SWEEP_RUNS, Summary, experiment
from grapheraser_lab.framework.means import Mean, mean_of, pearson
from grapheraser_lab.framework.noise import Difference
from grapheraser_lab.framework.options import CONVEX, Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import Case, Finding, by_reading, rule
from grapheraser_lab.framework.shared_cells import f1_means, utility_cell, utility_cells

CLEAR = 0.3

# Correlation by data set and partition, over runs.
Correlations = Mapping[tuple[str, str], Mean]


@rule(
    "importance/better-higher",
    "Generally, shard models with more accurate predictions are assigned more significant "
    "importance scores.",
    f"GAT on Cora, every partition: the correlation of a shard's F1 with its score is at least "
    f"{CLEAR}, and above 0 beyond noise over the runs.",
    noun="partition",
)
def better_higher(correlations: Correlations) -> Finding:
    """One solver at a time."""
    gaps = {
        k: Difference(r.mean, r.error, max(0, r.runs - 1), (r.collapsed, False))
        for k, r in correlations.items()
    }
    cases = [Case(named(*key), gap.above(CLEAR)) for key, gap in gaps.items()]
    told = ", ".join(f"{named(*key)} {gap}" for key, gap in gaps.items())
    return Finding(cases, f"Correlation: {told}.")


def model_of(options: Options) -> str:
    """The paper's GAT, or the first model where it was not asked for."""
    return "gat" if "gat" in options.models else options.models[0]


def models(options: Options) -> tuple[str, ...]:
    """That one alone."""
    return (model_of(options),)


def methods(options: Options) -> tuple[str, ...]:
    """BLPA, and BEKM under each reading."""
    return ("blpa", *options.how.bekm.values())


def scores(options: Options) -> dict[str, str]:
    """LBAggr's readings, by name."""
    there = options.aggregation_names
    return {name: there[label] for name, (label, _) in options.how.lbaggr.items()}


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, method): utility_cells(options, dataset, model_of(options), method)
        for dataset in options.datasets
        for method in methods(options)
    }


@experiment(
    "importance",
    "Importance scores and shard F1",
    "figure:f1_score_vs_weitht",
    "nothing beside utility",
    _groups,
    datasets=("cora",),
    models=models,
    most_runs=SWEEP_RUNS,
)
def summarise(options: Options, results: Results) -> Summary:
    """A point for each shard; Pearson's correlation for each partition and solver."""
    groups = _groups(options)
    rows: list[dict[str, Any]] = []
    lines, panels, claims = [], [], {}
    for solver, text in scores(options).items():
        f1 = f1_means(results, groups, text)
        found: dict[tuple[str, str], Mean] = {}
        for key, group in groups.items():
            values = results.by_run(group)
            values = {run: v for run, v in values.items() if text in v["importance"]}
            r = mean_of(
                {run: pearson(v["shard_f1"], v["importance"][text]) for run, v in values.items()},
                collapsed=key in f1 and f1[key].collapsed,
            )
            for run, value in values.items():
                rows += _rows(key, solver, run, value["shard_f1"], value["importance"][text])
            if r is not None:
                found[key] = r
            if values:
                lines.append(_line(key, solver, r, list(values.values()), text))
                panels.append(_panel(key, solver, r, next(iter(values.values())), text))
        claims[solver] = better_higher(found)
    table = Table(
        f"Importance score and F1 of the shards ({shown(model_of(options)).upper()})",
        ("data set", "method", "solver", "correlation", "scores from to", "shards with weight"),
        tuple(lines),
        "As written, the softmax after each step keeps the scores near 1/k. † collapsed, counted "
        "as a failure.",
    )
    top = max((y for panel in panels for y in panel.y), default=1.0)
    return Summary(
        rows,
        [table],
        by_reading(claims, leads=options.how.leads),
        lambda: draw_points(
            panels,
            "F1 of the shard model",
            "importance score",
            columns=3,
            limits=(-0.05 * top, 1.08 * top),
        ),
    )


def _rows(
    key: tuple[str, str], solver: str, run: int, quality: list[float], weights: list[float]
) -> list[dict[str, Any]]:
    return [
        {
            "dataset": shown(key[0]),
            "method": key[1],
            "solver": solver,
            "run": run,
            "shard": shard,
            "f1": quality[shard],
            "importance": weight,
        }
        for shard, weight in enumerate(weights)
    ]


def _line(
    key: tuple[str, str], solver: str, r: Mean | None, values: list[dict[str, Any]], text: str
) -> tuple[str, ...]:
    every = [weight for value in values for weight in value["importance"][text]]
    return (
        shown(key[0]),
        key[1],
        solver,
        "-" if r is None else str(r),
        f"{min(every):.4f} to {max(every):.4f}",
        f"{sum(weight > 0 for weight in every)} of {len(every)}",
    )


def _panel(
    key: tuple[str, str], solver: str, r: Mean | None, value: dict[str, Any], text: str
) -> Points:
    told = "" if r is None else f" (r = {r.mean:.2f})"
    title = f"{named(*key)}, {solver}{told}"
    return Points(title, value["shard_f1"], value["importance"][text], colour=key[1])


# -- shards in the plane by their embedding, with their importance scores (figure:tsne_vs_weitht)


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


def _tsne_groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
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
    names = scores(options)
    name = CONVEX if CONVEX in names else next(iter(names))
    return name, names[name]


@experiment(
    "tsne",
    "Shard embeddings in the plane",
    "figure:tsne_vs_weitht",
    "seconds",
    _tsne_groups,
    datasets=("cora",),
    models=models,
    most_runs=SWEEP_RUNS,
)
def summarise_tsne(options: Options, results: Results) -> Summary:
    """Circles as large as the scores; and whether neighbours share a high score between them."""
    rows: list[dict[str, Any]] = []
    panels, found = [], {}
    name, text = _solver(options)
    for key, group in _tsne_groups(options).items():
        values = results.by_run(group)
        known = {run: v for run, v in values.items() if text in v["importance"]}
        r = mean_of({run: _near(v, text) for run, v in known.items()})
        if r is not None:
            found[key] = r
        for run, value in known.items():
            rows += _tsne_rows(key, run, value, text)
        if known:
            panels.append(_tsne_panel(key, next(iter(known.values())), text))
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


def _tsne_rows(
    key: tuple[str, str], run: int, value: dict[str, Any], text: str
) -> list[dict[str, Any]]:
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


def _tsne_panel(key: tuple[str, str], value: dict[str, Any], text: str) -> Points:
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
