"""Sizes of the shards of classical methods (figure:shard_size_distribution)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.reports.tables import Table
from grapheraser_lab.figures.bars import draw_sizes
from grapheraser_lab.figures.points import draw_communities
from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.experiment import Summary, experiment, no_models
from grapheraser_lab.framework.options import Options
from grapheraser_lab.framework.resolve import named, shown
from grapheraser_lab.framework.rules import EVERY, Case, Finding, rule
from grapheraser_lab.framework.shared_cells import measured, partition_cell

TOP = 100
METHODS = ("ekm", "blpa", "bekm")


Key = tuple[str, str]
# Sizes and capacity, by data set and method.
Sizes = Mapping[Key, tuple[list[int], int | None]]
UNEQUAL = 2.0


@rule(
    "shard-sizes/unequal",
    "Directly using LPA or k-means can produce highly unbalanced shards.",
    f"Every data set, classical label propagation and k-means: the largest shard is more than "
    f"{UNEQUAL:g} times the mean.",
)
def classical_unequal(found: Sizes) -> Finding:
    """The largest over the mean."""
    ratios = {
        key: max(sizes) / float(np.mean(sizes))
        for key, (sizes, _) in found.items()
        if key[1] in ("lpa", "ekm")
    }
    cases = [Case(named(*key), ratio > UNEQUAL) for key, ratio in ratios.items()]
    told = ", ".join(f"{named(*key)} {ratio:.1f}" for key, ratio in ratios.items())
    return Finding(cases, f"Largest over mean: {told}.")


@rule(
    "shard-sizes/balanced",
    "We propose BLPA and BEKM for achieving a balanced graph partition.",
    "Every data set: no shard of BLPA or BEKM holds more than delta nodes.",
    limits=EVERY,
    noun="partition",
)
def balanced(found: Sizes) -> Finding:
    """Within the capacity."""
    cases = [
        Case(named(*key), max(sizes) <= capacity)
        for key, (sizes, capacity) in found.items()
        if key[1] in ("blpa", "bekm") and capacity is not None
    ]
    return Finding(cases, "The table has the sizes.")


def _communities(options: Options) -> dict[Key, Cell]:
    """Classical label propagation on the training graph."""
    return {
        (dataset, "lpa"): Cell.of("communities", **options.data(dataset, 0))
        for dataset in options.datasets
    }


def _partitions(options: Options) -> dict[Key, Cell]:
    return {
        (dataset, method): partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in (*METHODS, *options.partitions)
    }


@experiment(
    "shard-sizes",
    "Shard sizes of classical methods",
    "figure:shard_size_distribution",
    "seconds",
    _communities,
    _partitions,
    models=no_models,
    most_runs=1,
)
def summarise(options: Options, results: Results) -> Summary:
    """Largest and smallest shard of each method."""
    values = measured(results, _communities(options)) | measured(results, _partitions(options))
    found: dict[Key, tuple[list[int], int | None]] = {
        (dataset, method): (value["sizes"], value.get("capacity"))
        for dataset in options.datasets
        for (other, method), value in values.items()
        if other == dataset
    }
    rows: list[dict[str, Any]] = [
        {"dataset": shown(dataset), "method": method, "run": 0, "shard": shard, "nodes": nodes}
        for (dataset, method), (sizes, _) in found.items()
        for shard, nodes in enumerate(sorted(sizes, reverse=True))
    ]
    table = Table(
        "Shard sizes",
        ("data set", "method", "shards", "largest", "smallest", "largest / mean"),
        tuple(
            (
                shown(dataset),
                shown(method),
                f"{len(sizes):,}",
                f"{max(sizes):,} ({100 * max(sizes) / sum(sizes):.2f} %)",
                f"{min(sizes):,} ({100 * min(sizes) / sum(sizes):.2f} %)",
                f"{max(sizes) / float(np.mean(sizes)):.1f}",
            )
            for (dataset, method), (sizes, _) in found.items()
        ),
        f"lpa is classical label propagation, which finds its own number of communities. The paper "
        f"on Cora: LPA {paper.LPA_LARGEST} and {paper.LPA_SMALLEST} nodes, k-means "
        f"{100 * paper.KMEANS_LARGEST:.2f} % and {100 * paper.KMEANS_SMALLEST:.2f} %.",
    )
    claims = [*classical_unequal(found), *balanced(found)]
    panels = {
        f"{shown(dataset)}, {shown(method)}" + (f" (top {TOP})" if len(sizes) > TOP else ""): (
            sorted(sizes, reverse=True)[:TOP],
            capacity,
        )
        for (dataset, method), (sizes, capacity) in found.items()
    }
    return Summary(rows, [table], claims, lambda: draw_sizes(panels, columns=4))


# -- the drawing of unbalanced communities (figure:lpa_gephi) -----------------------------------


SMALL = 5
FAR_FROM_EQUAL = 5


@rule(
    "lpa-view/unequal",
    "A clear unequal size of the two shards can be observed.",
    f"The largest community is more than {FAR_FROM_EQUAL} times the median one.",
)
def clearly_unequal(sizes: Sequence[int]) -> Finding:
    """Classical label propagation."""
    if not len(sizes):
        return Finding([], "")
    largest, median = max(sizes), float(np.median(sizes))
    told = f"The largest has {largest} nodes, the median community {median:g}."
    return Finding([Case("largest", bool(largest > FAR_FROM_EQUAL * median))], told)


def _cell(options: Options) -> Cell:
    dataset = "cora" if "cora" in options.datasets else options.datasets[0]
    return Cell.of("communities", **options.data(dataset, 0), layout=True)


@experiment(
    "lpa-view",
    "Unbalanced communities in the plane",
    "figure:lpa_gephi",
    "seconds",
    _cell,
    datasets=("cora",),
    models=no_models,
    most_runs=1,
)
def summarise_view(options: Options, results: Results) -> Summary:
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
        ((f"{len(sizes):,}", f"{sizes.max():,}", f"{np.median(sizes):g}", f"{sizes.min():,}"),),
    )
    boxes = [(0, "#c0392b", f"{sizes[0]} nodes"), (small, "#2f6fdb", f"{sizes[small]} nodes")]
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
