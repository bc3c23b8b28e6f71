"""Posteriors of a user's own module: on the surroundings of the nodes, or on the whole graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import GraphEraserError
from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model
from grapheraser.training.task import ShardWeights

if TYPE_CHECKING:
    from torch import Tensor

    from grapheraser.training.inference.reach import Reach
    from grapheraser.training.inference.shard_module import ShardModule
    from grapheraser.training.inference.surroundings import Surroundings


def check_module(model: Model, weights: Iterable[ShardWeights], graph: Graph) -> None:
    """Refuse a user's module that cannot hold the weights of a shard."""
    if isinstance(model, CustomModel):
        from grapheraser.training import reference
        from grapheraser.training.inference.shard_module import module_of

        with reference.reproducible(0):
            for shard in islice(weights, 1):
                module_of(model, shard, graph)


def module_posteriors(
    model: CustomModel,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Posteriors of a user's module, as on the whole graph up to rounding.

    They are a function of these arguments: what was computed before has no part in them. But a
    node's posterior may have other bits with other nodes beside it.
    """
    import torch

    from grapheraser.training import reference
    from grapheraser.training.inference.shard_module import module_of

    positions = np.ascontiguousarray(positions, dtype=np.int64)
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    if not len(positions):
        return out
    known: dict[Reach | None, Surroundings] = {}
    with reference.reproducible(0), torch.no_grad():
        for i, shard in enumerate(weights):
            scores = _scores(module_of(model, shard, graph), graph, positions, known)
            out[i] = torch.softmax(scores, dim=1).numpy()
    if not np.isfinite(out).all():
        raise GraphEraserError(
            f"{model.name} gives scores that are not finite, so nothing follows from them.",
            hint="look for divisions by zero, logarithms and overflows in its forward.",
        )
    return out


def _scores(
    module: ShardModule,
    graph: Graph,
    positions: NDArray[np.int64],
    known: dict[Reach | None, Surroundings],
) -> Tensor:
    """Scores ``[len(positions), num_classes]``.

    What modules see is put into ``known``, by their reach; the whole graph as None.
    """
    from grapheraser.training.inference.surroundings import surroundings_of, whole_graph

    reach = module.reach
    why = reach.why
    if reach.hops is not None:
        if reach not in known:
            known[reach] = surroundings_of(graph, positions, reach.hops, degrees=reach.degrees)
        try:
            scores = module(known[reach])
        except Exception as error:  # whatever a user's code raises where it meets a NaN
            why = f"it failed on the surroundings of nodes ({type(error).__name__}: {error})"
        else:
            if not scores.isnan().any():
                return scores
            why = f"it looks further than hops={reach.hops}"
    if None not in known:
        known[None] = whole_graph(graph, positions)
    scores = module(known[None])
    if why and not scores.isnan().any():
        _warn(module.name, why)
    return scores


def _warn(name: str, why: str) -> None:
    warnings.warn(
        f"{name} is evaluated on the whole graph, however few nodes are asked for: {why}. "
        "If you know how far it looks, say so: CustomModel(factory, hops=2), or hops='all' for "
        "the whole graph without this warning.",
        stacklevel=2,
    )
