"""LBAggr learned from 10 %, 1000 or all training nodes (table:opt_samples)."""

from __future__ import annotations

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import entry, tidy_rows
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import every_cell, f1_means, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table

SAMPLES = {"10%": "0.1", "1000": "1000", "all": "all"}
COMPARABLE = 0.02


def _texts(options: Options) -> dict[str, str]:
    solver = "solver=paper, " if options.protocol == "paper" else ""
    return {label: f"learned({solver}sample={value})" for label, value in SAMPLES.items()}


def _groups(options: Options) -> dict[tuple[str, str], list[Cell]]:
    texts = tuple(_texts(options).values())
    return {
        (dataset, model): utility_cells(options, dataset, model, "bekm", aggregations=texts)
        for dataset, model in options.pairs
    }


def cells(options: Options) -> list[Cell]:
    """BEKM shards, three samples over the same posteriors."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 by sample, beside the paper's."""
    by_label = {
        label: f1_means(results, _groups(options), text) for label, text in _texts(options).items()
    }
    found = {
        (dataset, model, label): by_label[label][dataset, model]
        for dataset, model in options.pairs
        for label in SAMPLES
        if (dataset, model) in by_label[label]
    }
    rows = tidy_rows(found, ("dataset", "model", "sample"), lambda *key: paper.SAMPLES.get(key))
    table_rows: list[tuple[Entry | str, ...]] = [
        (
            shown(model),
            label,
            *(
                entry(found.get((d, model, label)), paper.SAMPLES.get((d, model, label)))
                for d in options.datasets
            ),
        )
        for model in options.models
        for label in SAMPLES
    ]
    header = ("model", "nodes", *(shown(dataset) for dataset in options.datasets))
    table = Table(
        "Micro F1 of BEKM by the nodes that LBAggr learns from",
        header,
        tuple(table_rows),
        "▲ and ▼ as in utility.",
    )
    gaps = [
        abs(found[d, m, label].mean - found[d, m, "all"].mean)
        for d, m in options.pairs
        for label in ("10%", "1000")
        if (d, m, label) in found and (d, m, "all") in found
    ]
    claims = judged_claim(
        "10 % or 1000 of the nodes are as good to learn LBAggr from as all of them.",
        [gap <= COMPARABLE for gap in gaps],
        lambda count: (
            f"Within {COMPARABLE} of all nodes in {count}; at most {max(gaps):.3f} apart."
        ),
    )
    series = {label: (label,) for label in SAMPLES}
    return Summary(
        rows,
        [table],
        claims,
        lambda: draw_f1(options, series, found, lambda *key: paper.SAMPLES.get(key)),
    )


register(
    Experiment(
        "samples",
        "How many nodes LBAggr learns from",
        "table:opt_samples",
        "half of utility",
        cells,
        summarise,
    )
)
