"""Posteriors of a user's own module: on the surroundings of the nodes, or on the whole graph."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.arrays import Floats32, Ints
from grapheraser.engines import reference
from grapheraser.engines.graph_checks import accepted
from grapheraser.engines.task import ShardWeights
from grapheraser.errors import GraphEraserError
from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN, EdgeKind
from grapheraser.inference.reach import Reach, reach_of
from grapheraser.inference.surroundings import Surroundings, surroundings_of, whole_graph
from grapheraser.models import CustomModel


def check_module(model: CustomModel, weights: Iterable[ShardWeights], graph: Graph) -> None:
    """Refuse a user's module that cannot hold the weights of a shard."""
    with reference.reproducible(0):
        for shard in islice(weights, 1):
            module_of(model, shard, graph)


def module_posteriors(
    model: CustomModel, weights: Sequence[ShardWeights], graph: Graph, positions: Ints
) -> Floats32:
    """Return posteriors of a user's module, as on the whole graph up to rounding.

    They are a function of these arguments: what was computed before has no part in them. But a
    node's posterior may have other bits with other nodes beside it.
    """
    positions = np.ascontiguousarray(positions, dtype=np.int64)
    out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
    if not len(positions):
        return out
    known: dict[Reach | None, Surroundings] = {}
    with reference.reproducible(0), torch.no_grad():
        for i, shard in enumerate(weights):
            scores = _scores(module_of(model, shard, graph), graph, positions, known)
            classes = graph.label_kind.is_classes
            out[i] = (torch.softmax(scores, dim=1) if classes else scores).numpy()
    if not np.isfinite(out).all():
        raise GraphEraserError(
            f"{model.name} gives scores that are not finite, so nothing follows from them.",
            hint="look for divisions by zero, logarithms and overflows in its forward.",
        )
    return out


def _scores(
    module: ShardModule, graph: Graph, positions: Ints, known: dict[Reach | None, Surroundings]
) -> Tensor:
    """Return scores ``[len(positions), num_classes]``.

    What modules see is put into ``known``, by their reach; the whole graph as None.
    """
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


# A value, and how often it was changed in place if it is a tensor.
_Part: TypeAlias = tuple[Any, int]


class ShardModule:
    """A user's module with the weights of a shard, in eval mode.

    Every pass starts from the module as it was built: one that a pass has changed (PyG's layers
    with ``cached=True`` keep the first graph that they see) is built anew.
    """

    def __init__(
        self,
        model: CustomModel,
        tensors: Mapping[str, NDArray[np.generic]],
        num_features: int,
        num_classes: int,
        edge_kind: EdgeKind = PLAIN,
    ) -> None:
        self.model = model
        self._tensors = tensors
        self._shape, self._edge_kind = (num_features, num_classes), edge_kind
        self._built: _Built | None = self._build()

    @property
    def name(self) -> str:
        return self.model.name

    def __call__(self, seen: Surroundings) -> Tensor:
        """Return scores of the nodes asked for ``[len(seen.places), num_classes]``."""
        return self._pass(seen.x, seen.edge_index, **seen.carried)[seen.places]

    @cached_property
    def reach(self) -> Reach:
        """The module's reach, as the user says, or as found by trying."""
        hops = self.model.hops
        if hops == "auto":
            return reach_of(self._pass, self._shape[0], self._edge_kind)
        return Reach(None if hops == "all" else int(hops))

    def _pass(self, x: Tensor, edge_index: Tensor, **carried: Tensor) -> Tensor:
        built = self._built or self._build()
        self._built = None  # until it is known to be as it was
        _reseed()
        scores: Tensor = built.module(x, edge_index, **accepted(built.module, carried))
        if built.is_unchanged():
            self._built = built
        return scores

    def _build(self) -> _Built:
        _reseed()
        module = self.model.factory(*self._shape)
        reference.load_tensors(module, self._tensors).eval()
        return _Built(module, _parts(module))


class _Built(NamedTuple):
    """A module, and what it was made of when it was built."""

    module: nn.Module
    parts: list[_Part]

    def is_unchanged(self) -> bool:
        now = _parts(self.module)
        return len(now) == len(self.parts) and all(
            value is known and version == known_version
            for (value, version), (known, known_version) in zip(now, self.parts, strict=True)
        )


def _parts(module: nn.Module) -> list[_Part]:
    """List all attributes of a module and of those inside it, and what dicts, lists, sets hold."""
    values: list[Any] = []
    for part in module.modules():
        for value in vars(part).values():
            values.append(value)
            if isinstance(value, dict):
                values.extend(value.values())
            elif isinstance(value, list | set):
                values.extend(value)
    return [(value, value._version if isinstance(value, Tensor) else 0) for value in values]


def _reseed() -> None:
    """Give the same random numbers to every module; `torch.manual_seed` asks for GPUs as well."""
    torch.default_generator.manual_seed(0)
    reference.seed_modules(0)


_KNOWN: WeakKeyDictionary[ShardWeights, ShardModule] = WeakKeyDictionary()


def module_of(model: CustomModel, weights: ShardWeights, graph: Graph) -> ShardModule:
    """Return the shard's module; remembered for as long as the weights themselves live."""
    known = _KNOWN.get(weights)
    if known is None or known.model != model:
        shape = graph.num_features, graph.num_classes, graph.edge_kind
        known = ShardModule(model, weights.tensors, *shape)
        _KNOWN[weights] = known
    return known
