"""The CPU engine: sparse features, fused kernels, no Python inside of an epoch."""

from grapheraser.training.cpu.phase import train_phase
from grapheraser.training.cpu.train import train_shard, train_shards, warm_up

__all__ = ["train_phase", "train_shard", "train_shards", "warm_up"]
