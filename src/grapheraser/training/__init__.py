"""The training stage: from isolated shards to shard models."""

from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig

__all__ = ["ShardTask", "ShardWeights", "TrainingConfig"]
