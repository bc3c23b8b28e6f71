"""Sizes of the shards of classical methods (figure:shard_size_distribution)."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Claim,
    Experiment,
    Summary,
    counted,
    judged,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import partition_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import draw_sizes
from grapheraser.reports.tables import Table

TOP = 100
CUTS = ("ekm", "blpa", "bekm")


def communities_cell(options: Options, dataset: str) -> Cell:
    """Classical label propagation on the training graph."""
    return Cell.of("communities", **options.data(dataset, 0))


def cells(options: Options) -> list[Cell]:
    """Classical label propagation and k-means, and the balanced forms beside them."""
    found = [communities_cell(options, dataset) for dataset in options.datasets]
    return found + [
        partition_cell(options, dataset, method)
        for dataset in options.datasets
        for method in (*CUTS, *options.partitions)
    ]


def summarise(options: Options, results: Results) -> Summary:
    """Largest and smallest shard of each method."""
    found: dict[tuple[str, str], tuple[list[int], int | None]] = {}
    for dataset in options.datasets:
        value = results.value(communities_cell(options, dataset))
        if value is not None:
            found[dataset, "lpa"] = (value["sizes"], None)
        for method in (*CUTS, *options.partitions):
            value = results.value(partition_cell(options, dataset, method))
            if value is not None:
                found[dataset, method] = (value["sizes"], value["capacity"])
    rows: list[dict[str, Any]] = [
        {"dataset": shown(dataset), "method": method, "shard": shard, "nodes": nodes}
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
    claims = []
    uneven = {
        key: max(sizes) / float(np.mean(sizes))
        for key, (sizes, _) in found.items()
        if key[1] in ("lpa", "ekm")
    }
    if uneven:
        good = sum(ratio > 1.5 for ratio in uneven.values())
        claims.append(
            Claim(
                "Classical label propagation and k-means give very unequal shards.",
                judged(good, len(uneven)),
                "Largest over mean: "
                + ", ".join(f"{shown(d)} {m} {ratio:.1f}" for (d, m), ratio in uneven.items())
                + ".",
            )
        )
    kept = [
        max(sizes) <= capacity
        for (_, method), (sizes, capacity) in found.items()
        if method in ("blpa", "bekm") and capacity is not None
    ]
    if kept:
        claims.append(
            Claim(
                "BLPA and BEKM keep every shard within delta.",
                judged(sum(kept), len(kept), holds=1.0),
                f"In {counted(sum(kept), len(kept), 'cuts')}.",
            )
        )
    panels = {
        f"{shown(dataset)}, {shown(method)}" + (f" (top {TOP})" if len(sizes) > TOP else ""): (
            sorted(sizes, reverse=True)[:TOP],
            capacity,
        )
        for (dataset, method), (sizes, capacity) in found.items()
    }
    return Summary(rows, [table], claims, lambda: draw_sizes(panels, columns=4))


register(
    Experiment(
        "shard-sizes",
        "Shard sizes of classical methods",
        "figure:shard_size_distribution",
        "seconds",
        cells,
        summarise,
    )
)
