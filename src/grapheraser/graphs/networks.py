"""Networks over whole graphs as shard models: GNNs whose nodes are read out, in batches.

The reference loop trains them as it trains modules of one's own: which graphs share a batch follows
from the shard's seed, the epoch and the ids of graphs. A module of one's own has a ``forward(x,
edge_index, batch)``, and takes ``edge_attr`` where it names it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from grapheraser.engines import ShardTask, ShardWeights, TrainingConfig
from grapheraser.graph import UNLABELLED, Graph
from grapheraser.graphs.reading import Read, width_of
from grapheraser.models import CustomModel, Model, ModelSpec
from grapheraser.seeding import derive, keyed_hash

if TYPE_CHECKING:
    from torch import nn

    from grapheraser.engines.batches import Batch

READOUTS = ("sum", "mean", "max")
# Graphs in a batch, and graphs that are judged at a time.
BATCH, _JUDGED = 64, 512

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class GraphModel(CustomModel):
    """A network that reads whole graphs.

    Attributes:
        kind: the built-in model under the readout; empty for a module of one's own.
        readout: how nodes become a graph: sum, mean or max.
    """

    kind: str = ""
    readout: str = ""

    @classmethod
    def of(cls, model: Model, readout: str) -> Self:
        """Return a built-in model with a readout, or a module of one's own."""
        if isinstance(model, CustomModel):
            return cls(model.factory, model.lr, model.weight_decay)
        made = partial(_network, spec=model, readout=readout)
        return cls(made, model.lr, model.weight_decay, kind=model.name, readout=readout)

    @property
    def is_own(self) -> bool:
        return not self.kind

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.readout}" if self.kind else super().name

    def columns(self, graph: Graph) -> NDArray[np.int32]:
        """Return no columns: rows are read as a whole."""
        del graph
        return np.zeros(0, dtype=np.int32)

    def module_for(self, graph: Graph) -> nn.Module:
        """Build the untrained module."""
        return self.factory(width_of(graph), graph.num_classes)

    def batches(
        self, module: nn.Module, task: ShardTask, config: TrainingConfig, device: str
    ) -> _Batches:
        """Return the batches of the reference loop."""
        return _Batches(module, task, config, device)

    def posteriors(
        self, weights: Sequence[ShardWeights], graph: Graph, positions: Ids
    ) -> NDArray[np.float32]:
        """Return what shards say ``[len(weights), len(positions), num_classes]``.

        As of a module of one's own, the last bits may depend on what is asked for beside it.
        """
        import torch

        from grapheraser.engines.reference import load_tensors, reproducible

        out = np.empty((len(weights), len(positions), graph.num_classes), dtype=np.float32)
        read = Read.of(graph, graph.places_at(positions))
        with reproducible(0), torch.no_grad():
            for shard, learned in enumerate(weights):
                module = load_tensors(self.module_for(graph), learned.tensors).eval()
                for at in range(0, len(positions), _JUDGED):
                    some = np.arange(at, min(at + _JUDGED, len(positions)))
                    x, edge_index, carried = _tensors(module, read, some, "cpu")
                    scores = module(x, edge_index, **carried)
                    classes = graph.label_kind.is_classes
                    out[shard, some] = torch.softmax(scores, 1) if classes else scores
        return out


def _network(columns: int, outputs: int, *, spec: ModelSpec, readout: str) -> nn.Module:
    from grapheraser.graphs.modules import GraphNetwork

    return GraphNetwork(spec, readout, columns, outputs)


def _tensors(module: nn.Module, read: Read, graphs: Ids, device: str) -> tuple[Any, Any, Any]:
    """Return ``x``, ``edge_index``, and what else the module takes of some graphs, by name."""
    import torch

    from grapheraser.engines.graph_checks import accepted

    x, edge_index, owner, attr = (
        torch.from_numpy(np.ascontiguousarray(part)).to(device) for part in read.taken(graphs)
    )
    carried: Mapping[str, Any] = accepted(module, {"batch": owner, "edge_attr": attr})
    return x, edge_index, carried


class _Batches:
    """Batches of labelled graphs, in an order of each epoch's own."""

    def __init__(
        self, module: nn.Module, task: ShardTask, config: TrainingConfig, device: str
    ) -> None:
        from grapheraser.engines.batches import targets_of

        graph = task.graph
        self._module, self._seed, self._ids, self._device = module, task.seed, graph.ids, device
        self._read = Read.of(graph, graph.places(graph.ids))
        self._y, self._kept_back = targets_of(task, config)

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch, all of about the same size."""
        learned = _known(self._y)
        key = derive(self._seed, "batches", number)
        shuffled = learned[np.argsort(keyed_hash(self._ids[learned], key), kind="stable")]
        for some in np.array_split(shuffled, -(-len(shuffled) // BATCH)):
            yield self._batch(some, self._y)

    def held_out(self) -> list[Batch]:
        """Return batches with the held-out labels, the same in every epoch; [] without any."""
        known = None if self._kept_back is None else _known(self._kept_back)
        return [] if known is None else [self._batch(known, self._kept_back)]

    def _batch(self, graphs: Ids, y: Any) -> Batch:
        import torch

        from grapheraser.engines.batches import Batch

        tensors = _tensors(self._module, self._read, graphs, self._device)
        return Batch(*tensors, torch.from_numpy(y[graphs]).to(self._device))


def _known(y: NDArray[Any]) -> Ids:
    """Return which rows of labels say anything."""
    return np.flatnonzero(y != UNLABELLED if y.ndim == 1 else ~np.isnan(y).all(axis=1))
