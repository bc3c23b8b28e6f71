"""Posteriors of trained shard models."""

from grapheraser.inference.posteriors import shard_posteriors
from grapheraser.inference.weights import check_weights

__all__ = ["check_weights", "shard_posteriors"]
