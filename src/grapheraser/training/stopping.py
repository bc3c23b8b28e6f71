"""Early stopping: which nodes a shard holds out, and when it has learned enough.

All of it is a function of the shard's own nodes and its seed. Validation nodes of the graph have no
part in it: they may be forgotten without retraining anything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from grapheraser.graph import UNLABELLED
from grapheraser.kernels.hashing import keyed_uniform
from grapheraser.seeding import derive
from grapheraser.training.task import EarlyStopping, ShardTask


def held_out(task: ShardTask, share: float) -> NDArray[np.bool_]:
    """Which nodes of a shard are held out: a keyed hash of the id decides.

    Where that would be all labelled nodes, the one with the largest hash stays.
    """
    labelled = np.flatnonzero(task.graph.y != UNLABELLED)
    key = derive(task.seed, "held out")
    uniform = keyed_uniform(task.graph.ids[labelled], 1, key).reshape(-1)
    out = np.zeros(task.graph.num_nodes, dtype=bool)
    out[labelled] = uniform < share
    if len(labelled) and out[labelled].all():
        out[labelled[uniform.argmax()]] = False
    return out


class Stopping:
    """Watches the loss on held-out nodes and keeps the best weights.

    Args:
        options: patience.
        module: what is trained.
        loss: of the module on the held-out nodes, in eval mode.
    """

    def __init__(
        self, options: EarlyStopping, module: nn.Module, loss: Callable[[], Tensor]
    ) -> None:
        self._patience, self._module, self._loss = options.patience, module, loss
        self._least, self._waited = np.inf, 0
        self._best: dict[str, Tensor] | None = None

    def is_over(self) -> bool:
        """Look at the weights after an epoch; whether it was the last."""
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
