"""Limits of a shard's labels: shards that see every feature and edge, and only their own labels.

No halo can show a shard more than the whole training graph. Here each shard trains on all of it,
with the labels of its own nodes alone, which would make every request retrain every shard. The F1
of their ensemble is a ceiling for shards that stand alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np

import grapheraser as ge
from grapheraser.aggregation import Ensemble, MeanAggregator, RoutedAggregator, members
from grapheraser.aggregation.members.features import FeatureRegression
from grapheraser.datasets import default_shards
from grapheraser.engines import ShardTask, ShardWeights
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.graph.arrays import fresh
from grapheraser.graph.roles import CONTEXT
from grapheraser.models import GNNS
from grapheraser.nodes.settings import resolve
from grapheraser.partition import Partition
from grapheraser_lab.bench.utility import OTHERS
from grapheraser_lab.framework import published as paper
from grapheraser_lab.timing import swept


def run(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    models: Iterable[str] = GNNS,
    *,
    seeds: int = 1,
    device: str = "cpu",
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return F1 by data set, model and seed."""
    axes = {"dataset": datasets, "model": models, "seed": range(seeds)}
    rows = swept(partial(measured, device=device), progress, **axes)
    return {"benchmark": "shard-labels", "rows": rows}


def measured(dataset: str, model: str, seed: int, device: str = "cpu") -> dict[str, Any]:
    """Micro F1 on test nodes: one model with all labels, and the ensemble, twice combined."""
    graph = ge.load_dataset(dataset, split_seed=seed)
    shards = OTHERS.get(dataset) or default_shards(dataset)
    eraser = ge.GraphEraser(model, num_shards=shards, global_expert=False, seed=seed, device=device)
    settings = resolve(eraser.get_params())
    partition = ge.partition_graph(graph, "hash", num_shards=shards, seed=seed)
    whole = ge.partition_graph(graph, "hash", num_shards=1, seed=seed)

    def trained(part: Partition, shard: int) -> ShardWeights:
        task = ShardTask(shard, _with_labels_of(graph, part, shard), settings.shard_seed(shard))
        return settings.engine.train(task, settings.training)

    positions = graph.positions(graph.test_nodes)
    labels = graph.y[positions]

    def f1(part: Partition, rule: MeanAggregator | RoutedAggregator) -> float:
        models = weights if part is partition else {0: scratch}
        ensemble = Ensemble(graph, part, models, settings.training.model, seed)
        found = [
            rule.fit(ensemble).predict_proba(ensemble, block).argmax(axis=1)
            for block in np.array_split(positions, max(1, len(positions) // 2000))
        ]
        return float((np.concatenate(found) == labels).mean())

    scratch = trained(whole, 0)
    weights = {shard: trained(partition, shard) for shard in range(shards)}
    return {
        "shards": shards,
        "device": device,
        "scratch": f1(whole, MeanAggregator()),
        "mean": f1(partition, MeanAggregator()),
        "routed": f1(partition, RoutedAggregator()),
    }


def _with_labels_of(graph: Graph, partition: Partition, shard: int) -> Graph:
    training = graph.training_graph
    other = ~np.isin(training.ids, partition.members(shard))
    y, role = training.y.copy(), training.role.copy()
    y[other], role[other] = UNLABELLED, CONTEXT
    return training.with_fields(**fresh(y=y, role=role))


# -- how large `features` has to be: F1 on validation nodes, a fifth of the training part -------


SIZES = {
    "384 columns, 4 targets, 16 neighbours": {"columns": 384, "spread": 4, "second": 16},
    "256 columns, 2 targets, 8 neighbours": {"columns": 256, "spread": 2, "second": 8},
}


def member_sizes(
    datasets: Iterable[str] = (*paper.DATASETS, *OTHERS),
    *,
    seeds: int = 3,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Return F1 by data set and seed."""
    rows = swept(_by_size, progress, dataset=datasets, seed=range(seeds))
    return {"benchmark": "member-sizes", "rows": rows}


def _by_size(dataset: str, seed: int) -> dict[str, Any]:
    """Micro F1 on the validation nodes, for both sizes, alone and with shards of GCN."""
    graph = ge.load_dataset(dataset, split_seed=seed).training_graph
    graph = graph.with_split(test_share=0.2, seed=seed)
    shards = OTHERS.get(dataset) or default_shards(dataset)
    found = {}
    for label, size in SIZES.items():
        with patch.object(members, "FeatureRegression", partial(FeatureRegression, **size)):
            for model in ("closed-form", "gcn"):
                eraser = ge.GraphEraser(model, num_shards=shards, seed=seed).fit(graph)
                found[f"{model}, {label}"] = eraser.score(graph.test_nodes)
    return found
