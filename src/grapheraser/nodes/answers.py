"""Answers about the classes of nodes, from one snapshot."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from grapheraser.eraser.state import State
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph import Graph
from grapheraser.nodes.metrics import measured

# The largest block of posteriors held at once while predicting, in numbers.
_PREDICT_BLOCK = 32_000_000


def posteriors_at(state: State, positions: NDArray[np.int64]) -> NDArray[Any]:
    """Return posteriors, or numbers, ``[len(positions), num_classes]`` by position."""
    _refuse_other_types(state.graph, positions)
    classes, numbers = state.graph.num_classes, state.graph.label_kind.is_numbers
    block = max(1, _PREDICT_BLOCK // (max(1, len(state.shards)) * classes))
    parts = [
        state.aggregator.predict_proba(state.ensemble, positions[start : start + block])
        for start in range(0, len(positions), block)
    ]
    return (
        np.concatenate(parts)
        if parts
        else np.zeros((0, classes), np.float64 if numbers else np.float32)
    )


def _refuse_other_types(graph: Graph, positions: NDArray[np.int64]) -> None:
    """Refuse nodes of a typed graph that have no labels."""
    if graph.types is None:
        return
    ids = graph.ids_at(positions)
    others = ids[~are_predicted(graph, ids)]
    if len(others):
        (node,) = graph.names_of(others[:1])
        raise GraphError(f"only nodes of type '{graph.types.target}' are predicted (found {node}).")


def are_predicted(graph: Graph, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Mark the nodes that answers are about: all, or in a typed graph those of the target type."""
    if graph.types is None:
        return np.ones(len(ids), dtype=bool)
    return graph.types.of(ids) == 0


def outputs_of(graph: Graph, answers: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays of an answer: posteriors ``[m, num_classes]`` and the classes they say.

    Of several labels, how likely each is; of numbers, these.
    """
    kind = graph.label_kind
    if kind.is_numbers:
        return {"numbers": answers}
    if not kind.is_classes:
        return {"posteriors": answers}
    labels = answers.argmax(axis=1).astype(np.int64)
    names = graph.class_names or range(graph.num_classes)
    words = np.array([str(names[label]) for label in labels], dtype=object)
    return {"posteriors": answers, "classes": labels, "class_names": words}


def said_of(state: State, answers: NDArray[Any]) -> NDArray[Any]:
    """Return what `GraphEraser.predict` says: classes or their names, labels, or numbers."""
    kind = state.graph.label_kind
    if kind.is_numbers:
        return answers[:, 0] if kind.count == 1 else answers
    if not kind.is_classes:
        return (answers >= threshold_of(state)).astype(np.int8)
    return np.array(kind.names or range(kind.count))[answers.argmax(axis=1)]


def refuse_numbers(graph: Graph) -> None:
    """Refuse to say how likely numbers are."""
    if graph.label_kind.is_numbers:
        raise ParameterError(
            "numbers have no probabilities to predict.", hint="predict says the numbers."
        )


def scores(state: State, nodes: ArrayLike) -> dict[str, float]:
    """Return all scores on labelled nodes, by id; that of `GraphEraser.score` first."""
    graph = state.graph
    ids = graph.ids_of(nodes)
    answers = posteriors_at(state, graph.positions(ids))
    return measured(graph.label_kind, graph.labels(ids), answers, threshold_of(state))


def threshold_of(state: State) -> Any:
    """Return how likely one of several labels has to be to be said."""
    return np.float32(getattr(state.aggregator, "threshold", 0.5))
