"""What the reference loop minimises, and with which optimiser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.errors import ParameterError
from grapheraser.graph import UNLABELLED
from grapheraser.training.task import ClassWeights, LossFunction, TrainingConfig

# The loss of scores ``[n, classes]`` and labels ``[n]``, some of which are `UNLABELLED`.
Objective: TypeAlias = Callable[[Tensor, Tensor], Tensor]


def optimizer_of(config: TrainingConfig, module: nn.Module) -> torch.optim.Optimizer:
    """A fresh optimiser for a module."""
    if callable(config.optimizer):
        made = config.optimizer(module.parameters())
        if not isinstance(made, torch.optim.Optimizer):
            raise ParameterError(
                "'optimizer' of Training must be a function from parameters to a "
                f"torch.optim.Optimizer. It returned a {type(made).__name__}."
            )
        return made
    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    rates = {"lr": config.model.lr, "weight_decay": config.model.weight_decay}
    return kinds[config.optimizer](module.parameters(), **rates)


def objective_of(config: TrainingConfig, labels: NDArray[np.int64], num_classes: int) -> Objective:
    """The loss of a shard with these labels."""
    if callable(config.loss):
        return _own(config.loss)
    named = {"cross_entropy": F.cross_entropy, "nll": F.nll_loss}[config.loss]
    weight: Tensor | None = None
    if config.class_weights is not None:
        weight = torch.from_numpy(class_weights(config.class_weights, labels, num_classes))

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        there = None if weight is None else weight.to(scores.device)
        return named(scores, y, weight=there, ignore_index=UNLABELLED)

    return loss


def _own(function: LossFunction) -> Objective:
    def loss(scores: Tensor, y: Tensor) -> Tensor:
        labelled = torch.nonzero(y != UNLABELLED).reshape(-1)
        found = function(scores[labelled], y[labelled])
        if not isinstance(found, Tensor) or found.numel() != 1:
            shape = tuple(getattr(found, "shape", ()))
            raise ParameterError(
                "'loss' of Training must return one number as a tensor. It returned a "
                f"{type(found).__name__} of shape {shape}."
            )
        return found.reshape(())

    return loss


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
    if isinstance(weights[0], tuple):
        largest = max(label for label, _ in weights)  # type: ignore[misc]
        if largest >= num_classes:
            wanted = f"weights of classes below {num_classes}, as the graph has them"
            raise ParameterError.of("class_weights", "Training", wanted, dict(weights))  # type: ignore[arg-type]
    elif len(weights) != num_classes:
        wanted = f"{num_classes} weights, one for each class of the graph"
        raise ParameterError.of("class_weights", "Training", wanted, weights)
