"""Embedder: rows of nodes that forget, and say which of them moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from grapheraser.checks import whole
from grapheraser.embeddings.changes import Changes
from grapheraser.embeddings.model import FittedRows, Rows
from grapheraser.embeddings.task import EmbeddingTask
from grapheraser.eraser.base import Eraser
from grapheraser.eraser.conventions import Estimator
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import AddNodes, Graph, edit_of
from grapheraser.graph.arrays import as_array
from grapheraser.graph.changes.edit import edited_pages
from grapheraser.graph.changes.updates import edges_both_ways

# Under this id nodes that are not in the graph choose which of their neighbours count.
_STRANGER = 2**63 - 1


class Embedder(Eraser):
    """Turns nodes into rows of numbers, and forgets nodes, edges and features exactly.

    Rows follow from the graph and from the arguments alone: nothing is centred, scaled or trained
    by the data, so a request moves the rows around what is forgotten and no other. Labels and the
    split into training and test nodes have no part in it. The constructor only stores its
    arguments; `fit` checks them.

    Args:
        width: columns of a row.
        steps: the weights of what is found after each step of a walk over neighbours; as many
            steps as weights. ``"learned"``: six steps, whose weights are learned from edges and
            other pairs, anew with every request, which then may move every row.
        features: whether features have a part in rows, where the graph has any.
        neighbours: how many neighbours of a node count in a step; keyed hashes choose them.
        landmarks: for each column one node in so many is a landmark; a power of 2.
        seed: every random number follows from it.

    Attributes:
        graph_: the current graph: nodes, edges and features.
        steps_: the weights of the steps.
        version_: how many changes led to the current rows; see `changes`.
        receipts_: one per change since the fit, oldest first.
        partition_: one part with all nodes.
        shards_: none.
        engine_: name of the engine, which has nothing to train.
    """

    task = EmbeddingTask()

    def __init__(
        self,
        width: int = 128,
        steps: Sequence[float] | str = (0, 0, 0, 1, 1, 1),
        features: bool = True,
        neighbours: int = 8,
        landmarks: int = 512,
        seed: int = 0,
    ) -> None:
        self.width = width
        self.steps = steps
        self.features = features
        self.neighbours = neighbours
        self.landmarks = landmarks
        self.seed = seed

    @property
    def steps_(self) -> tuple[float, ...]:
        return tuple(_fitted(self._snapshot).weights.tolist())

    @property
    def version_(self) -> int:
        return _fitted(self._snapshot).moved.version

    def fit(self, graph: Graph | Any, y: Any = None) -> Self:
        """Embed the nodes of a `Graph`, or of a PyG ``Data``; ``y`` is not read."""
        del y
        return self._fit(graph)

    def transform(self, nodes: ArrayLike) -> Rows:
        """Return the rows ``[len(nodes), width]`` of nodes, by id or name."""
        return _rows(self._snapshot, nodes)

    def fit_transform(self, graph: Graph | Any, y: Any = None) -> Rows:
        """Fit, and return the rows of all nodes in the order of their ids."""
        self.fit(graph, y)
        return self.transform(self.graph_.ids)

    def transform_new(
        self, x: ArrayLike | sp.sparray | None, neighbours: Sequence[ArrayLike]
    ) -> Rows:
        """Return the rows of nodes that are not in the graph, each by itself; nothing is kept.

        A row is what its neighbours, as they are now, say of it. Once the node is added, they see
        it as well, and the row may be another.

        Args:
            x: their features ``[m, num_features]``; None where the graph has no columns.
            neighbours: of each of them the ids of its neighbours, all of them in the graph.
        """
        return _new_rows(self._snapshot, x, neighbours)

    def changes(self, since: int | None = None, *, log: str | None = None) -> Changes:
        """Return the rows that moved after a version, as they are now; without one, all rows.

        Args:
            since: the version that an index has: `version_` of when it was filled, or ``version``
                of the changes that it took over last.
            log: the ``log`` of those; another one is refused, since its versions mean others.
        """
        now = self._snapshot
        if log is not None and log != now.ends.run:
            raise ParameterError(
                "the index was filled from another log than that of this run: versions of one "
                "mean nothing in the other.",
                hint="fill it again with changes(), which returns all rows.",
            )
        graph, moved = now.state.graph, _fitted(now).moved
        if since is None:
            nodes = graph.ids
        else:
            nodes = moved.since(whole("since", "Embedder.changes", since, 0))
        ids = graph.names_of(nodes) if graph.called_by_text else nodes
        return Changes(
            ids,
            since,
            moved.version,
            now.ends.run,
            graph,
            lambda part: _fitted(now).rows(graph, nodes[part], now.settings.seed),
        )

    def acknowledge(self, version: int) -> None:
        """Let go of which rows moved up to a version, once every index has taken them over.

        `changes` refuses earlier versions from then on. Save the run to let go of it on the disk.

        Args:
            version: the earliest that any index has.
        """
        with self._turn:
            now = self._snapshot
            fitted = _fitted(now)
            version = whole("version", "Embedder.acknowledge", version, 0)
            fresh: Any = replace(fitted, moved=fitted.moved.acknowledged(version))
            self._fitted = replace(now, state=replace(now.state, aggregator=fresh))

    def begin_log(self) -> None:
        """Begin a new log; versions are counted anew, and no index can follow from the old ones."""
        with self._turn:
            now = self._snapshot
            fresh: Any = _fitted(now).without_history()
            self._fitted = replace(now, state=replace(now.state, aggregator=fresh))
            super().begin_log()

    def on(self, graph: Graph | Any) -> NodeRows:
        """Return a transformer of node ids for a scikit-learn pipeline on one graph."""
        return NodeRows(self, graph)


class NodeRows(Estimator):
    """Rows of the nodes of one graph, as a step of a pipeline; made by `Embedder.on`.

    `fit` embeds the whole graph, whatever nodes it is given: a row needs no label.

    Args:
        embedder: the arguments to fit with; it is never fitted itself.
        graph: a `Graph`, or a PyG ``Data``.

    Attributes:
        embedder_: the fitted `Embedder`, which forgets as any other.
    """

    def __init__(self, embedder: Embedder, graph: Graph | Any) -> None:
        self.embedder = embedder
        self.graph = graph

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the arguments; with ``deep`` also the embedder's, under ``embedder__NAME``."""
        nested = self.embedder.get_params() if deep else {}
        return super().get_params() | {f"embedder__{name}": nested[name] for name in nested}

    def set_params(self, **params: Any) -> Self:
        """Change arguments, or with ``embedder__NAME`` those of the embedder."""
        for name in [name for name in params if name.startswith("embedder__")]:
            self.embedder.set_params(**{name.removeprefix("embedder__"): params.pop(name)})
        return super().set_params(**params)

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Embed the graph; ``X`` are node ids, and neither they nor ``y`` have a part in it."""
        del X, y
        self.embedder_ = Embedder(**self.embedder.get_params()).fit(self.graph)
        return self

    def transform(self, X: ArrayLike) -> Rows:
        """Return the rows of nodes, by id or name."""
        return self.embedder_.transform(np.asarray(X).reshape(-1))

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Rows:
        """Embed the graph, and return the rows of nodes."""
        return self.fit(X, y).transform(X)

    def __sklearn_is_fitted__(self) -> bool:
        return "embedder_" in self.__dict__


def _fitted(now: Snapshot) -> FittedRows:
    fitted = now.state.aggregator
    assert isinstance(fitted, FittedRows)
    return fitted


def _rows(now: Snapshot, nodes: ArrayLike) -> Rows:
    graph = now.state.graph
    return _fitted(now).rows(graph, graph.ids_of(nodes), now.settings.seed)


def _new_rows(
    now: Snapshot, x: ArrayLike | sp.sparray | None, neighbours: Sequence[ArrayLike]
) -> Rows:
    graph, near = now.state.graph, list(neighbours)
    if graph.types is not None:
        raise GraphError("transform_new is for graphs without types.", hint="update adds nodes.")
    given: Any = np.zeros((len(near), 0), dtype=np.float32) if x is None else x
    sparse = hasattr(given, "tocsr")
    rows: Any = given.tocsr() if sparse else as_array(given, "features")
    if rows.ndim != 2 or rows.shape[0] != len(near) or any(np.ndim(part) != 1 for part in near):
        raise ParameterError(
            "'x' and 'neighbours' of transform_new must have a row and a list for each node. "
            f"Got shape {list(rows.shape)} and {len(near)} lists.",
            hint="the neighbours of one node are a list in the list: [[3, 17]].",
        )
    edits = [
        edit_of(
            graph,
            AddNodes([_STRANGER], rows[[at]], **edges_both_ways(graph.edge_kind, _STRANGER, part)),
        )
        for at, part in enumerate(near)
    ]
    out = np.empty((len(near), now.arguments["width"]), dtype=np.float32)
    for at, edit in enumerate(edits):
        longer = graph.with_pages(edited_pages(graph.pages, edit))
        out[at] = _fitted(now).new_row(graph, longer, _STRANGER, now.settings.seed)
    return out
