"""Cells that several experiments share, and the results of many cells at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from grapheraser.experiments.framework.cell import Cell, Results
from grapheraser.experiments.framework.means import Mean, mean_of
from grapheraser.experiments.framework.options import Options
from grapheraser.experiments.paper import published as paper

SCRATCH = paper.SCRATCH


def utility_cell(
    options: Options,
    dataset: str,
    model: str,
    run: int,
    partition: str,
    *,
    num_shards: int | None = None,
    aggregations: Sequence[str] | None = None,
    gamma: float = 0.0,
    drop_edges: float = 0.0,
    forget: Mapping[str, Any] | None = None,
) -> Cell:
    """F1 over one set of shards; ``partition`` is a label, `SCRATCH` for no shards at all.

    What is not set is left out of the configuration, so that equal cells of different experiments
    are one.
    """
    texts = list(options.aggregation_names.values() if aggregations is None else aggregations)
    if partition == SCRATCH:
        method, shards, texts = "random", 1, ["mean"]
    else:
        method = options.how.partition(partition)
        shards = options.shards(dataset) if num_shards is None else num_shards
    special = {"gamma": gamma, "drop_edges": drop_edges, "forget": forget}
    return Cell.of(
        "utility",
        **options.data(dataset, run),
        model=options.preset(model),
        partition=method,
        num_shards=shards,
        epochs=options.epochs,
        aggregations=sorted(texts),
        **{key: value for key, value in special.items() if value},
        **options.sources(model, method, *texts),
    )


def requests_cell(
    options: Options,
    dataset: str,
    model: str,
    partition: str,
    *,
    num_shards: int | None = None,
    requests: int | None = None,
    nodes_only: bool = False,
) -> Cell:
    """Times of requests; LBAggr is relearned after each, scratch has nothing to learn."""
    scratch = partition == SCRATCH
    method = "random" if scratch else options.how.partition(partition)
    learned = options.how.aggregations.get("learned", "mean")
    shards = options.shards(dataset) if num_shards is None else num_shards
    return Cell.of(
        "requests",
        **options.data(dataset, 0),
        model=options.preset(model),
        partition=method,
        num_shards=1 if scratch else shards,
        epochs=options.epochs,
        aggregation="mean" if scratch else learned,
        requests=options.requests if requests is None else min(requests, options.requests),
        budget=options.budget,
        **({"nodes_only": True} if nodes_only else {}),
        **options.sources(model, method),
    )


def partition_cell(options: Options, dataset: str, partition: str, run: int = 0) -> Cell:
    """Time, sizes and rounds of a partition."""
    method = options.how.partition(partition)
    return Cell.of(
        "partition",
        **options.data(dataset, run),
        method=method,
        num_shards=options.shards(dataset),
        **options.sources(method),
    )


def utility_cells(
    options: Options, dataset: str, model: str, partition: str, **special: Any
) -> list[Cell]:
    """`utility_cell` for each run."""
    return [
        utility_cell(options, dataset, model, run, partition, **special)
        for run in range(options.runs)
    ]


Key = TypeVar("Key")


def every_cell(groups: Mapping[Key, Sequence[Cell]]) -> list[Cell]:
    """The cells of all groups."""
    return [cell for group in groups.values() for cell in group]


def f1_means(
    results: Results, groups: Mapping[Key, Sequence[Cell]], aggregation: str = "mean"
) -> dict[Key, Mean]:
    """F1 of each group, mean over its runs; groups without results are left out."""
    found = {}
    for key, group in groups.items():
        values = [value for cell in group if (value := results.value(cell)) is not None]
        scores = (value["f1"].get(aggregation) for value in values)
        mean = mean_of(scores, values[0]["test_nodes"] if values else 0)
        if mean is not None:
            found[key] = mean
    return found


def measured(results: Results, cells: Mapping[Key, Cell]) -> dict[Key, dict[str, Any]]:
    """The measurement of each cell that has one."""
    found = {key: results.value(cell) for key, cell in cells.items()}
    return {key: value for key, value in found.items() if value is not None}
