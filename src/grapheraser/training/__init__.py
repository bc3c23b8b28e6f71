"""The training stage: from isolated shards to shard models, and from those to posteriors."""

from grapheraser.training.engine import (
    ENGINES,
    Engine,
    SlicingEngine,
    StackingEngine,
    check_module,
    resolve_engine,
    shard_posteriors,
)
from grapheraser.training.slices import (
    ShardData,
    SlicedTask,
    check_slices,
    train_sliced,
    valid_checkpoints,
)
from grapheraser.training.task import (
    Checkpoint,
    Phase,
    ShardTask,
    ShardWeights,
    TrainingConfig,
    digest_tensors,
)

__all__ = [
    "ENGINES",
    "Checkpoint",
    "Engine",
    "Phase",
    "ShardData",
    "ShardTask",
    "ShardWeights",
    "SlicedTask",
    "SlicingEngine",
    "StackingEngine",
    "TrainingConfig",
    "check_module",
    "check_slices",
    "digest_tensors",
    "resolve_engine",
    "shard_posteriors",
    "train_sliced",
    "valid_checkpoints",
]
