"""The task of embedding nodes."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from grapheraser.checks import flag, real, whole
from grapheraser.embeddings.model import RowModel
from grapheraser.embeddings.votes import MAX_VOTES, WORD
from grapheraser.eraser.settings import Settings, closed_form
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import Question, Task
from grapheraser.errors import EmptyEnsembleError, GraphError, NothingToForgetError, ParameterError
from grapheraser.graph import (
    CONTEXT,
    TRAIN,
    UNLABELLED,
    AddNodes,
    Graph,
    Labels,
    Removal,
    SetLabels,
)
from grapheraser.graph.formats.pyg import check_data
from grapheraser.graph.labels import LabelKind
from grapheraser.kinds import EDGES, FEATURES, NODES

LEARNED = "learned"
_DEPTH = 6
_MAX_WIDTH, _MAX_DEPTH, _MAX_LANDMARKS = 2**14, 32, 2**20


class EmbeddingTask(Task):
    """Rows of nodes; labels and the split into training and test nodes have no part in them."""

    name = "embeddings"
    owner = "Embedder"
    predicts = "embeddings of nodes"
    takes_types = True
    kinds = (NODES.name, EDGES.name, FEATURES.name)
    predict = Question(
        "nodes",
        1,
        lambda eraser, nodes: eraser.transform(nodes),
        lambda graph, values: {"embeddings": values},
    )

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        del fitted_as
        steps = _steps(arguments["steps"])
        model = RowModel(
            width=whole("width", self.owner, arguments["width"], 2, _MAX_WIDTH),
            steps=steps,
            depth=_DEPTH if steps is None else len(steps),
            neighbours=whole("neighbours", self.owner, arguments["neighbours"], 1, MAX_VOTES),
            rarity=_rarity(arguments["landmarks"]),
            features=flag("features", self.owner, arguments["features"]),
        )
        return closed_form(model, seed=whole("seed", self.owner, arguments["seed"]))

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """Keep nodes, edges and features; every node that can is a training node of one class."""
        del settings
        graph = world if isinstance(world, Graph) else _from_pyg(world)
        if graph.num_nodes == 0:
            raise GraphError(f"graph '{graph.name}' has no nodes.")
        graph = _plain(graph)
        target = True if graph.types is None else graph.types.of(graph.ids) == 0
        return graph.with_fields(
            y=np.full(graph.num_nodes, np.where(target, 0, UNLABELLED), dtype=np.int64),
            role=np.full(graph.num_nodes, np.where(target, TRAIN, CONTEXT), dtype=np.int8),
            label_kind=LabelKind(count=1),
            inferred=tuple(item for item in graph.inferred if item != "classes"),
        )

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Refuse labels; new nodes are training nodes of one class."""
        if any(isinstance(part, Labels | SetLabels) for part in changes):
            raise NothingToForgetError(
                "an embedding run keeps no labels.",
                hint="forget the nodes, or their features or edges.",
            )
        types = now.state.graph.types
        own = None if types is None else types.target
        return [_unlabelled(part, own) if isinstance(part, AddNodes) else part for part in changes]

    def check_removal(self, graph: Graph, removal: Removal) -> None:
        """Refuse to take the last node."""
        if len(removal.nodes) == graph.num_nodes:
            raise _nobody_left(graph)

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a graph after changes that has no nodes."""
        if after.num_nodes == 0:
            raise _nobody_left(before)


def _nobody_left(graph: Graph) -> EmptyEnsembleError:
    return EmptyEnsembleError(
        f"the request takes the last {graph.num_nodes} nodes: there would be no row left.",
        hint="delete the run instead.",
    )


def _unlabelled(new: AddNodes, target: str | None) -> AddNodes:
    given = new.y != UNLABELLED
    if given.any():
        raise GraphError(
            f"'y' of AddNodes has no part in an embedding run (node {new.ids[given][0]} has one)."
        )
    labelled = new.type in (None, target)
    return new.labelled(np.zeros(len(new.ids), dtype=np.int64)) if labelled else new


def _steps(steps: Any) -> tuple[float, ...] | None:
    if isinstance(steps, str) and steps == LEARNED:
        return None
    wanted = f"'{LEARNED}', or the weights of 2 to {_MAX_DEPTH} steps, the last of them not 0"
    try:
        weights = tuple(real("steps", "Embedder", weight, -1e6, 1e6) for weight in steps)
    except (TypeError, ParameterError):
        raise ParameterError.of("steps", "Embedder", wanted, steps) from None
    if not 2 <= len(weights) <= _MAX_DEPTH or weights[-1] == 0:
        raise ParameterError.of("steps", "Embedder", wanted, steps)
    return weights


def _rarity(landmarks: Any) -> int:
    number = whole("landmarks", "Embedder", landmarks, 1, _MAX_LANDMARKS)
    rarity = int(math.log2(number))
    if 2**rarity != number:
        raise ParameterError.of("landmarks", "Embedder", "a power of 2", landmarks)
    assert rarity < WORD
    return rarity


def _plain(graph: Graph) -> Graph:
    """Return the graph with edges that carry nothing; say what is left out."""
    kind = graph.edge_kind
    if graph.types is not None:
        return graph  # what edges carry are their relations
    said = {"features": bool(kind.columns), "weights": kind.weighted, "directions": kind.directed}
    left_out = [name for name, there in said.items() if there]
    if not left_out:
        return graph
    note = f"embeddings are made without the {' and '.join(left_out)} of edges"
    warnings.warn(f"graph '{graph.name}': {note}.", stacklevel=6)
    plain = graph.without_edge_attr().without_weights().undirected()
    named: dict[str, Any] = {"name": graph.name, "inferred": graph.inferred}
    made = Graph.of_pages(plain.pages, plain.label_kind, notes=(*graph.notes, note), **named)
    return made.with_encoding(graph.encoding)


def _from_pyg(data: Any) -> Graph:
    """Read a PyG ``Data`` without its labels and masks."""
    check_data(data)
    bare = copy.copy(data)
    count = len(data.x) if getattr(data, "x", None) is not None else data.num_nodes
    bare.y = np.full(count, UNLABELLED)
    bare.train_mask = bare.val_mask = bare.test_mask = None
    return Graph.from_pyg(bare, num_classes=1)
