"""MLP against the GNNs: how much the structure matters (table:mlp)."""

from __future__ import annotations

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.means import entry, heights, signed, spreads, tidy_rows
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import (
    SCRATCH,
    every_cell,
    f1_means,
    utility_cells,
)
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import Bars, draw_bars
from grapheraser.reports.tables import Entry, Table

LARGE, SMALL = 0.03, 0.02


def _models(options: Options) -> tuple[str, ...]:
    return tuple(dict.fromkeys(("mlp", *options.models)))


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    return {
        (dataset, model): utility_cells(options, dataset, model, SCRATCH)
        for dataset in options.datasets
        for model in _models(options)
    }


def cells(options: Options) -> list[Cell]:
    """Training from scratch only."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 of each model on each data set, and the gap between the best GNN and the MLP."""
    found = f1_means(results, _groups(options))
    rows = tidy_rows(found, ("dataset", "model"), lambda *key: paper.MLP.get(key))
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(model),
            *(entry(found.get((d, model)), paper.MLP.get((d, model))) for d in options.datasets),
        )
        for model in _models(options)
    ]
    header = ("model", *(shown(dataset) for dataset in options.datasets))
    table = Table("Micro F1 from scratch", header, tuple(table_rows), "▲ and ▼ as in utility.")
    gaps = {
        d: max(found[d, m].mean for m in options.models if (d, m) in found) - found[d, "mlp"].mean
        for d in options.datasets
        if (d, "mlp") in found and any((d, m) in found for m in options.models)
    }
    words = ", ".join(f"{shown(d)} {signed(gap)}" for d, gap in gaps.items())
    inside = [gap for d, gap in gaps.items() if d in ("cora", "citeseer")]
    outside = [gap for d, gap in gaps.items() if d in ("pubmed", "cs", "physics")]
    claims = [
        *judged_claim(
            "On Cora and Citeseer the MLP is clearly below the GNNs: structure matters.",
            [gap > LARGE for gap in inside],
            lambda _: f"Best GNN minus MLP: {words}.",
            partly=0.5,
        ),
        *judged_claim(
            "On Pubmed, CS and Physics the MLP is about as good: structure matters little.",
            [gap <= SMALL for gap in outside],
            lambda _: (
                f"Best GNN minus MLP: {words}; {signed(float(np.mean(outside)))} on average there."
            ),
        ),
    ]
    got = {m: [found.get((d, m)) for d in options.datasets] for m in _models(options)}
    told = {m: [paper.MLP.get((d, m)) for d in options.datasets] for m in _models(options)}
    return Summary(
        rows,
        [table],
        claims,
        lambda: draw_bars(
            [
                Bars(
                    "training from scratch",
                    [shown(dataset) for dataset in options.datasets],
                    {shown(m): heights(line) for m, line in got.items()},
                    {shown(m): spreads(line) for m, line in got.items()},
                    {shown(m): heights(line) for m, line in told.items() if any(line)},
                )
            ],
            "micro F1",
            limits=(0, 1),
        ),
    )


register(
    Experiment(
        "mlp",
        "MLP against the GNNs",
        "table:mlp",
        "nothing beside utility but the MLP: seconds to 2 min a run",
        cells,
        summarise,
    )
)
