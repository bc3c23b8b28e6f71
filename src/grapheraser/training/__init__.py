"""The training stage: from isolated shards to shard models, and from those to posteriors."""

from grapheraser.training.engine import ENGINES, Engine, StackingEngine, resolve_engine
from grapheraser.training.inference.module import check_module
from grapheraser.training.inference.posteriors import shard_posteriors
from grapheraser.training.task import (
    ShardTask,
    ShardWeights,
    TrainingConfig,
    digest_tensors,
    joined_digest,
    tensor_digests,
)

__all__ = [
    "ENGINES",
    "Engine",
    "ShardTask",
    "ShardWeights",
    "StackingEngine",
    "TrainingConfig",
    "check_module",
    "digest_tensors",
    "joined_digest",
    "resolve_engine",
    "shard_posteriors",
    "tensor_digests",
]
