"""LBAggr learned from 10 %, 1000 or all training nodes (table:opt_samples)."""

from __future__ import annotations

from typing import Any

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, entry, tidy
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import f1, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.tables import Entry, Table

SAMPLES = {"10%": "0.1", "1000": "1000", "all": "all"}
COMPARABLE = 0.02


def _texts(options: Options) -> dict[str, str]:
    solver = "solver=paper, " if options.protocol == "paper" else ""
    return {label: f"learned({solver}sample={value})" for label, value in SAMPLES.items()}


def _cells(options: Options, dataset: str, model: str) -> list[Cell]:
    texts = tuple(_texts(options).values())
    return utility_cells(options, dataset, model, "bekm", aggregations=texts)


def cells(options: Options) -> list[Cell]:
    """BEKM shards, three samples over the same posteriors."""
    return [
        cell
        for dataset in options.datasets
        for model in options.models
        for cell in _cells(options, dataset, model)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """F1 by sample, beside the paper's."""
    found: dict[tuple[str, str, str], Mean] = {}
    for dataset in options.datasets:
        for model in options.models:
            for label, text in _texts(options).items():
                value = f1(results, _cells(options, dataset, model), text)
                if value is not None:
                    found[dataset, model, label] = value
    rows: list[dict[str, Any]] = [
        {
            "dataset": shown(key[0]),
            "model": shown(key[1]),
            "sample": key[2],
            **tidy(value, paper.SAMPLES.get(key)),
        }
        for key, value in found.items()
    ]
    table_rows = []
    for model in options.models:
        for label in SAMPLES:
            line: list[Entry | str] = [shown(model), label]
            line += [
                entry(found.get((d, model, label)), paper.SAMPLES.get((d, model, label)))
                for d in options.datasets
            ]
            table_rows.append(tuple(line))
    header = ("model", "nodes", *(shown(dataset) for dataset in options.datasets))
    table = Table(
        "Micro F1 of BEKM by the nodes that LBAggr learns from",
        header,
        tuple(table_rows),
        "▲ and ▼ as in utility.",
    )
    gaps = [
        abs(found[d, m, label].mean - found[d, m, "all"].mean)
        for d in options.datasets
        for m in options.models
        for label in ("10%", "1000")
        if (d, m, label) in found and (d, m, "all") in found
    ]
    good = sum(gap <= COMPARABLE for gap in gaps)
    claims = []
    if gaps:
        claims.append(
            Claim(
                "10 % or 1000 of the nodes are as good to learn LBAggr from as all of them.",
                judged(good, len(gaps)),
                f"Within {COMPARABLE} of all nodes in {counted(good, len(gaps), 'cases')}; "
                f"at most {max(gaps):.3f} apart.",
            )
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
