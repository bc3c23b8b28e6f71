"""Stand-ins for what a loaded run lacks on this machine; each says so when it is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

from grapheraser.errors import ParameterError, PartitionError
from grapheraser.training import Engine, ShardTask, TrainingConfig, resolve_engine


@dataclass(frozen=True)
class MissingPartitioner:
    """Stands for a user's own partitioner that was not brought; only a partition needs it.

    Attributes:
        name: of the partitioner.
        type: where it was defined.
    """

    name: str
    type: str
    inputs: frozenset[str] = frozenset()
    strict: bool = False

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise PartitionError(
            f"this run was partitioned by a partitioner of its own, '{self.name}' ({self.type}).",
            hint="pass it again: GraphEraser.load(path, partition=...).",
        )


@dataclass(frozen=True)
class MissingEngine:
    """Stands for a run's engine where it can't train: the run predicts, and refuses to retrain.

    Attributes:
        name: of the engine.
        why: what is missing.
    """

    name: str
    why: str

    def train(self, task: ShardTask, config: TrainingConfig) -> NoReturn:
        """Refuse any task."""
        raise ParameterError(
            f"shard {task.shard} can't be retrained here bit for bit: {self.why}",
            hint="unlearn and verify this run where it was fitted, or fit it again here.",
        )


def same_engine(name: str, fitted_on: str, config: TrainingConfig, device: str) -> Engine:
    """The engine that trained a run, on a device of the same kind; else a `MissingEngine`.

    Args:
        name: of the engine.
        fitted_on: the device that it trained on.
        config: the run's model and how it is trained.
        device: where it is to train now.
    """
    _check_device(device)
    if device.partition(":")[0] != fitted_on.partition(":")[0]:
        why = f"the run was trained on device '{fitted_on}', and this is '{device}'."
        return MissingEngine(name, why)
    try:
        return resolve_engine(name, config, device)
    except ParameterError as error:
        return MissingEngine(name, error.message)


def _check_device(device: str) -> None:
    if device == "cpu":  # whoever only predicts there does not wait for torch
        return
    import torch

    try:
        torch.device(device)
    except RuntimeError:
        raise ParameterError.of("device", "GraphEraser.load", "a torch device", device) from None
