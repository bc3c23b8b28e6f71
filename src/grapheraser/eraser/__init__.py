"""The eraser: fit, predict, unlearn, update, verify, recommend."""

from grapheraser.eraser.estimator import GraphEraser

__all__ = ["GraphEraser"]
