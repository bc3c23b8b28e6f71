"""A run as files that need nothing of this package: weights for plain PyG, arrays for NumPy.

    README.md                  a model card: data, metrics, receipts, limits
    export.json                the model, the classes, and how the arrays are put together
    graph.safetensors          ids, features (CSR) and the edges that messages flow along
    ensemble.safetensors       whom each node asks, with which weights; what the expert says
    shards/<id>.safetensors    the state dict of one shard's torch module, for all feature columns
    shards/<id>.onnx           the same model as ONNX, if asked for

The class of node v is where this is largest, with ``p`` the softmax of a shard's logits:

    expert[v] + shards_weight * log(max(sum over i of weights[v, i] * p(shard asked[v, i])[v],
                                        least))

With ``votes``, p is 1 for a shard's largest class and 0 for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.aggregation.base import Ensemble
from grapheraser.aggregation.learned import FittedLearned
from grapheraser.aggregation.mean_majority import MajorityAggregator, MeanAggregator
from grapheraser.aggregation.members.shards import FittedShards
from grapheraser.aggregation.pooled import FittedPool
from grapheraser.aggregation.routed import RoutedAggregator, routes
from grapheraser.canonical import canonical_json
from grapheraser.engines import ShardWeights
from grapheraser.environment import needs_torch
from grapheraser.eraser.state import claim_of
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.graph.labels import require_classes
from grapheraser.models import CustomModel, Model, architecture_of
from grapheraser.nodes.answers import scores
from grapheraser.nodes.onnx import onnx_files
from grapheraser.registry import name_of
from grapheraser.reports.card import model_card

if TYPE_CHECKING:
    from torch import nn

    from grapheraser.eraser.snapshot import Snapshot

FORMAT, VERSION = "grapheraser-export", 1
# The least probability whose logarithm is taken, as in the pool.
_LEAST = 1e-6
# Nodes that are looked at together.
_BLOCK = 10_000

Arrays = dict[str, NDArray[Any]]


class Combined(NamedTuple):
    """Numbers by which an ensemble answers about all nodes of its graph.

    Attributes:
        asked: int32 ``[n, m]``, shards by id; -1 for nobody.
        weights: float64 ``[n, m]``.
        expert: float64 ``[n, num_classes]``.
        shards_weight: of what the shards say.
        votes: whether shards vote for one class each.
    """

    asked: NDArray[np.int32]
    weights: NDArray[np.float64]
    expert: NDArray[np.float64]
    shards_weight: float = 1.0
    votes: bool = False


def exported(now: Snapshot, *, onnx: bool = False) -> Iterator[tuple[str, bytes]]:
    """The files of an export, by name; shards also as ONNX if asked for."""
    from safetensors.numpy import save

    state = now.state
    require_classes(state.graph, "export")
    if state.shards and state.graph.types is not None:
        raise ParameterError("shards of typed graphs can't be exported; export writes other runs.")
    if state.shards:
        needs_torch("an export of shard models")
    ensemble = state.ensemble
    combined = _combined(state.aggregator, ensemble)
    described = _described(now, combined)
    yield "graph.safetensors", save(_graph_arrays(state.aggregator, ensemble))
    arrays = ("asked", "weights", "expert")
    parts = {name: np.ascontiguousarray(getattr(combined, name)) for name in arrays}
    yield "ensemble.safetensors", save(parts)
    modules = {
        shard: _module(ensemble.model, weights, state.graph)
        for shard, weights in state.shards.items()
    }
    tensors = {
        shard: {name: value.contiguous() for name, value in module.state_dict().items()}
        for shard, module in modules.items()
    }
    if modules:
        from safetensors.torch import save as save_tensors
    for shard in modules:
        yield f"shards/{shard}.safetensors", save_tensors(tensors[shard])
    if onnx and modules:
        yield from onnx_files(next(iter(modules.values())), tensors, state.graph)
    yield "export.json", (canonical_json(described) + "\n").encode()
    yield "README.md", model_card(_facts(now, described)).encode()


def _combined(fitted: Any, ensemble: Ensemble) -> Combined:
    """Return what decides about each node, for all aggregations of this package."""
    n, classes = ensemble.graph.num_nodes, ensemble.graph.num_classes
    nothing = np.zeros((n, classes))
    shards = np.array(ensemble.shard_ids, dtype=np.int32)
    everybody = np.broadcast_to(shards, (n, len(shards)))
    if isinstance(fitted, FittedPool):
        return _of_pool(fitted, ensemble)
    if isinstance(fitted, RoutedAggregator):
        return Combined(*_routes(fitted, ensemble), nothing)
    if isinstance(fitted, FittedLearned):
        return Combined(everybody, np.tile(fitted.importance, (n, 1)), nothing)
    if isinstance(fitted, MeanAggregator | MajorityAggregator):
        alike = np.full((n, len(shards)), 1.0 / len(shards))
        votes = isinstance(fitted, MajorityAggregator)
        return Combined(everybody, alike, nothing, votes=votes)
    raise ParameterError(
        f"an aggregation of your own ({type(fitted).__name__}) can't be exported as arrays."
    )


def _of_pool(pool: FittedPool, ensemble: Ensemble) -> Combined:
    n, weights = ensemble.graph.num_nodes, pool.weights
    expert = np.tile(pool.learned.offsets, (n, 1))
    asked, shares, weight = np.zeros((n, 0), dtype=np.int32), np.zeros((n, 0)), 0.0
    for member in pool.members.values():
        if isinstance(member, FittedShards):
            asked, shares = _routes(member.routing, ensemble)
            weight = weights["shards"]
            continue
        for start in range(0, n, _BLOCK):
            block = np.arange(start, min(start + _BLOCK, n))
            evidence = member.evidence(ensemble, block)
            for at, name in enumerate(member.names):
                expert[block] += weights[name] * evidence[:, at]
    return Combined(asked, shares, expert, weight)


def _routes(
    routing: RoutedAggregator, ensemble: Ensemble
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    everyone = np.arange(ensemble.graph.num_nodes)
    gathered = ensemble.gather(everyone, features=False)
    return routes(ensemble, gathered, routing.shards_asked, floor=routing.floor)


def _graph_arrays(fitted: Any, ensemble: Ensemble) -> Arrays:
    """Ids, features and edges; of hubs those edges that count for predictions."""
    graph = ensemble.graph
    x = graph.x
    arrays = {
        "ids": graph.ids,
        "x_indptr": x.indptr.astype(np.int64),
        "x_indices": x.indices.astype(np.int64),
        "x_data": x.data.astype(np.float32),
    }
    routed = isinstance(fitted, FittedPool | RoutedAggregator)
    if not routed or isinstance(ensemble.model, CustomModel):
        arrays["edge_index"] = graph.edge_index
        carried = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
        arrays |= {name: values for name, values in carried.items() if values is not None}
    else:
        gathered = ensemble.gather(np.arange(graph.num_nodes), features=False)
        targets = np.repeat(np.arange(graph.num_nodes), np.diff(gathered.indptr))
        edges = np.stack([gathered.indices, targets]).astype(np.int64)
        if len(gathered.weights):  # 0 where an edge only leads out
            comes_in = gathered.weights > 0
            edges = edges[:, comes_in]
            arrays |= {"edge_weight": gathered.weights[comes_in]}
        arrays["edge_index"] = edges
    return {name: np.ascontiguousarray(values) for name, values in arrays.items()}


def _module(model: Model, weights: ShardWeights, graph: Graph) -> nn.Module:
    """A shard's module in eval mode, with a weight for every feature column."""
    from grapheraser.engines.reference import load_tensors
    from grapheraser.models.modules import build_module

    if isinstance(model, CustomModel):
        return load_tensors(model.module_for(graph), weights.tensors).eval()
    size = graph.num_features, graph.num_classes
    tensors = dict(weights.tensors)
    for name in architecture_of(model, 1, 1).inputs.names:
        full = np.zeros((tensors[name].shape[0], graph.num_features), dtype=np.float32)
        full[:, weights.columns] = tensors[name]
        tensors[name] = full
    return load_tensors(build_module(model, *size), tensors).eval()


