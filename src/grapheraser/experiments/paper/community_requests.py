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
    lines_of,
    little_lost,
    percent,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.shared_cells import every_cell, f1_means, utility_cells

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def _groups(options: Options) -> dict[tuple[str, str, str, float], list[Cell]]:
    """The paper's recommended partition for each model; one random community a run."""

    def group(dataset: str, model: str, share: float) -> list[Cell]:
        forget = {"what": "community", "share": share} if share else None
        return utility_cells(options, dataset, model, options.recommended(model), forget=forget)

    return {
        (dataset, model, options.recommended(model), share): group(dataset, model, share)
        for dataset, model in options.pairs
        for share in SHARES
    }


def cells(options: Options) -> list[Cell]:
    """Every share of a community."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by the share of the community that is forgotten, and how many shards that touches."""
    groups = _groups(options)
    found = f1_means(results, groups, options.learned)
    whole = [
        value
        for key, group in groups.items()
        if key[3] == SHARES[-1]
        for cell in group
        if (value := results.value(cell)) is not None
    ]
    drops = []
    for line in lines_of(found):
        curve = dict(along(found, *line))
        if SHARES[0] in curve and SHARES[-1] in curve:
            drops.append(curve[SHARES[0]].mean - curve[SHARES[-1]].mean)
    claims = little_lost("Forgetting a whole community hardly changes F1.", drops)
    if whole:
        touched = sum(value["shards_touched"] for value in whole)
        shards = sum(len(value["sizes"]) for value in whole)
        share = touched / shards
        claims.append(
            Claim(
                "Requests from one community touch only a few shards.",
                judged(int(share <= 0.25) + int(share <= 0.5), 2, partly=0.5),
                f"A whole community touches {touched / len(whole):.1f} shards of "
                f"{shards / len(whole):.0f} on average.",
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
