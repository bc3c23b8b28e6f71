"""How much the classes weigh in the loss."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from grapheraser.errors import ParameterError
from grapheraser.graph import UNLABELLED
from grapheraser.training.task import ClassWeights, TrainingConfig


def class_weights(
    weights: ClassWeights, labels: NDArray[np.int64], num_classes: int
) -> NDArray[np.float32]:
    """The weight of each class, from a shard's own labels where they are balanced.

    A balanced class weighs ``labelled / (classes that occur * its own nodes)``: the mean weight of
    the shard's labelled nodes is 1. Classes that don't occur weigh 1.
    """
    found = np.ones(num_classes, dtype=np.float32)
    if isinstance(weights, str):
        counts = np.bincount(labels[labels != UNLABELLED], minlength=num_classes)
        there = counts > 0
        found[there] = counts.sum() / (there.sum() * counts[there])
        return found
    pairs = [pair if isinstance(pair, tuple) else (c, pair) for c, pair in enumerate(weights)]
    for label, weight in pairs:
        found[label] = weight
    return found


def check_classes(config: TrainingConfig, num_classes: int) -> None:
    """Refuse weights of classes that the graph does not have."""
    weights = config.class_weights
    if weights is None or isinstance(weights, str):
        return
    by_class = [pair[0] for pair in weights if isinstance(pair, tuple)]
    if by_class and max(by_class) >= num_classes:
        wanted = f"weights of classes below {num_classes}, as the graph has them"
    elif not by_class and len(weights) != num_classes:
        wanted = f"{num_classes} weights, one for each class of the graph"
    else:
        return
    raise ParameterError.of("class_weights", "Training", wanted, weights)
