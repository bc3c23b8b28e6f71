"""Stand-ins for what a loaded run lacks on this machine; each says so when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from grapheraser.engines import Engine, ShardTask, TrainingConfig, resolve_engine
from grapheraser.environment import needs_torch
from grapheraser.errors import MissingExtraError, ParameterError, PartitionError


@dataclass(frozen=True)
class MissingPartitioner:
    """Stands for a user's own partitioner that was not brought; only a partition needs it."""

    name: str  # of the partitioner
    type: str  # where it was defined
    inputs: frozenset[str] = frozenset()
    strict: bool = False

    def __call__(self, *args: Any, **options: Any) -> NoReturn:
        raise PartitionError(
            f"this run was partitioned by a partitioner of its own, '{self.name}' ({self.type}).",
            hint="pass it again: GraphEraser.load(path, partition=...).",
        )


@dataclass(frozen=True)
class MissingEngine:
    """Stands for a run's engine where it can't train: the run predicts, and refuses to retrain."""

    name: str  # of the engine
    why: str  # what is missing
    depends_on: tuple[str, ...] = ()
    # What to do.
    hint: str = "unlearn and verify this run where it was fitted, or fit it again here."

    def train(self, task: ShardTask, config: TrainingConfig) -> NoReturn:
        """Refuse any task."""
        del config
        self.refuse(f"shard {task.shard}")

    def refuse(self, what: str) -> NoReturn:
        """Say why something can't be computed here."""
        raise ParameterError(
            f"{what} can't be retrained here bit for bit: {self.why}", hint=self.hint
        )


def same_engine(fitted_as: Mapping[str, Any], config: TrainingConfig, device: str) -> Engine:
    """The engine that trained a run, on a device of the same kind; else a `MissingEngine`."""
    name, fitted_on = (str(fitted_as.get(key)) for key in ("engine", "device"))
    if device != fitted_on:
        _check_device(device)
    if device.partition(":")[0] != fitted_on.partition(":")[0]:
        why = f"the run was trained on device '{fitted_on}', and this is '{device}'."
        return MissingEngine(name, why)
    try:
        return resolve_engine(name, config, device)
    except ParameterError as error:
        return MissingEngine(name, error.message)
    except MissingExtraError as error:
        return MissingEngine(name, error.message, hint=str(error.hint))


def _check_device(device: str) -> None:
    if device == "cpu":  # whoever only predicts there does not wait for torch
        return
    needs_torch(f"device {device!r}")
    import torch

    try:
        torch.device(device)
    except RuntimeError:
        raise ParameterError.of("device", "GraphEraser.load", "a torch device", device) from None
