"""The CPU engine: sparse features, fused kernels, no Python inside of an epoch."""

from grapheraser.engines.cpu.train import train_shard, warm_up

__all__ = ["train_shard", "warm_up"]
