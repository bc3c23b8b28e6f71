"""Engines: from the task of a shard to its weights."""

from grapheraser.engines.engine import ENGINES, Engine, StackingEngine, resolve_engine
from grapheraser.engines.shard_models import ShardModels
from grapheraser.engines.task import (
    EarlyStopping,
    ShardTask,
    ShardWeights,
    TrainingConfig,
    digest_tensors,
    joined_digest,
    tensor_digests,
)
from grapheraser.engines.training import Training

__all__ = [
    "ENGINES",
    "EarlyStopping",
    "Engine",
    "ShardModels",
    "ShardTask",
    "ShardWeights",
    "StackingEngine",
    "Training",
    "TrainingConfig",
    "digest_tensors",
    "joined_digest",
    "resolve_engine",
    "tensor_digests",
]
