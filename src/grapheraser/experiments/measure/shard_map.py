"""Kind ``tsne``: shards in the plane by their mean embedding, with their importance scores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.errors import MissingExtraError
from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.framework.resolve import EMBEDDINGS
from grapheraser.experiments.measure.f1 import measure as measure_utility
from grapheraser.experiments.measure.inputs import graph_of, partition_of


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Mean embedding of each shard, projected by t-SNE; and what ``utility`` gives."""
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise MissingExtraError.of("scikit-learn", "experiments", "the t-SNE picture") from None
    utility = measure_utility(config)
    graph, seed = graph_of(config), int(config["seed"])
    part = partition_of(config)
    points = EMBEDDINGS[config["embedding"]](graph.training_graph, seed)
    shards = np.stack([points[part.labels == s].mean(axis=0) for s in part.shard_ids])
    projection = TSNE(
        n_components=2,
        perplexity=min(5.0, (len(shards) - 1) / 2),
        init="pca",
        random_state=seed,
    )
    places = projection.fit_transform(shards.astype(np.float64))
    apart = np.linalg.norm(shards[:, None] - shards[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return {
        "importance": utility["importance"],
        "shard_f1": utility["shard_f1"],
        "places": np.round(places, 4).tolist(),
        "nearest": apart.argmin(axis=1).tolist(),
    }


KINDS.add("tsne", Kind(measure, trains=True))
