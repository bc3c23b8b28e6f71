"""Engines: interchangeable ways to train the same shard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol, Self, runtime_checkable

from grapheraser.engines import cpu, cuda
from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig, built_in
from grapheraser.environment import needs_torch, torch_processor
from grapheraser.errors import ParameterError
from grapheraser.models import CustomModel
from grapheraser.registry import Registry

# The name of the processor among versions, where bits depend on it.
PROCESSOR = "processor"


class Engine(Protocol):
    """Trains shards; the weights of a shard are a function of its task and the config alone."""

    @property
    def name(self) -> str: ...

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Names of the versions, among them processor and GPU, that last bits depend on."""

    def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
        """Train one shard."""


@runtime_checkable
class StackingEngine(Protocol):
    """An engine that trains many shards faster together than one after the other."""

    def train_stack(self, tasks: Sequence[ShardTask], config: TrainingConfig) -> list[ShardWeights]:
        """Train all of them; each with the bits that it would have alone."""


@dataclass(frozen=True)
class PygEngine:
    """The reference loop; slow, plain, and open to a user's own modules."""

    device: str = "cpu"  # a torch device
    # What torch computes with there; None where that has no part in the bits.
    processor: str | None = None
    name: str = "pyg"

    @classmethod
    def on(cls, device: str) -> Self:
        """Return the engine on a device of this machine."""
        return cls(device, torch_processor(device))

    @property
    def depends_on(self) -> tuple[str, ...]:
        """See `Engine`."""
        return ("torch", "torch_geometric", PROCESSOR if self.device == "cpu" else "gpu")

    def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
        """See `Engine`."""
        from grapheraser.engines import reference

        check_processor(self.processor, self.device)
        return reference.train_shard(task, config, device=self.device)


@dataclass(frozen=True)
class CpuEngine:
    """Fused kernels over sparse features; built-in models only."""

    name: str = "cpu"
    depends_on: tuple[str, ...] = ()
    train = staticmethod(cpu.train_shard)


@dataclass(frozen=True)
class CudaEngine:
    """All shards of a list stacked and trained together on one GPU; built-in models only."""

    device: str = "cuda"
    name: str = "cuda"
    depends_on: tuple[str, ...] = ("torch", "triton", "gpu")

    def train(self, task: ShardTask, config: TrainingConfig) -> ShardWeights:
        """See `Engine`."""
        return cuda.train_shard(task, config, device=self.device)

    def train_stack(self, tasks: Sequence[ShardTask], config: TrainingConfig) -> list[ShardWeights]:
        """See `StackingEngine`."""
        return cuda.train_shards(tasks, config, device=self.device)


ENGINES: Registry[Callable[[str], Engine]] = Registry("engine")
ENGINES.add("pyg", PygEngine.on)
ENGINES.add("cpu", lambda device: CpuEngine())
ENGINES.add("cuda", CudaEngine)


def check_processor(expected: str | None, device: str) -> None:
    """Raise an error where torch computes with something else, as on another machine's worker."""
    found = torch_processor(device)
    if expected is not None and found != expected:
        raise ParameterError(
            f"a shard can't be trained here with the bits that it would have elsewhere: torch "
            f"computes with {found} on this machine, and with {expected} where training began.",
            hint="use workers with one kind of processor.",
        )


def resolve_engine(engine: str, config: TrainingConfig, device: str) -> Engine:
    """Return the engine of that name, or for ``auto`` the fastest that can train this there."""
    kind = _device_kind(device)
    if engine == "auto":
        slow = isinstance(config.model, CustomModel) or bool(config.beyond_kernels)
        engine = "pyg" if slow or kind not in ("cpu", "cuda") else kind
        if engine == "cuda" and find_spec("triton") is None:
            engine = "pyg"
    if engine in ("pyg", "cuda"):
        needs_torch(_purpose_of_torch(engine, config))
    if engine in ("cpu", "cuda"):
        built_in(config, engine)
        if kind != engine:
            raise ParameterError(f"engine '{engine}' can't run on device {device!r}.")
    return ENGINES.get(engine)(device)


def _purpose_of_torch(engine: str, config: TrainingConfig) -> str:
    """Say what torch is needed for."""
    if isinstance(config.model, CustomModel):
        return "a module of your own"
    beyond = ", ".join(config.beyond_kernels)
    return f"training with {beyond}" if beyond else f"engine '{engine}'"


def _device_kind(device: str) -> str:
    if device == "cpu":
        return "cpu"
    needs_torch(f"device {device!r}")
    import torch

    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        raise ParameterError.of("device", "GraphEraser", "a torch device", device) from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise ParameterError(
            f"'device' of GraphEraser is {device!r}, but this machine has no CUDA device.",
            hint="use device='cpu'.",
        )
    return kind
