"""Surprises against counts by plain Python."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.aggregation.members import surprises
from grapheraser.aggregation.members.surprises import Surprises
from tests.aggregation.members.oracle import GRAPHS, ensemble_of, random_graph

FEW = random_graph(6, edges=30, classes=4)


def columns_of(graph: ge.Graph, node: int, *, asked: bool) -> tuple[list[set[int]], np.ndarray]:
    """The three sets of columns of a node, and the classes of its labelled neighbours."""
    x, f = graph.x.toarray(), graph.num_features
    trained = set(graph.train_nodes.tolist())
    near, around = np.zeros(graph.num_classes), set()
    for pair in graph.edges.tolist():
        for other in (set(pair) - {node}) if node in pair else ():
            at = int(graph.positions([other])[0])
            if other in trained and graph.y[at] >= 0:
                near[graph.y[at]] += 1
            if asked or other in trained:
                around |= {f + int(column) for column in np.flatnonzero(x[at])}
    own = {int(column) for column in np.flatnonzero(x[graph.positions([node])[0]])}
    return [own, around, {2 * f + int(k) for k in np.flatnonzero(near)}], near


def counted(graph: ge.Graph) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What each column is there for, what was expected, and the nodes of each class."""
    rows, c = 2 * graph.num_features + graph.num_classes, graph.num_classes
    there, labels, every = np.zeros((rows, c)), np.zeros((rows, c)), np.zeros(rows)
    sizes = np.zeros(c)
    for node in graph.train_nodes.tolist():
        label = graph.y[graph.positions([node])[0]]
        if label < 0:
            continue
        parts, near = columns_of(graph, node, asked=False)
        sizes[label] += 1
        for column in set().union(*parts):
            there[column, label] += 1
            labels[column] += near / (near.sum() + 0.2)
            every[column] += 0.2 / (near.sum() + 0.2)
    part, power = np.frexp(sizes + 1)
    shares = np.round(4 * part) * 2.0**power
    return there, labels + every[:, None] * shares / shares.sum(), sizes


@pytest.mark.parametrize("held_out", [False, True])
def test_evidence_is_what_is_there_over_what_labels_around_let_expect(
    held_out: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(surprises, "_AROUND", 64)
    graph, (there, expected, _) = FEW, counted(FEW)
    ensemble = ensemble_of(graph)
    known = [n for n in graph.train_nodes.tolist() if graph.y[graph.positions([n])[0]] >= 0]
    fitted = Surprises().fit(ensemble, np.array(known))
    nodes = known if held_out else graph.ids.tolist()
    positions = graph.positions(nodes)
    found = (
        fitted.held_out(ensemble, np.array(known))
        if held_out
        else fitted.evidence(ensemble, positions)
    )
    for row, node in enumerate(nodes):
        own = np.eye(graph.num_classes)[graph.y[positions[row]]] * held_out
        for part, columns in enumerate(columns_of(graph, node, asked=not held_out)[0]):
            said = np.zeros(graph.num_classes)
            for column in columns:
                said += np.log((there[column] - own + 1) / (expected[column] + 1))
            said /= max(len(columns), 1) ** 0.5
            np.testing.assert_allclose(found[row, part], said, atol=2e-3)


def test_labels_around_have_told_all_that_they_can() -> None:
    """A word that goes with the labels around is no surprise; one that goes against them is."""
    n = 400
    y = np.arange(n) // 2 % 2
    odd = np.arange(n) % 20 < 2
    y[odd] = 1 - y[odd]  # pairs of the other class, next to nodes of what was theirs
    x = np.stack([np.arange(n) // 2 % 2 == 0, np.arange(n) // 2 % 2 == 1, odd, y == 1], axis=1)
    ends = [(i, (i + 4) % n) for i in range(n)]
    graph = ge.Graph.from_arrays(x.astype(float), np.array(ends).T, y, test=[0], num_classes=2)
    fitted = Surprises().fit(ensemble_of(graph), graph.train_nodes)
    table = fitted.table.astype(float) / surprises._STEPS
    with_labels, against_them = np.abs(table[[0, 3], 0] - table[[0, 3], 1])
    assert with_labels < 0.5 < against_them


def test_sums_over_fewer_nodes_take_fewer_bits_after_a_request_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS["sparse"]
    monkeypatch.setattr(surprises, "_MOST", graph.num_train)
    eraser = ge.GraphEraser("closed-form", members=["surprises"]).fit(graph)
    assert eraser.aggregator_.tensors["surprises/expected by block"].dtype == np.int64
    eraser.unlearn(ge.Nodes(graph.train_nodes[:1]))
    assert eraser.aggregator_.tensors["surprises/expected by block"].dtype == np.int32
    assert eraser.verify().identical


def test_dense_features_and_hubs_are_counted_too() -> None:
    for name in ("dense", "hub"):
        graph = GRAPHS[name]
        fitted = Surprises().fit(ensemble_of(graph), graph.train_nodes[:5])
        found = fitted.evidence(ensemble_of(graph), np.arange(graph.num_nodes))
        assert np.isfinite(found).all()
        assert found.any()
