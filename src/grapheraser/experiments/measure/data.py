"""The graph of a cell: loaded once per worker, thinned out or with something forgotten."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.datasets import load_dataset
from grapheraser.errors import ParameterError
from grapheraser.experiments.measure.classical_communities import communities
from grapheraser.graph import Edges, Graph, Nodes, Request
from grapheraser.partition import Partition
from grapheraser.seeding import generator


@lru_cache(maxsize=2)
def _load(name: str, split_seed: int) -> Graph:
    return load_dataset(name, split_seed=split_seed)


def graph_of(config: Mapping[str, Any]) -> Graph:
    """The graph that a configuration names, with its share of training edges taken out."""
    graph = _load(config["dataset"], config["split_seed"])
    share = config.get("drop_edges", 0.0)
    if not share:
        return graph
    edges = graph.training_graph.edges
    order = generator(config["seed"], "experiment", "thin").permutation(len(edges))
    gone = edges[order[: round(share * len(edges))]]
    return graph.without(Edges([(int(u), int(v)) for u, v in gone])) if len(gone) else graph


def request_of(
    forget: Mapping[str, Any], graph: Graph, partition: Partition, seed: int
) -> Request | None:
    """What a cell forgets after the cut; a larger share contains the smaller ones.

    Args:
        forget: ``what`` is edges (``count`` of them), nodes (a ``share``, ``where`` is uniform or
            large: from the larger half of the shards) or community (a ``share`` of one).
        graph: before.
        partition: of it.
        seed: of the choice.
    """
    rng = generator(seed, "experiment", "forget", str(forget["what"]))
    if forget["what"] == "edges":
        edges = graph.training_graph.edges
        chosen = edges[rng.permutation(len(edges))[: forget["count"]]]
        return Edges([(int(u), int(v)) for u, v in chosen]) if len(chosen) else None
    if forget["what"] == "nodes":
        candidates = partition.nodes
        count = round(forget["share"] * len(candidates))
        if forget["where"] == "large":
            largest = np.argsort(-partition.sizes, kind="stable")[: -(-partition.num_shards // 2)]
            candidates = candidates[np.isin(partition.labels, largest)]
    elif forget["what"] == "community":
        candidates = community_of(graph.training_graph, seed)
        count = round(forget["share"] * len(candidates))
    else:
        raise ParameterError(f"can't forget '{forget['what']}'.")
    # Somebody has to be left to predict with.
    count = min(count, len(candidates), len(partition.nodes) - 1)
    chosen = rng.permutation(candidates)[:count]
    return Nodes(chosen.tolist()) if count else None


def community_of(training: Graph, seed: int, *, smallest: int = 20) -> NDArray[np.int64]:
    """Ids of one community of label propagation, drawn among those that are not tiny."""
    labels = communities(training, seed)
    sizes = np.bincount(labels)
    large = np.flatnonzero(sizes >= min(smallest, sizes.max()))
    chosen = generator(seed, "experiment", "community").choice(large)
    return training.ids[labels == chosen]
