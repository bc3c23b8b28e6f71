"""Kind ``utility``: micro F1 of many aggregations over one set of trained shards."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from grapheraser.aggregation.remembering import KeptEnsemble
from grapheraser.eraser import GraphEraser
from grapheraser.execution import LocalExecutor
from grapheraser.experiments.framework.cell import KINDS, Kind
from grapheraser.experiments.framework.resolve import aggregator_of, model_of
from grapheraser.experiments.measure.inputs import graph_of, partition_of, request_of


def measure(config: Mapping[str, Any]) -> dict[str, Any]:
    """Partition, forget, train, and aggregate in every way asked for.

    Unlearning is exact, so training on what is left, in the shards of the whole graph, is the same
    as answering the request afterwards, and takes one training instead of two.
    """
    before, seed, model = graph_of(config), int(config["seed"]), model_of(config["model"])
    partition = partition_of(config)
    graph = before
    if config.get("forget"):
        request = request_of(config["forget"], before, partition, seed)
        graph = before if request is None else before.without(request)
    eraser = GraphEraser(
        model=model,
        num_shards=partition.num_shards,
        aggregation="mean",
        epochs=config["epochs"],
        seed=seed,
        device=config.get("device", "cpu"),
        executor=LocalExecutor(workers=1),
    ).fit(graph, partition=partition)
    ensemble = KeptEnsemble.of(eraser.aggregator_.ensemble)
    positions = graph.positions(graph.test_nodes)
    truth = graph.y[positions]
    f1, importance = {}, {}
    for text in config["aggregations"]:
        fitted = aggregator_of(text).fit(ensemble)
        f1[text] = float((fitted.predict_proba(ensemble, positions).argmax(axis=1) == truth).mean())
        if "importance" in fitted.tensors and np.ndim(fitted.tensors["importance"]) == 1:
            importance[text] = [float(v) for v in np.asarray(fitted.tensors["importance"])]
    votes = ensemble.posteriors(positions).argmax(axis=2)
    return {
        "f1": f1,
        "importance": importance,
        "shard_f1": [float(v) for v in (votes == truth).mean(axis=1)],
        "sizes": eraser.partition_.sizes.tolist(),
        "edges_kept": None if partition.quality is None else partition.quality.edges_kept,
        "test_nodes": len(truth),
        "train_nodes": len(graph.train_nodes),
        "shards_touched": int((partition.sizes != eraser.partition_.sizes).sum()),
        "notes": [*partition.notes],
    }


KINDS.add("utility", Kind(measure, trains=True))
