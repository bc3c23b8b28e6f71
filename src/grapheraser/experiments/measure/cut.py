"""The cut of a cell: made once per worker, however many models and requests are tried on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from grapheraser.experiments.framework.parts import partitioner_of
from grapheraser.experiments.measure.data import graph_of
from grapheraser.partition import Partition, partition_graph

# All that a cut depends on. What is forgotten is forgotten after it.
_KEYS = ("dataset", "data", "split_seed", "seed", "drop_edges", "partition", "num_shards", "gamma")


def partition_of(config: Mapping[str, Any]) -> Partition:
    """The partition that a configuration names, of the graph before anything is forgotten."""
    return _cut(json.dumps({key: config[key] for key in _KEYS if key in config}, sort_keys=True))


@lru_cache(maxsize=64)
def _cut(text: str) -> Partition:
    config = json.loads(text)
    graph = graph_of(config)
    return partition_graph(
        graph,
        partitioner_of(config["partition"]),
        num_shards=min(config["num_shards"], len(graph.train_nodes)),
        seed=int(config["seed"]),
        gamma=config.get("gamma", 0.0),
    )
