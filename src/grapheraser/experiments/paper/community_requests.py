"""Requests from one community of label propagation (figure:dependent_unlearning)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged,
    register,
)
from grapheraser.experiments.framework.f1_curves import (
    along,
    curve_figure,
    curve_rows,
    curve_table,
    little_lost,
    percent,
)
from grapheraser.experiments.framework.means import Mean
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.shared_cells import f1, utility_cells

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def _cells(options: Options, dataset: str, model: str, share: float) -> list[Cell]:
    forget = {"what": "community", "share": share} if share else None
    return utility_cells(options, dataset, model, options.recommended(model), forget=forget)


def cells(options: Options) -> list[Cell]:
    """The paper's recommended partition for each model; one random community a run."""
    return [
        cell
        for dataset in options.datasets
        for model in options.models
        for share in SHARES
        for cell in _cells(options, dataset, model, share)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """F1 by the share of the community that is forgotten, and how many shards that touches."""
    text = options.how.aggregations.get("learned", "mean")
    found: dict[tuple[str, str, str, float], Mean] = {}
    touched, shards = [], []
    for dataset in options.datasets:
        for model in options.models:
            for share in SHARES:
                group = _cells(options, dataset, model, share)
                value = f1(results, group, text)
                if value is not None:
                    found[dataset, model, options.recommended(model), share] = value
                if share == SHARES[-1]:
                    known = [v for cell in group if (v := results.value(cell)) is not None]
                    touched += [v["shards_touched"] for v in known]
                    shards += [len(v["sizes"]) for v in known]
    drops = []
    for dataset in options.datasets:
        for model in options.models:
            curve = dict(along(found, dataset, model, options.recommended(model)))
            if SHARES[0] in curve and SHARES[-1] in curve:
                drops.append(curve[SHARES[0]].mean - curve[SHARES[-1]].mean)
    claims = little_lost("Forgetting a whole community hardly changes F1.", drops)
    if touched:
        share = sum(touched) / sum(shards)
        claims.append(
            Claim(
                "Requests from one community touch only a few shards.",
                judged(int(share <= 0.25) + int(share <= 0.5), 2, partly=0.5),
                f"A whole community touches {sum(touched) / len(touched):.1f} shards of "
                f"{sum(shards) / len(shards):.0f} on average.",
            )
        )
    return Summary(
        curve_rows(found, "deleted"),
        [
            curve_table(
                found, "Micro F1 (LBAggr) by the forgotten share of a community", tell=percent
            )
        ],
        claims,
        lambda: curve_figure(found, "of the community (%)", "micro F1", scale=100),
    )


register(
    Experiment(
        "community",
        "Requests from one community",
        "figure:dependent_unlearning",
        "Cora and Citeseer half a minute a run",
        cells,
        summarise,
        one_run_in=3,
    )
)