def _described(now: Snapshot, combined: Combined) -> dict[str, Any]:
    state = now.state
    graph, model = state.graph, state.ensemble.model
    return {
        "format": FORMAT,
        "version": VERSION,
        "graph": graph.name,
        "model": {"factory": name_of(model.factory), "name": model.name}
        if isinstance(model, CustomModel)
        else model.to_dict(),
        "num_features": graph.num_features,
        "num_classes": graph.num_classes,
        "class_names": list(graph.class_names),
        "shards": list(state.shards),
        "shards_weight": combined.shards_weight,
        "votes": combined.votes,
        "least": _LEAST,
        "names": graph.names_of(graph.ids).tolist() if graph.named else None,
    }


def _facts(now: Snapshot, described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of a model card."""
    state = now.state
    graph, partition, tested = state.graph, state.partition, state.graph.labelled_test_nodes
    return {
        "graph": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": list(graph.class_names) or graph.num_classes,
        "training_nodes": graph.num_train,
        "test_nodes": len(tested),
        "f1": scores(state, tested)["f1"] if len(tested) else None,
        "noun": "graph" if now.task.name == "graphs" else "node",
        "model": state.ensemble.model.name,
        "shards": described["shards"],
        "partition": partition.method,
        "claim": claim_of(now.settings, state),
        "receipts": len(now.receipts),
        "last": now.receipts[-1].digest if len(now.receipts) else None,
        "log": now.ends.run,
        "checkpoint": now.ends.checkpoint,
        "versions": dict(now.document["versions"]),
        "notes": list(graph.notes),
    }
