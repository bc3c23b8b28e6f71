"""Methods that may enter the arena: whatever has three calls, of ours or of anybody.

A method fits what it is given, answers with probabilities, and forgets. What it answers for follows
from its ``task``: ``nodes`` or ``graphs`` (ids; ``[m, classes]``), ``links`` (pairs; ``[m]``),
``recommendation`` (users; ``[m, items]``, in the order of ids) or ``embeddings`` (ids; rows
``[m, width]``). It is never asked about what it has forgotten. It may also have ``exact = True``,
where it claims the bits of a fresh fit; ``tensors()``, what it learned, by name; and a parameter
``seed`` of its constructor.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.embeddings import Embedder
from grapheraser.eraser import Eraser
from grapheraser.errors import ParameterError
from grapheraser.graph import Features, Graph
from grapheraser.graph.changes.sides import Items
from grapheraser.graphs import CollectionEraser
from grapheraser.links import LinkEraser
from grapheraser.nodes import GraphEraser
from grapheraser.recommendation import Recommender
from grapheraser.registry import import_part
from grapheraser_lab.arena.worlds import Taken, numbers
from grapheraser_lab.rivals.gcn import View, train
from grapheraser_lab.rivals.methods import (
    CLOSED,
    DEFAULT,
    GNNDELETE,
    MEGU,
    METHODS,
    OWN_EPOCHS,
    Method,
    Peer,
    Request,
    Trained,
)

CALLS = ("fit", "predict_proba", "unlearn")
_FINE_TUNING = "fine-tuning"
_EPOCHS = 20


class FineTuned(Trained):
    """Some more epochs on what is left, from the weights that were there."""

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        """See `Trained`."""
        parts = learned_from.inputs, self.graph.num_classes, self.seed, self.everybody
        weights = train(*parts, epochs=_EPOCHS, start=self.weights)
        return self.moved(view, learned_from, weights=weights)


_RIVALS = {name: method for name, method in METHODS.items() if name not in (DEFAULT, CLOSED)} | {
    _FINE_TUNING: Method(
        f"fine-tuning, {_EPOCHS} epochs", "none: old weights go on", FineTuned.fit, exact=False
    )
}

_WITHOUT_FEATURES = (GNNDELETE, OWN_EPOCHS, MEGU)


class Rival:
    """A method of the comparison with peers, behind the three calls."""

    def __init__(self, method: str, seed: int = 0) -> None:
        self.method, self.seed = method, seed
        self.exact = _RIVALS[method].exact
        self._peer: Peer | None = None

    @property
    def _fitted(self) -> Peer:
        assert self._peer is not None
        return self._peer

    def fit(self, graph: Graph) -> Rival:
        """Train from the seed, with settings as they are by default."""
        self._peer = _RIVALS[self.method].fitted(graph.name, graph, self.seed, {})
        return self

    def predict_proba(self, nodes: ArrayLike) -> NDArray[Any]:
        """Answer on the graph that is left."""
        peer = self._fitted
        return peer.answers(View(peer.graph), np.asarray(nodes, dtype=np.int64))

    def unlearn(self, request: Any) -> None:
        """Forget as the method does."""
        if isinstance(request, Features) and self.method in _WITHOUT_FEATURES:
            raise ParameterError(f"{self.method}, as it is here, forgets nodes and edges.")
        self._peer = self._fitted.forget(request)

    def retrained(self) -> Rival:
        """Train on what is left, with the same random draws and in the same partition."""
        fresh = Rival(self.method, self.seed)
        fresh._peer = self._fitted.retrained()
        return fresh

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """Return all that was learned."""
        return self._fitted.tensors()


class Recommending:
    """Our recommender behind the three calls: users are answered with shares of all items."""

    task = "recommendation"
    exact = True

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, taken: Taken) -> Recommending:
        """Learn who took what."""
        table = dict(zip(("user", "item"), taken.pairs.T, strict=True))
        self.eraser = Recommender(seed=self.seed).fit(table, users=taken.users, items=taken.items)
        self.items = taken.items
        return self

    def predict_proba(self, users: ArrayLike) -> NDArray[Any]:
        """Return the shares of scores ``[len(users), items]``."""
        count = self.eraser.num_items_
        found: Any = self.eraser.recommend(users, count, exclude_seen=False, return_scores=True)
        best, scores = found
        shares = np.zeros((len(best), count))
        np.put_along_axis(shares, np.searchsorted(self.items, best), scores, axis=1)
        return shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-30)

    def unlearn(self, request: Any) -> None:
        """Forget users, items or interactions."""
        self.eraser.unlearn(request)
        if isinstance(request, Items):
            self.items = np.setdiff1d(self.items, numbers(request.ids))

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """Return all that was learned."""
        return dict(self.eraser._snapshot.state.aggregator.tensors)


class Embedding(Embedder):
    """Our embedder behind the three calls: nodes are answered with their rows."""

    def predict_proba(self, nodes: ArrayLike) -> NDArray[Any]:
        """Return the rows ``[len(nodes), width]``."""
        return self.transform(nodes)


# Rows by name. Those of the comparison with peers have the names that they have there.
ROWS: dict[str, Callable[..., Any]] = {
    DEFAULT: GraphEraser,
    CLOSED: partial(GraphEraser, model="closed-form"),
    **{name: partial(Rival, name) for name in _RIVALS},
    "links": LinkEraser,
    "graphs": CollectionEraser,
    "recommendation": Recommending,
    "embeddings": Embedding,
}


def method_of(name: str) -> Callable[..., Any]:
    """Return what makes a row of that name, or import ``package.module:Class``."""
    if name in ROWS:
        return ROWS[name]
    if ":" not in name:
        raise ParameterError(
            f"unknown method '{name}'. Choose from: {', '.join(ROWS)}; or package.module:Class."
        )
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    method: Callable[..., Any] = import_part(name, "a method of the arena")
    for call in CALLS:
        if not hasattr(method, call):
            raise ParameterError(f"{name} has no '{call}', which the arena calls.")
    return method


def made(method: Callable[..., Any], seed: int) -> Any:
    """Return a method that is not fitted; with the seed where its constructor takes one."""
    takes = "seed" in inspect.signature(method).parameters
    return method(seed=seed) if takes else method()


def task_of(method: Callable[..., Any]) -> str:
    """Return the name of the task that a method is for."""
    cls = method.func if isinstance(method, partial) else method
    task = getattr(cls, "task", "nodes")
    return str(getattr(task, "name", task))


def claims_exactness(method: Any) -> bool:
    """Tell whether a fitted method claims to have the bits of a fresh fit.

    Erasers that are exact given a partition don't: the fresh fit partitions anew.
    """
    if isinstance(method, Eraser):
        return "partition" not in str(method.exactness_["statement"])
    return bool(getattr(method, "exact", False))


def learned(method: Any) -> Mapping[str, NDArray[Any]] | None:
    """Return what a fitted method learned, by name, where it shows it."""
    if isinstance(method, Eraser):
        weights = {
            f"shard {shard}/{name}": tensor
            for shard, model in method.shards_.items()
            for name, tensor in model.tensors.items()
        }
        return weights | dict(method._snapshot.state.aggregator.tensors)
    return method.tensors() if hasattr(method, "tensors") else None
