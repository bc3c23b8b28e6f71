"""The training stage: from isolated shards to shard models, and from those to posteriors."""

from grapheraser.training.check import check_weights
from grapheraser.training.engine import ENGINES, Engine, StackingEngine, resolve_engine
from grapheraser.training.inference.posteriors import shard_posteriors
from grapheraser.training.models import ShardModels
from grapheraser.training.task import (
    EarlyStopping,
    ShardTask,
    ShardWeights,
    TrainingConfig,
    digest_tensors,
    joined_digest,
    tensor_digests,
)
from grapheraser.training.training import Training

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
    "check_weights",
    "digest_tensors",
    "joined_digest",
    "resolve_engine",
    "shard_posteriors",
    "tensor_digests",
]
