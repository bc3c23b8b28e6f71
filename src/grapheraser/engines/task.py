"""Values that go into training a shard, and the weights that come out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from grapheraser.checks import real, whole
from grapheraser.errors import ParameterError
from grapheraser.graph import Graph
from grapheraser.models import CustomModel, Model, ModelSpec

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LRScheduler

MakeOptimizer: TypeAlias = "Callable[[Iterable[nn.Parameter]], Optimizer]"
LossFunction: TypeAlias = "Callable[[Tensor, Tensor], Tensor]"
MakeScheduler: TypeAlias = "Callable[[Optimizer], LRScheduler]"
Callback: TypeAlias = "Callable[[int, nn.Module, float], object]"
ClassWeights: TypeAlias = str | tuple[tuple[int, float], ...] | tuple[float, ...]
# The first of each is what the kernels of the engines are written for.
OPTIMIZERS = ("adam", "adamw", "sgd")
LOSSES = ("cross_entropy", "nll", "huber")
SAMPLING = ("neighbours", "batch_size")
HOOKS = ("scheduler", "callback")
OWN_FUNCTIONS = ("optimizer", "loss", *HOOKS)  # settings that may be functions of the user's own


@dataclass(frozen=True)
class EarlyStopping:
    """Stop training once the loss on held-out training nodes of the shard gets no better.

    A keyed hash of a node's id decides whether it is held out, so that forgetting one node leaves
    the others where they are. Held-out nodes take part in message passing, without a loss.

    Attributes:
        patience: after so many epochs without a smaller loss.
        share: of the shard's labelled nodes to hold out.
    """

    patience: int = 20
    share: float = 0.1

    def __post_init__(self) -> None:
        patience = whole("patience", "EarlyStopping", self.patience, 1)
        object.__setattr__(self, "patience", patience)
        share = real("share", "EarlyStopping", self.share, above=0, below=1)
        object.__setattr__(self, "share", share)


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of the training of every shard."""

    model: Model  # a built-in architecture or a user's own, with its learning rate and weight decay
    # Full-batch steps, or where neighbours are sampled passes over the labelled nodes.
    epochs: int = 100
    # A name, or a function from a module's parameters.
    optimizer: str | MakeOptimizer = OPTIMIZERS[0]
    # A name, or a function of the scores and labels of labelled nodes. Of several labels
    # ``cross_entropy`` is that of each, and of numbers the squared error.
    loss: str | LossFunction = LOSSES[0]
    # ``"balanced"``, pairs of a class and its weight, or one weight per class.
    class_weights: ClassWeights | None = None
    early_stopping: EarlyStopping | None = None  # when to stop before all epochs are done
    # How many of each node to sample, hop by hop; None: no sampling.
    neighbours: tuple[int, ...] | None = None
    batch_size: int | None = None  # labelled nodes in a batch, where neighbours are sampled
    scheduler: MakeScheduler | None = None  # of the learning rate, a function of the optimiser
    callback: Callback | None = None  # is called after every epoch

    def __post_init__(self) -> None:
        object.__setattr__(self, "epochs", whole("epochs", "TrainingConfig", self.epochs, 1))

    @property
    def own_code(self) -> tuple[str, ...]:
        """Names of the parts that are code of the user's own."""
        own = [f"an own {name}" for name in OWN_FUNCTIONS if callable(getattr(self, name))]
        module = isinstance(self.model, CustomModel) and self.model.is_own
        return (*([self.model.name] if module else []), *own)

    @property
    def beyond_kernels(self) -> tuple[str, ...]:
        """Names of the settings that only the reference loop can follow."""
        model = self.model
        found = list(model.beyond_kernels) if isinstance(model, ModelSpec) else []
        for name, usual in (("optimizer", OPTIMIZERS[0]), ("loss", LOSSES[0])):
            value = getattr(self, name)
            if value != usual:
                found.append(f"{name}={value!r}" if isinstance(value, str) else f"own {name}")
        optional = ("class_weights", "early_stopping", *HOOKS)
        given = (name for name in optional if getattr(self, name))
        sampled = (name for name in SAMPLING if getattr(self, name) is not None)
        return (*found, *given, *sampled)


def built_in(config: TrainingConfig, engine: str) -> ModelSpec:
    """Return the model; refuse a config that an engine's kernels can't train."""
    beyond = config.beyond_kernels
    if not isinstance(config.model, ModelSpec):
        own = config.model.is_own
        can = "trains the built-in models only" if own else "has no kernels for typed graphs"
    elif beyond:
        can = f"can't train with {', '.join(beyond)}"
    else:
        return config.model
    raise ParameterError(f"engine '{engine}' {can}.", hint="use engine='pyg' or 'auto'.")


@runtime_checkable
class Reader(Protocol):
    """A model that reads the rows of a graph in its own way, and answers about them itself."""

    def batches(
        self, module: nn.Module, task: ShardTask, config: TrainingConfig, device: str
    ) -> Any:
        """Return the batches of a shard; see `engines.batches`."""

    def posteriors(
        self, weights: Sequence[ShardWeights], graph: Graph, positions: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Return posteriors ``[len(weights), len(positions), num_classes]``."""


@dataclass(frozen=True, eq=False)
class ShardTask:
    """One shard to train: its own nodes, the edges between them, and its halo if it has one."""

    shard: int  # the shard's id
    graph: Graph  # see `partition.halo`; nodes without a label take part, but have no loss
    seed: int  # derived from the run's seed and the shard's id

    @property
    def targets(self) -> NDArray[np.float64]:
        """Several labels as 0 and 1, or numbers in the frame of the whole graph; NaN: unknown."""
        graph, kind = self.graph, self.graph.label_kind
        if not kind.is_numbers:
            return kind.rows(graph.y)
        frame = graph.label_frame
        return np.asarray((kind.fixed(graph.y) - frame.centre) / frame.spread)

    def columns(self, model: Model) -> NDArray[np.int32]:
        """Return the sorted feature columns that the model has weights for."""
        if isinstance(model, CustomModel):
            return model.columns(self.graph)
        if not model.all_columns:
            used = np.zeros(self.graph.num_features, dtype=bool)
            used[self.graph.x.indices] = True
            return np.flatnonzero(used).astype(np.int32)
        return np.arange(self.graph.num_features, dtype=np.int32)


@dataclass(frozen=True, eq=False)
class ShardWeights:
    """A trained shard model."""

    # Int32, sorted feature columns that the input layers have weights for.
    columns: NDArray[np.int32]
    # Arrays by the names of the PyG module's state dict; input layers have one column per entry of
    # ``columns``.
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
    def not_finite(self) -> str | None:
        """The name of a tensor with values that are not finite, if there is one."""
        for name, tensor in self.tensors.items():
            if tensor.dtype.kind in "fc" and not np.isfinite(tensor).all():
                return name
        return None


def digest_tensors(tensors: Mapping[str, NDArray[np.generic]]) -> str:
    """Return the SHA-256 over the names and digests of all tensors."""
    return joined_digest(tensor_digests(tensors))


def tensor_digests(tensors: Mapping[str, NDArray[np.generic]]) -> dict[str, str]:
    """Return the SHA-256 over type, shape and bytes of each tensor, by name."""
    found = {}
    for name, array in tensors.items():
        digest = hashlib.sha256(f"{array.dtype.str}|{array.shape}|".encode())
        digest.update(np.ascontiguousarray(array).data)
        found[name] = digest.hexdigest()
    return found


def joined_digest(digests: Mapping[str, str]) -> str:
    """Return the digest of all tensors from that of each, in the order of their names."""
    lines = (f"{name}|{digest}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()
