"""F1 for five balanced partition methods (table:baseline_utility)."""

from __future__ import annotations

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.f1_bars import draw_f1
from grapheraser.experiments.framework.means import Mean, entry, signed, tidy_rows
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import every_cell, f1_means, utility_cells
from grapheraser.experiments.paper import published as paper
from grapheraser.experiments.paper.partition_cost import METHODS, methods
from grapheraser.reports.tables import Entry, Table

SIMILAR = 0.02

Found = dict[tuple[str, str, str], Mean]


def _groups(options: Options) -> dict[tuple[str, str, str], list[Cell]]:
    return {
        (dataset, model, method): utility_cells(options, dataset, model, method)
        for dataset, model in options.pairs
        for method in methods(options)
    }


def cells(options: Options) -> list[Cell]:
    """Each method for all data sets, models and runs."""
    return every_cell(_groups(options))


def summarise(options: Options, results: Results) -> Summary:
    """F1 with LBAggr beside the paper's; and with routing, where it is there."""
    columns = ("dataset", "model", "partition")
    found = f1_means(results, _groups(options), options.learned)
    rows = tidy_rows(found, columns, paper.PARTITIONERS.get, aggregation="learned")
    tables = [_table(options, found, "Micro F1 with LBAggr", True)]
    if "routed" in options.how.ours:
        routed = f1_means(results, _groups(options), options.how.ours["routed"])
        rows += tidy_rows(routed, columns, aggregation="routed")
        tables.append(_table(options, routed, "Micro F1 with routing (ours)", False))
    series = {shown(method): (method,) for method in methods(options)}
    return Summary(
        rows,
        tables,
        _claims(options, found),
        lambda: draw_f1(options, series, found, paper.PARTITIONERS.get),
    )


def _table(options: Options, found: Found, title: str, with_paper: bool) -> Table:
    rows = []
    for dataset, model in options.pairs:
        keys = [(dataset, model, method) for method in methods(options)]
        top = max((found[key].mean for key in keys if key in found), default=None)
        line: list[Entry | str] = [shown(dataset), shown(model)]
        for key in keys:
            item = entry(found.get(key), paper.PARTITIONERS.get(*key) if with_paper else None)
            line.append(item.as_best() if key in found and found[key].mean == top else item)
        rows.append(tuple(line))
    header = ("data set", "model", *(shown(method) for method in methods(options)))
    return Table(title, header, tuple(rows), "▲ and ▼ as in utility. Bold: the best of the row.")


def _claims(options: Options, found: Found) -> list[Claim]:
    full = [(d, m) for d, m in options.pairs if all((d, m, method) in found for method in METHODS)]

    def best(pair: tuple[str, str], *names: str) -> float:
        return max(found[(*pair, name)].mean for name in names)

    claims = judged_claim(
        "For GAT, GIN and SAGE the k-means methods (BEKM, BEKM-Hungarian) are the best.",
        [
            best(pair, "bekm", "bekm-hungarian") >= best(pair, "blpa", "blpa-lp", "metis")
            for pair in full
            if pair[1] != "gcn"
        ],
        lambda count: f"True in {count}.",
    )
    for left, right in (("bekm", "bekm-hungarian"), ("blpa", "blpa-lp")):
        claims += _similar(left, right, [best(p, left) - best(p, right) for p in full])
    gcn = [pair for pair in full if pair[1] == "gcn"]
    leads = [best(pair, "blpa") - best(pair, "metis") for pair in gcn]
    return claims + judged_claim(
        "For GCN the methods of label propagation are better than METIS.",
        [min(best(p, "blpa"), best(p, "blpa-lp")) > best(p, "metis") for p in gcn],
        lambda count: (
            f"Both better on {count}; BLPA is {signed(float(np.mean(leads)))} against METIS on "
            "average."
        ),
        noun="data set",
    )


def _similar(left: str, right: str, gaps: list[float]) -> list[Claim]:
    names = {"bekm-hungarian": "BEKM-Hungarian"}
    return judged_claim(
        f"{left.upper()} and {names.get(right, right.upper())} reach similar F1.",
        [abs(gap) <= SIMILAR for gap in gaps],
        lambda count: (
            f"Within {SIMILAR} in {count}; {left} is {signed(float(np.mean(gaps)))} on average."
        ),
    )


register(
    Experiment(
        "partitioners",
        "F1 of the partition methods",
        "table:baseline_utility",
        "as utility",
        cells,
        summarise,
    )
)
