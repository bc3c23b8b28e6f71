"""The reference: how a shard is trained, in plain PyTorch and PyG.

Every other engine must agree with this one. It also trains a user's own modules.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.errors import ParameterError
from grapheraser.models import CustomModel, Model, initial_weights
from grapheraser.models.modules import accept_few_rows, build_module
from grapheraser.seeding import derive
from grapheraser.training.batches import Batch, batches_of
from grapheraser.training.edge_arguments import edge_tensors, taken
from grapheraser.training.objective import Objective, objective_of, optimizer_of
from grapheraser.training.stopping import Stopping
from grapheraser.training.task import ShardTask, ShardWeights, TrainingConfig

# PyTorch draws dropout masks from one generator per process: one shard at a time may own it.
_torch_generator = threading.RLock()
# Counters and constants of the built-in modules; they say nothing about the data.
_NO_WEIGHTS = ("num_batches_tracked", ".eps")


def train_shard(task: ShardTask, config: TrainingConfig, *, device: str = "cpu") -> ShardWeights:
    """Train one shard model on its own subgraph, full batch or by samples of neighbourhoods."""
    columns = task.columns(config.model)
    carried = edge_tensors(task.graph, device)
    num_classes = task.graph.num_classes
    objective = objective_of(config, task.graph.y, num_classes)
    with reproducible(task.seed):
        module = initial_module(task, config.model, columns).to(device)
        accept_few_rows(module)
        batches = batches_of(task, config, columns, taken(module, carried), device)
        optimizer = optimizer_of(config, module)
        stopping = None
        if config.early_stopping is not None and (kept_back := batches.held_out()):
            stopping = Stopping(
                config.early_stopping, module, lambda: _loss(module, objective, kept_back)
            )
        module.train()
        for epoch in range(config.epochs):
            for batch in batches.epoch(epoch):
                optimizer.zero_grad()
                scores = _scores(module, batch)
                _check_scores(scores, len(batch.x), num_classes)
                loss = objective(scores, batch.y)
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
            if stopping is not None and stopping.is_over():
                break
        if stopping is not None:
            stopping.restore()
    return ShardWeights(columns, tensors_of(module, config.model))


def _scores(module: nn.Module, batch: Batch) -> Tensor:
    scores: Tensor = module(batch.x, batch.edge_index, **batch.carried)
    return scores


def _loss(module: nn.Module, objective: Objective, batches: Sequence[Batch]) -> Tensor:
    """The loss over all of these batches."""
    scores = torch.cat([_scores(module, batch) for batch in batches])
    return objective(scores, torch.cat([batch.y for batch in batches]))


def _check_scores(scores: Tensor, num_nodes: int, num_classes: int) -> None:
    found = tuple(getattr(scores, "shape", ()))
    if found != (num_nodes, num_classes):
        raise ParameterError(
            f"the model must return [nodes, classes] = {(num_nodes, num_classes)}. Got {found}."
        )


def initial_module(task: ShardTask, model: Model, columns: NDArray[np.int32]) -> nn.Module:
    """The untrained module; its weights follow from the task's seed."""
    num_features, num_classes = task.graph.num_features, task.graph.num_classes
    if isinstance(model, CustomModel):
        torch.manual_seed(derive(task.seed, "init"))
        return model.factory(num_features, num_classes)
    module = build_module(model, len(columns), num_classes)
    start = initial_weights(model, num_features, num_classes, columns, task.seed)
    # Training's own randomness starts here, whatever building the module has drawn.
    torch.manual_seed(derive(task.seed, "dropout"))
    load_tensors(module, start)
    return module


def tensors_of(module: nn.Module, model: Model) -> dict[str, NDArray[np.generic]]:
    """All that the module has learned, by state-dict name; of a user's module all that there is."""
    skipped = () if isinstance(model, CustomModel) else _NO_WEIGHTS
    return {
        name: np.asarray(value.detach().cpu().numpy(), order="C")
        for name, value in module.state_dict().items()
        if not name.endswith(skipped)
    }


def load_tensors(module: nn.Module, tensors: Mapping[str, NDArray[Any]]) -> nn.Module:
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
    """One thread and a generator state of our own; the caller's are put back afterwards.

    A shard is too small to gain from several threads, and the order of a sum must not depend on
    how many there are.
    """
    with _torch_generator, torch.random.fork_rng():
        # Looked up once it is our turn: before that, another shard may have set them.
        threads = torch.get_num_threads()
        deterministic = torch.are_deterministic_algorithms_enabled()
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        torch.manual_seed(seed)
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(deterministic)
            torch.set_num_threads(threads)
