"""A user's module with the weights of a shard, built once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.graph import Graph
from grapheraser.graph.edge_values import PLAIN, EdgeKind
from grapheraser.models import CustomModel
from grapheraser.training import reference
from grapheraser.training.edge_arguments import taken
from grapheraser.training.inference.reach import Reach, reach_of
from grapheraser.training.inference.surroundings import Surroundings
from grapheraser.training.task import ShardWeights

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
        """Scores of the nodes asked for ``[len(seen.places), num_classes]``."""
        return self._pass(seen.x, seen.edge_index, **seen.carried)[seen.places]

    @cached_property
    def reach(self) -> Reach:
        """How far the module looks: as the user says, or as found by trying."""
        hops = self.model.hops
        if hops == "auto":
            return reach_of(self._pass, self._shape[0], self._edge_kind)
        return Reach(None if hops == "all" else int(hops))

    def _pass(self, x: Tensor, edge_index: Tensor, **carried: Tensor) -> Tensor:
        built = self._built or self._build()
        self._built = None  # until it is known to be as it was
        _reseed()
        scores: Tensor = built.module(x, edge_index, **taken(built.module, carried))
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
    """All attributes of a module and of those inside it; what dicts, lists and sets hold, too."""
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


_KNOWN: WeakKeyDictionary[ShardWeights, ShardModule] = WeakKeyDictionary()


def module_of(model: CustomModel, weights: ShardWeights, graph: Graph) -> ShardModule:
    """The shard's module; remembered for as long as the weights themselves live."""
    known = _KNOWN.get(weights)
    if known is None or known.model != model:
        shape = graph.num_features, graph.num_classes, graph.edge_kind
        known = ShardModule(model, weights.tensors, *shape)
        _KNOWN[weights] = known
    return known
