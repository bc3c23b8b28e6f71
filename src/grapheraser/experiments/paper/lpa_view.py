"""The drawing of unbalanced communities (figure:lpa_gephi)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    no_models,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.rules import Case, Finding, rule
from grapheraser.reports.figures.points import draw_communities
from grapheraser.reports.tables import Table

SMALL = 5
UNEQUAL = 5


@rule(
    "lpa-view/unequal",
    "A clear unequal size of the two shards can be observed.",
    f"The largest community is more than {UNEQUAL} times the median one.",
)
def clearly_unequal(sizes: Sequence[int]) -> Finding:
    """Classical label propagation."""
    if not len(sizes):
        return Finding([], "")
    largest, median = max(sizes), float(np.median(sizes))
    told = f"The largest has {largest} nodes, the median community {median:g}."
    return Finding([Case("largest", bool(largest > UNEQUAL * median))], told)


def _cell(options: Options) -> Cell:
    dataset = "cora" if "cora" in options.datasets else options.datasets[0]
    return Cell.of("communities", **options.data(dataset, 0), layout=True)


def cells(options: Options) -> list[Cell]:
    """Cora, or the first data set where it was not asked for."""
    return [_cell(options)]


def summarise(options: Options, results: Results) -> Summary:
    """A picture, and how unequal the communities are."""
    value = results.value(_cell(options))
    if value is None:
        return Summary([], [])
    sizes = np.asarray(value["sizes"])
    rows: list[dict[str, Any]] = [
        {"community": number, "nodes": int(nodes)} for number, nodes in enumerate(sizes)
    ]
    small = int(np.flatnonzero(sizes >= SMALL)[-1]) if (sizes >= SMALL).any() else len(sizes) - 1
    name = shown(_cell(options)["dataset"])
    table = Table(
        f"Communities of classical label propagation on {name}",
        ("communities", "largest", "median", "smallest"),
        (
            (
                f"{len(sizes):,}",
                f"{sizes.max():,}",
                f"{np.median(sizes):g}",
                f"{sizes.min():,}",
            ),
        ),
    )
    boxes = [
        (0, "#c0392b", f"{sizes[0]} nodes"),
        (small, "#2f6fdb", f"{sizes[small]} nodes"),
    ]
    return Summary(
        rows,
        [table],
        clearly_unequal(sizes.tolist()),
        lambda: draw_communities(
            np.asarray(value["places"], dtype=np.float64),
            np.asarray(value["edges"], dtype=np.int64).reshape(-1, 2),
            np.asarray(value["labels"], dtype=np.int64),
            boxes=boxes,
        ),
    )


register(
    Experiment(
        "lpa-view",
        "Unbalanced communities in the plane",
        "figure:lpa_gephi",
        "seconds",
        cells,
        summarise,
        datasets=("cora",),
        models=no_models,
        most_runs=1,
    )
)
