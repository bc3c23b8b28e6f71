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
from grapheraser.training.class_weights import class_weights
from grapheraser.training.task import LossFunction, TrainingConfig

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
