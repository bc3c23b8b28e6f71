"""What a shard's labels allow: shards that see every feature and edge, and only their own labels.

No halo can show a shard more than the whole training graph. Here each shard trains on all of it,
with the labels of its own nodes alone, which would make every request retrain every shard. The F1
of their ensemble is a ceiling for shards that stand alone.

    python benchmarks/shard_labels.py DATASET MODEL SEED [DEVICE]
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import numpy as np

import grapheraser as ge
from grapheraser.aggregation import Ensemble, MeanAggregator, RoutedAggregator
from grapheraser.bench.utility import OTHERS
from grapheraser.datasets import default_shards
from grapheraser.eraser.settings import resolve
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.graph.arrays import fresh
from grapheraser.graph.roles import CONTEXT
from grapheraser.partition import Partition
from grapheraser.training import ShardTask, ShardWeights


def measured(dataset: str, model: str, seed: int, device: str = "cpu") -> dict[str, object]:
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
        "dataset": dataset,
        "model": model,
        "seed": seed,
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
    return replace(training, **fresh(y=y, role=role))


if __name__ == "__main__":
    dataset, model, seed, *device = sys.argv[1:]
    print(json.dumps(measured(dataset, model, int(seed), *device)))
