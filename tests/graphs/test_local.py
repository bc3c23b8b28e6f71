"""Local regression against the formula, and refits against fits."""

from __future__ import annotations

from typing import Any

import numpy as np

import grapheraser as ge
from grapheraser.graphs import CollectionEraser
from grapheraser.graphs.colours import BLOCKS, COLUMNS, SIZE, coloured
from grapheraser.graphs.local import MEMBERS, FittedLocal
from tests.graphs.collections import collection_of, random_parts


def dense(graph: Any) -> np.ndarray[Any, Any]:
    rows = coloured(graph, graph.places(graph.ids), 0)
    out = np.zeros((len(rows), COLUMNS))
    for row in range(len(rows)):
        part = slice(rows.pointers[row, 0], rows.pointers[row, -1])
        out[row, rows.columns[part]] = rows.values[part]
    return out


def local_of(eraser: CollectionEraser) -> FittedLocal:
    members: Any = eraser._snapshot.state.aggregator
    local: FittedLocal = members.members["local"]
    return local


def test_evidence_is_kernel_regression_on_the_nearest() -> None:
    collection = collection_of(random_parts(60, seed=3), test=np.arange(50, 60))
    eraser = CollectionEraser().fit(collection)
    graph = eraser.graph_
    found = local_of(eraser).evidence(eraser._snapshot.state.ensemble, np.arange(50, 60))
    rows, train = dense(graph), np.arange(50)
    sizes = np.log1p([len(small.nodes) for small in collection])
    targets = np.eye(2)[graph.y[train]] - 0.5
    for i, blocks in enumerate(MEMBERS.values()):
        similar = np.zeros((60, 60))
        for name in blocks:
            part = rows[:, BLOCKS.index(name) * SIZE :][:, :SIZE]
            similar += part @ part.T / len(blocks)
        kernel = np.exp(4.0 * (similar - 1.0) - 0.5 * (sizes[:, None] - sizes) ** 2)
        for at in range(50, 60):
            near = train[np.lexsort((train, -similar[at, train]))][:32]
            left = kernel[np.ix_(near, near)]
            np.fill_diagonal(left, 1.2)
            wanted = 8.0 * kernel[at, near] @ np.linalg.solve(left, targets[near])
            assert np.allclose(found[at - 50, i], wanted, atol=1e-4)


def test_what_is_kept_after_requests_is_what_a_fresh_fit_makes() -> None:
    """Lists of the nearest, shortened and filled up, must say what comparing all afresh says."""
    eraser = CollectionEraser(sample="all", references=70).fit(
        collection_of(random_parts(90, seed=4))
    )
    rng = np.random.default_rng(5)
    for _ in range(25):
        nodes = rng.choice(eraser.graph_.ids, 2, replace=False)
        eraser.unlearn(ge.Graphs(nodes))
        fresh = CollectionEraser(sample="all", references=70).fit(eraser.collection_)
        kept, made = local_of(eraser).judged, local_of(fresh).judged
        assert kept is not None
        assert made is not None
        assert np.array_equal(kept.near[:, :, :32], made.near[:, :, :32])
        assert kept.evidence.tobytes() == made.evidence.tobytes()
        ours, theirs = eraser._snapshot.state.tensors(), fresh._snapshot.state.tensors()
        for name, tensor in dict(ours).items():
            assert tensor.tobytes() == dict(theirs)[name].tobytes(), name
