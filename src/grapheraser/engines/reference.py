"""The reference: how a shard is trained, in plain PyTorch and PyG.

Every other engine must agree with this one. It also trains a user's own modules.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import torch
import torch.nn.functional as F
from numpy.random.mtrand import get_bit_generator, set_bit_generator
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.arrays import AnyArray, Floats32, Ints, Ints32
from grapheraser.engines.batches import Batch, batches_of, edge_tensors
from grapheraser.engines.graph_checks import accepted
from grapheraser.engines.task import (
    ClassWeights,
    EarlyStopping,
    LossFunction,
    Reader,
    ShardTask,
    ShardWeights,
    TrainingConfig,
)
from grapheraser.errors import ParameterError
from grapheraser.graph import UNLABELLED
from grapheraser.models import CustomModel, Model, initial_weights
from grapheraser.models.modules import accept_few_rows, build_module
from grapheraser.seeding import derive

# The loss of scores ``[n, classes]`` and labels ``[n]``, some of which are `UNLABELLED`.
Objective: TypeAlias = Callable[[Tensor, Tensor], Tensor]
# PyTorch, NumPy and Python draw from one generator each per process, which a module may use: one
# shard at a time may own them.
_generators = threading.RLock()
_NUMPY = np.random.MT19937(0)  # takes the place of the caller's, which keeps its state
# Counters and constants of the built-in modules; they say nothing about the data.
_NO_WEIGHTS = ("num_batches_tracked", ".eps")


def train_shard(task: ShardTask, config: TrainingConfig, *, device: str = "cpu") -> ShardWeights:
    """Train one shard model on its own subgraph, full batch or by samples of neighbourhoods."""
    columns = task.columns(config.model)
    carried = edge_tensors(task.graph, device)
    num_classes = task.graph.num_classes
    kind = task.graph.label_kind
    if kind.is_classes:
        objective = objective_of(config, task.graph.y, num_classes)
    else:
        objective = target_objective(config, numbers=kind.is_numbers)
    with reproducible(task.seed):
        module = initial_module(task, config.model, columns).to(device)
        accept_few_rows(module)
        if isinstance(config.model, Reader):
            batches = config.model.batches(module, task, config, device)
        else:
            batches = batches_of(task, config, columns, accepted(module, carried), device)
        optimizer = optimizer_of(config, module)
        scheduler: Any = None if config.scheduler is None else config.scheduler(optimizer)
        stopping = None
        if config.early_stopping is not None and (held_out := batches.held_out()):
            stopping = Stopping(
                config.early_stopping, module, lambda: _loss(module, objective, held_out)
            )
        module.train()
        for epoch in range(config.epochs):
            for batch in batches.epoch(epoch):
                optimizer.zero_grad()
                scores = _scores(module, batch)
                _check_scores(scores, len(batch.y), num_classes)
                loss = objective(scores, batch.y)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if scheduler is not None:
                by_loss = isinstance(scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau)
                scheduler.step(*([loss.item()] if by_loss else []))
            if config.callback is not None:
                config.callback(epoch, module, loss.item())
            if stopping is not None and stopping.is_over():
                break
        if stopping is not None:
            stopping.restore()
    return ShardWeights(columns, tensors_of(module, config.model))


def _scores(module: nn.Module, batch: Batch) -> Tensor:
    scores: Tensor = module(batch.x, batch.edge_index, **batch.carried)
    return scores


def _loss(module: nn.Module, objective: Objective, batches: Sequence[Batch]) -> Tensor:
    """Return the loss over all of these batches."""
    scores = torch.cat([_scores(module, batch) for batch in batches])
    return objective(scores, torch.cat([batch.y for batch in batches]))


def _check_scores(scores: Tensor, count: int, num_classes: int) -> None:
    found = tuple(getattr(scores, "shape", ()))
    if found != (count, num_classes):
        raise ParameterError(
            f"the model must return [nodes, classes] = {(count, num_classes)}, or a row for each "
            f"graph of a batch. Got {found}."
        )


class Stopping:
    """Watches a loss on held-out nodes, in eval mode, and keeps the best weights."""

    def __init__(
        self, options: EarlyStopping, module: nn.Module, loss: Callable[[], Tensor]
    ) -> None:
        self._patience, self._module, self._loss = options.patience, module, loss
        self._least, self._waited = np.inf, 0
        self._best: dict[str, Tensor] | None = None

    def is_over(self) -> bool:
        """Look at the weights after an epoch; return whether it was the last."""
        self._module.eval()
        with torch.no_grad():
            loss = float(self._loss())
        self._module.train()
        if loss < self._least:
            self._least, self._waited = loss, 0
            state = self._module.state_dict()
            self._best = {name: value.detach().clone() for name, value in state.items()}
            return False
        self._waited += 1
        return self._waited >= self._patience

    def restore(self) -> None:
        """Put the best weights back."""
        if self._best is not None:
            self._module.load_state_dict(self._best)


def optimizer_of(config: TrainingConfig, module: nn.Module) -> torch.optim.Optimizer:
    """Make the optimiser of a module."""
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


def objective_of(config: TrainingConfig, labels: Ints, num_classes: int) -> Objective:
    """Make the loss of a shard with these labels."""
    if callable(config.loss):
        return _own_loss(config.loss)
    named = {"cross_entropy": F.cross_entropy, "nll": F.nll_loss}[config.loss]
    weight: Tensor | None = None
    if config.class_weights is not None:
        weight = torch.from_numpy(class_weights(config.class_weights, labels, num_classes))

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        there = None if weight is None else weight.to(scores.device)
        return named(scores, y, weight=there, ignore_index=UNLABELLED)

    return loss


def target_objective(config: TrainingConfig, *, numbers: bool) -> Objective:
    """Make the loss of a shard with several labels or numbers; NaN targets have no part in it."""
    if callable(config.loss):
        return _own_loss(config.loss)
    squared = F.huber_loss if config.loss == "huber" else F.mse_loss
    named = squared if numbers else F.binary_cross_entropy_with_logits

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        known = torch.nonzero(~torch.isnan(y.reshape(-1))).reshape(-1)
        return named(scores.reshape(-1)[known], y.reshape(-1)[known])

    return loss


def _own_loss(function: LossFunction) -> Objective:
    """Give a user's loss the labelled nodes only, and check what it returns."""

    def loss(scores: Tensor, y: Tensor) -> Tensor:
        known = (y != UNLABELLED) if y.ndim == 1 else ~torch.isnan(y).all(dim=1)
        labelled = torch.nonzero(known).reshape(-1)
        found = function(scores[labelled], y[labelled])
        if not isinstance(found, Tensor) or found.numel() != 1:
            shape = tuple(getattr(found, "shape", ()))
            raise ParameterError(
                "'loss' of Training must return one number as a tensor. It returned a "
                f"{type(found).__name__} of shape {shape}."
            )
        return found.reshape(())

    return loss


