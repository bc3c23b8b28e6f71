"""What goes into training a shard, and what comes out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import whole
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.models import Model, ModelSpec


@dataclass(frozen=True)
class TrainingConfig:
    """How every shard is trained.

    Attributes:
        model: a built-in architecture or a user's own, with its learning rate and weight decay.
        epochs: full-batch steps of Adam.
    """

    model: Model
    epochs: int = 100

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", whole("epochs", "TrainingConfig", self.epochs, 1))


def built_in(model: Model, engine: str) -> ModelSpec:
    """The model, for an engine that trains the built-in ones only."""
    if isinstance(model, ModelSpec):
        return model
    raise ParameterError(
        f"engine '{engine}' trains the built-in models only.", hint="use engine='pyg' or 'auto'."
    )


@dataclass(frozen=True, eq=False)
class ShardTask:
    """One shard to train: its own nodes, the edges between them, and its halo if it has one.

    Attributes:
        shard: the shard's id.
        graph: see `partition.halo`; nodes without a label take part, but have no loss.
        seed: derived from the run's seed and the shard's id.
    """

    shard: int
    graph: Graph
    seed: int

    def columns(self, model: Model) -> NDArray[np.int32]:
        """Sorted feature columns that the model has weights for."""
        if isinstance(model, ModelSpec) and not model.all_columns:
            used = np.zeros(self.graph.num_features, dtype=bool)
            used[self.graph.x.indices] = True
            return np.flatnonzero(used).astype(np.int32)
        return np.arange(self.graph.num_features, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class ShardWeights:
    """A trained shard model.

    Attributes:
        columns: int32, sorted feature columns that the input layers have weights for.
        tensors: arrays by the names of the PyG module's state dict; input layers have one column
            per entry of ``columns``.
    """

    columns: NDArray[np.int32]
    tensors: dict[str, NDArray[np.generic]]

    def __post_init__(self) -> None:
        for array in (self.columns, *self.tensors.values()):
            array.flags.writeable = False

    @property
    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """Columns and tensors."""
        return {"columns": self.columns, **self.tensors}

    @cached_property
    def digest(self) -> str:
        """SHA-256 over names, types, shapes and bytes of every tensor."""
        return digest_tensors(self.arrays)

    @property
    def num_bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())


def digest_tensors(tensors: Mapping[str, NDArray[np.generic]]) -> str:
    """SHA-256 over the names and digests of all tensors."""
    return joined_digest(tensor_digests(tensors))


def tensor_digests(tensors: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """SHA-256 over type, shape and bytes of each tensor."""
    found = {}
    for name, array in tensors.items():
        digest = hashlib.sha256(f"{array.dtype.str}|{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).data)
        found[name] = digest.hexdigest()
    return found


def joined_digest(digests: Mapping[str, str]) -> str:
    """The digest of all tensors from that of each, in the order of their names."""
    lines = (f"{name}|{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
