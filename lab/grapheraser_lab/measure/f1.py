"""Kind ``utility``: micro F1 of many aggregations over one set of trained shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.execution import LocalExecutor
from grapheraser.graph import Graph
from grapheraser.inference import shard_posteriors
from grapheraser.nodes import GraphEraser
from grapheraser.partition import Partition
from grapheraser_lab.framework.cell import KINDS, Kind
from grapheraser_lab.framework.resolve import EMBEDDINGS, aggregator_of, model_of
from grapheraser_lab.measure.inputs import graph_of, partition_of, request_of

# A shard model sees its own nodes and the test nodes; also behind an aggregation: ``mean@shard``.
ISOLATED = "shard"


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
    whole = KeptEnsemble.of(eraser.aggregator_.ensemble)
    alone = KeptEnsemble.of(eraser.aggregator_.ensemble, isolated=True)
    ensemble = alone if config.get("view") == ISOLATED and partition.num_shards > 1 else whole
    positions = graph.positions(graph.test_nodes)
    truth = graph.y[positions]
    known = graph.training_graph.y  # what a model without features could learn from
    f1, one_label, importance = {}, {}, {}
    for text in config["aggregations"]:
        name, _, view = text.partition("@")
        seen = alone if view == ISOLATED and partition.num_shards > 1 else ensemble
        fitted = aggregator_of(name).fit(seen)
        answers = fitted.predict_proba(seen, positions).argmax(axis=1)
        f1[text] = float((answers == truth).mean())
        one_label[text] = float(np.bincount(answers).max() / len(answers))
        if "importance" in fitted.tensors and np.ndim(fitted.tensors["importance"]) == 1:
            importance[text] = [float(v) for v in np.asarray(fitted.tensors["importance"])]
    votes = ensemble.posteriors(positions).argmax(axis=2)
    return {
        "f1": f1,
        "one_label": one_label,
        "majority_f1": float((truth == np.bincount(known).argmax()).mean()),
        "label_entropy": _entropy_inside(graph, eraser.partition_),
        "label_entropy_whole": _entropy(known),
        "importance": importance,
        "shard_f1": [float(v) for v in (votes == truth).mean(axis=1)],
        "sizes": eraser.partition_.sizes.tolist(),
        "edges_kept": None if partition.quality is None else partition.quality.edges_kept,
        "test_nodes": len(truth),
        "train_nodes": len(graph.train_nodes),
        "shards_touched": int((partition.sizes != eraser.partition_.sizes).sum()),
        "notes": [*partition.notes],
    }


def _entropy_inside(graph: Graph, partition: Partition) -> float:
    """Entropy of the labels inside a shard, in bits; mean over the training nodes."""
    training = graph.training_graph
    shards = partition.shard_of(training.ids)
    found = [(np.sum(shards == s), _entropy(training.y[shards == s])) for s in np.unique(shards)]
    return float(sum(count * entropy for count, entropy in found) / len(shards))


def _entropy(labels: NDArray[np.int64]) -> float:
    share = np.bincount(labels[labels >= 0]) / max(1, int((labels >= 0).sum()))
    return float(-(share[share > 0] * np.log2(share[share > 0])).sum())


KINDS.add("utility", Kind(measure, trains=True))


# -- kind ``tsne``: shards in the plane by their mean embedding, with their importance scores ---


def measure_map(config: Mapping[str, Any]) -> dict[str, Any]:
    """Mean embedding of each shard, projected by t-SNE; and what ``utility`` gives."""
    from sklearn.manifold import TSNE

    utility = measure(config)
    graph, seed = graph_of(config), int(config["seed"])
    part = partition_of(config)
    points = EMBEDDINGS[config["embedding"]](graph.training_graph, seed)
    shards = np.stack([points[part.labels == s].mean(axis=0) for s in part.shard_ids])
    projection = TSNE(
        n_components=2, perplexity=min(5.0, (len(shards) - 1) / 2), init="pca", random_state=seed
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


KINDS.add("tsne", Kind(measure_map, trains=True))


# -- an ensemble whose posteriors are computed once, however many aggregations look at them -----


@dataclass(frozen=True, eq=False)
class KeptEnsemble(Ensemble):
    """Keeps every row that was ever asked for; on another graph it starts afresh.

    Attributes:
        isolated: whether a shard model sees only its own nodes, the test nodes and those that it
            is asked about, as in the paper's released code, instead of the whole graph.
    """

    isolated: bool = False
    kept: dict[str, NDArray[Any]] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, ensemble: Ensemble, *, isolated: bool = False) -> KeptEnsemble:
        """Keep the shards of an ensemble on its graph."""
        parts = ensemble.graph, ensemble.partition, ensemble.shards, ensemble.model, ensemble.seed
        return cls(*parts, isolated)

    def posteriors(
        self, positions: NDArray[np.int64], shards: Sequence[int] | None = None
    ) -> NDArray[np.float32]:
        """See `Ensemble`."""
        if self.isolated:
            return self._isolated(positions)[self._rows(shards)]
        if not self.kept:
            shape = (len(self.shards), self.graph.num_nodes, self.graph.num_classes)
            self.kept["values"] = np.empty(shape, dtype=np.float32)
            self.kept["known"] = np.zeros(self.graph.num_nodes, dtype=bool)
        values, known = self.kept["values"], self.kept["known"]
        positions = np.asarray(positions, dtype=np.int64)
        missing = np.unique(positions[~known[positions]])
        if len(missing):
            values[:, missing] = super().posteriors(missing)
            known[missing] = True
        return values[self._rows(shards)][:, positions]

    def _rows(self, shards: Sequence[int] | None) -> Any:
        if shards is None:
            return slice(None)
        place = {shard: row for row, shard in enumerate(self.shard_ids)}
        return np.array([place[shard] for shard in shards], dtype=np.int64)

    def _isolated(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Kept by question: nodes that are asked about together see each other."""
        key = np.asarray(positions, dtype=np.int64).tobytes().hex()
        if key not in self.kept:
            graph, asked = self.graph, self.graph.ids[positions]
            seen = np.union1d(graph.test_nodes, asked)
            found = []
            for shard in self.shard_ids:
                own = self.partition.nodes[self.partition.labels == shard]
                around = graph.subgraph(np.union1d(own[graph.contains(own)], seen))
                places = around.positions(asked)
                found += [*shard_posteriors(self.model, [self.shards[shard]], around, places)]
            self.kept[key] = np.stack(found)
        return self.kept[key]
