"""Cells that several experiments share, and the results of many cells at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from grapheraser_lab.framework import published as paper
from grapheraser_lab.framework.cell import Cell, Results
from grapheraser_lab.framework.means import Mean, mean_of
from grapheraser_lab.framework.options import AS_WRITTEN, CLOSEST, CONVEX, FREE, Options

SCRATCH = paper.SCRATCH
# Partitions over whose shards LBAggr learns from more and fewer nodes.
SAMPLED = ("bekm", FREE, "blpa")
SAMPLES = {"10%": "0.1", "1000": "1000", "all": "all"}
# Collapsed: one label for this share of the test nodes, or F1 hardly above the most frequent class.
ONE_LABEL, NO_BETTER = 0.9, 0.02


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
    features: str | None = None,
    view: str | None = None,
) -> Cell:
    """F1 over one set of shards; ``partition`` is a label, `SCRATCH` for no shards at all.

    What is not set is left out of the configuration, so that equal cells of different experiments
    are one.
    """
    special: dict[str, Any] = {"gamma": gamma, "drop_edges": drop_edges, "forget": forget}
    texts = list(options.aggregation_names.values() if aggregations is None else aggregations)
    if partition == SCRATCH:
        method, shards, texts = "random", 1, ["mean"]
    else:
        method = options.how.partition(partition)
        shards = options.shards(dataset) if num_shards is None else num_shards
        plain = not any(special.values()) and shards == options.shards(dataset)
        if aggregations is None and plain and partition in SAMPLED:
            texts += sample_texts(
                options
            ).values()  # the same posteriors, learned from more or less
    data = options.data(dataset, run)
    shown_by = options.how.view if view is None else view
    seen = {"view": shown_by if shards > 1 else "", "features": features}
    if features is not None:
        data.pop("features", None)
    special |= {key: value for key, value in seen.items() if value}
    return Cell.of(
        "utility",
        **data,
        model=options.preset(model),
        partition=method,
        num_shards=shards,
        epochs=options.epochs,
        aggregations=sorted(set(texts)),
        **{key: value for key, value in special.items() if value},
        **options.sources(model, method, *(text.partition("@")[0] for text in texts)),
    )


def sample_texts(options: Options) -> dict[tuple[str, str], str]:
    """LBAggr learned from 10 %, 1000 or all training nodes, by reading and sample."""
    solvers = {
        "paper": {CLOSEST: "lbaggr(reading=softmax, "},
        "literal": {AS_WRITTEN: "learned(solver=paper, ", CONVEX: "learned("},
    }
    return {
        (reading, label): f"{solver}sample={value})"
        for reading, solver in solvers.get(options.protocol, {CONVEX: "learned("}).items()
        for label, value in SAMPLES.items()
    }


def requests_cell(
    options: Options,
    dataset: str,
    model: str,
    partition: str,
    *,
    num_shards: int | None = None,
    nodes_only: bool = False,
) -> Cell:
    """Times of requests; the aggregation is relearned after each, scratch has nothing to learn.

    Where a number of shards is given, they may be few and large: at most as many requests as take
    about as long as those for scratch.
    """
    scratch = partition == SCRATCH
    method = "random" if scratch else options.how.partition(partition)
    shards = options.shards(dataset) if num_shards is None else num_shards
    requests = options.requests
    if scratch:
        requests = options.scratch_requests
    elif num_shards is not None:
        requests = options.scratch_requests * num_shards
    return Cell.of(
        "requests",
        **options.data(dataset, 0),
        model=options.preset(model),
        partition=method,
        num_shards=1 if scratch else shards,
        epochs=options.epochs,
        aggregation="mean" if scratch else options.served,
        requests=min(requests, options.requests),
        **({"nodes_only": True} if nodes_only else {}),
        **options.sources(model, method),
    )


def pyg_cell(options: Options, dataset: str, model: str) -> Cell:
    """Time of training from scratch in plain PyG."""
    data = options.data(dataset, 0)
    epochs = options.epochs
    return Cell.of("pyg-scratch", **data, model=options.preset(model), epochs=epochs)


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


def utility_groups(
    options: Options, partitions: Iterable[str], **special: Any
) -> dict[tuple[str, str, str], list[Cell]]:
    """`utility_cells` by data set, model and partition."""
    every = list(partitions)
    return {
        (d, m, p): utility_cells(options, d, m, p, **special)
        for d, m in options.pairs
        for p in every
    }


Key = TypeVar("Key")


def f1_means(
    results: Results, groups: Mapping[Key, Sequence[Cell]], aggregation: str = "mean"
) -> dict[Key, Mean]:
    """F1 of each group, mean over its runs; groups without results are left out."""
    found = {}
    for key, group in groups.items():
        every = results.by_run(group).items()
        values = {run: value for run, value in every if aggregation in value["f1"]}
        scores = {run: value["f1"][aggregation] for run, value in values.items()}
        tested = next((value["test_nodes"] for value in values.values()), 0)
        gone = bool(values) and has_collapsed(values.values(), aggregation)
        floors = [v["majority_f1"] for v in values.values() if v["majority_f1"] is not None]
        floor = float(np.mean(floors)) if floors else None
        mean = mean_of(scores, tested, collapsed=gone, floor=floor)
        if mean is not None:
            found[key] = mean
    return found


def has_collapsed(values: Iterable[Mapping[str, Any]], aggregation: str) -> bool:
    """Tell whether the answers, in the mean over runs, say no more than the most frequent class.

    So it is where one label is given to `ONE_LABEL` of the test nodes, or where F1 is less than
    `NO_BETTER` above that of always answering with the most frequent class.
    """
    known = list(values)
    told = [v["collapsed"][aggregation] for v in known if aggregation in v.get("collapsed", ())]
    if told:  # restored from a report that kept no more than that
        return bool(told[0])
    one = np.mean([value["one_label"][aggregation] for value in known])
    gain = np.mean([value["f1"][aggregation] - value["majority_f1"] for value in known])
    return bool(one >= ONE_LABEL or gain < NO_BETTER)


def measured(results: Results, cells: Mapping[Key, Cell]) -> dict[Key, dict[str, Any]]:
    """The measurement of each cell that has one."""
    found = {key: results.value(cell) for key, cell in cells.items()}
    return {key: value for key, value in found.items() if value is not None}


# -- cells of link prediction, and the choice of an encoder's options by its validation edges ---


CLOSED, ENCODERS = "closed-form", ("gcn", "sage")
RATES, DROPOUTS = (0.001, 0.003, 0.01), (0.0, 0.5)


def link_cells(
    data: Mapping[str, Any],
    model: str,
    epochs: int,
    *,
    forget: Mapping[str, Any] | None = None,
    dropouts: Sequence[float] = DROPOUTS,
) -> list[Cell]:
    """The cells of a model: of an encoder, one for each choice of its options.

    Args:
        data: ``dataset`` and ``seed``, and what else says which graph it is.
        model: `CLOSED`, another kind of members, or one of `ENCODERS`.
        epochs: of training, at the most.
        forget: ``what`` (nodes or edges) and the ``share`` of them; None for nothing.
        dropouts: that an encoder chooses from.
    """
    common = {**data, "model": model} | ({} if forget is None else {"forget": dict(forget)})
    if model == CLOSED:
        return [Cell.of("links", **common)]
    if model not in ENCODERS:
        return [Cell.of("links", **common, epochs=epochs)]
    return [
        Cell.of("links", **common, lr=lr, dropout=dropout, epochs=epochs)
        for lr in RATES
        for dropout in dropouts
    ]


def chosen(values: Mapping[Cell, Mapping[str, Any]]) -> Cell:
    """The cell with the best AUC on validation edges; there is one where nothing is chosen."""
    return max(values, key=lambda cell: float(values[cell].get("validation_auc", 0.0)))