def class_weights(weights: ClassWeights, labels: Ints, num_classes: int) -> Floats32:
    """Return the weight of each class, from a shard's own labels where they are balanced.

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


def initial_module(task: ShardTask, model: Model, columns: Ints32) -> nn.Module:
    """Build the untrained module; its weights follow from the task's seed."""
    if isinstance(model, CustomModel):
        torch.manual_seed(derive(task.seed, "init"))
        return model.module_for(task.graph)
    num_features, num_classes = task.graph.num_features, task.graph.num_classes
    module = build_module(model, len(columns), num_classes)
    start = initial_weights(model, num_features, num_classes, columns, task.seed)
    # Training's own randomness starts here, whatever building the module has drawn.
    torch.manual_seed(derive(task.seed, "dropout"))
    load_tensors(module, start)
    return module


def tensors_of(module: nn.Module, model: Model) -> dict[str, NDArray[np.generic]]:
    """Return what a module has learned, by state-dict name; the whole state of a user's module."""
    skipped = () if isinstance(model, CustomModel) else _NO_WEIGHTS
    return {
        name: np.asarray(value.detach().cpu().numpy(), order="C")
        for name, value in module.state_dict().items()
        if not name.endswith(skipped)
    }


def load_tensors(module: nn.Module, tensors: Mapping[str, AnyArray]) -> nn.Module:
    """Put learned weights back into a module; counters and constants stay as they are."""
    state = module.state_dict()
    state.update({name: torch.from_numpy(np.array(value)) for name, value in tensors.items()})
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise ParameterError(
            f"the module ({type(module).__name__}) is not the one that was trained: {error}",
            hint="pass the factory that the run was fitted with.",
        ) from None
    return module


@contextmanager
def reproducible(seed: int) -> Iterator[None]:
    """Give torch one thread and seeded generators; put the caller's back afterwards.

    A shard is too small to gain from several threads, and the order of a sum must not depend on
    how many there are.
    """
    with _generators, torch.random.fork_rng(), _own_generators():
        # Looked up once it is our turn: before that, another shard may have set them.
        threads = torch.get_num_threads()
        deterministic = torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(seed)
        seed_modules(seed)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic)
            torch.set_num_threads(threads)


def seed_modules(seed: int) -> None:
    """Seed what a module may draw from beside PyTorch; only while these generators are ours."""
    np.random.seed(seed % 2**32)  # noqa: NPY002  modules use the global one
    random.seed(seed)


@contextmanager
def _own_generators() -> Iterator[None]:
    """Put NumPy's and Python's global generators back afterwards, as they were."""
    numpy, python = get_bit_generator(), random.getstate()
    set_bit_generator(_NUMPY)
    try:
        yield
    finally:
        set_bit_generator(numpy)
        random.setstate(python)
