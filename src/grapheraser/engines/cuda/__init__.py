"""The CUDA engine: all shards of a list stacked and trained together, an epoch as one CUDA graph.

Needs a GPU and triton, which torch brings along on Linux; neither is looked for before the first
training.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

from grapheraser.engines.task import ShardTask, ShardWeights, TrainingConfig, built_in
from grapheraser.errors import ParameterError
from grapheraser.models import Model, ModelSpec

__all__ = ["check_model", "train_shard", "train_shards", "warm_up"]


def check_model(model: Model, num_classes: int) -> None:
    """Raise `ParameterError` where this engine can't train the model."""
    from grapheraser.engines.cuda.layout import layout_of

    layout_of(built_in(TrainingConfig(model), "cuda"), num_classes)


def train_shard(task: ShardTask, config: TrainingConfig, *, device: str = "cuda") -> ShardWeights:
    """Train one shard; the bits are those that it would have in any stack."""
    return train_shards([task], config, device=device)[0]


def train_shards(
    tasks: Sequence[ShardTask], config: TrainingConfig, *, device: str = "cuda"
) -> list[ShardWeights]:
    """Train all tasks together, stacked as one block-diagonal graph.

    Every sum runs over one shard's entries in an order that depends on the model alone, so a
    shard's weights have the same bits alone or beside others, on the same kind of GPU with the
    same versions of torch and triton. Tasks that do not fit into memory together are trained in
    several stacks.
    """
    if not tasks:
        return []
    schema = {(task.graph.num_features, task.graph.num_classes) for task in tasks}
    if len(schema) > 1:
        raise ParameterError("all tasks of engine 'cuda' must share features and classes.")
    if any(task.graph.num_nodes == 0 for task in tasks):
        raise ParameterError("engine 'cuda' can't train a shard without nodes.")
    check_model(config.model, tasks[0].graph.num_classes)
    return _train_module().train_stack(tasks, config, device)


def warm_up(spec: ModelSpec, num_classes: int, *, device: str = "cuda") -> None:
    """Compile, or read from triton's cache on disk, all that training this model needs."""
    check_model(spec, num_classes)
    _train_module().warm_up(spec, num_classes, device)


def _train_module() -> ModuleType:
    try:
        from grapheraser.engines.cuda import train
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("triton"):
            raise
        raise ParameterError(
            "engine 'cuda' needs the package 'triton', which is not installed.",
            hint="pip install triton, or use engine='pyg'.",
        ) from None
    return train
