"""Sizes of the shards of classical methods (figure:shard_size_distribution)."""

from __future__ import annotations

from typing import Any

import numpy as np

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.experiment import (
    Experiment,
    Summary,
    judged_claim,
    register,
)
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.framework.resolve import shown
from grapheraser.experiments.framework.shared_cells import measured, partition_cell
from grapheraser.experiments.paper import published as paper
from grapheraser.reports.figures.bars import draw_sizes
from grapheraser.reports.tables import Table

TOP = 100
METHODS = ("ekm", "blpa", "bekm")


Key = tuple[str, str]


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


def cells(options: Options) -> list[Cell]:
    """Classical label propagation and k-means, and the balanced forms beside them."""
    return [*_communities(options).values(), *_partitions(options).values()]


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
    uneven = {
        key: max(sizes) / float(np.mean(sizes))
        for key, (sizes, _) in found.items()
        if key[1] in ("lpa", "ekm")
    }
    told = ", ".join(f"{shown(d)} {m} {ratio:.1f}" for (d, m), ratio in uneven.items())
    claims = [
        *judged_claim(
            "Classical label propagation and k-means give very unequal shards.",
            [ratio > 1.5 for ratio in uneven.values()],
            lambda _: f"Largest over mean: {told}.",
        ),
        *judged_claim(
            "BLPA and BEKM keep every shard within delta.",
            [
                max(sizes) <= capacity
                for (_, method), (sizes, capacity) in found.items()
                if method in ("blpa", "bekm") and capacity is not None
            ],
            lambda count: f"In {count}.",
            noun="partition",
            holds=1.0,
        ),
    ]
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
