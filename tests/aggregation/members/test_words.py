"""Words: naive Bayes that scikit-learn and plain Python agree with."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.naive_bayes import MultinomialNB

import grapheraser as ge
from grapheraser.aggregation.members import words as words_module
from grapheraser.aggregation.members.base import FLOOR
from grapheraser.aggregation.members.words import SMOOTHING, WordCounts, is_dense, log_prior
from tests.aggregation.members.oracle import GRAPHS, as_test_nodes, known, prior, random_graph


def counted(graph: ge.Graph) -> WordCounts:
    classes = np.bincount(list(known(graph).values()), minlength=graph.num_classes)
    return WordCounts.of(graph, classes)


def normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    top = scores.max(axis=1, keepdims=True)
    logs = scores - top - np.log(np.exp(scores - top).sum(axis=1, keepdims=True))
    found: NDArray[np.float64] = np.maximum(logs, FLOOR)
    return found


def presence(graph: ge.Graph, nodes: list[int], without: int | None = None) -> NDArray[np.float64]:
    """What scikit-learn says about nodes when one is not trained on; the prior still knows it."""
    x = (graph.x.toarray() != 0).astype(np.float64)
    rest = [(graph.positions([v])[0], y) for v, y in known(graph).items() if v != without]
    model = MultinomialNB(alpha=SMOOTHING, class_prior=prior(graph))
    rows, labels = [row for row, _ in rest], [y for _, y in rest]
    model.partial_fit(x[rows], labels, classes=np.arange(graph.num_classes))
    found: NDArray[np.float64] = model.predict_joint_log_proba(x[graph.positions(nodes)])
    return normalised(found)


def gaussian(graph: ge.Graph, node: int, *, held_out: bool) -> NDArray[np.float64]:
    """Gaussians in fixed point, class by class and column by column, by numpy."""
    values = np.clip(np.arcsinh(graph.x.toarray().astype(np.float64)), -16, 16)
    q = np.rint(values * 2**16)
    trained = known(graph)
    at = graph.positions(list(trained))
    mean_all, var_all = q[at].mean(axis=0), np.maximum(q[at].var(axis=0), 1.0)
    own, scores = q[graph.positions([node])[0]], np.log(prior(graph))
    for c in range(graph.num_classes):
        members = [v for v, y in trained.items() if y == c and not (held_out and v == node)]
        rows = q[graph.positions(members)]
        n = len(rows)
        spread = ((rows - rows.mean(axis=0)) ** 2).sum(axis=0) if n else 0.0
        mean = (rows.sum(axis=0) + mean_all) / (n + 1)
        var = (spread + 10 * var_all) / (n + 10)
        scores[c] -= 0.5 * ((own - mean) ** 2 / var + np.log(var)).sum()
    return normalised(scores[None])[0]


@pytest.mark.parametrize("kind", ["sparse", "hub", "no edges", "one class"])
def test_sparse_features_count_by_presence(kind: str) -> None:
    graph = GRAPHS[kind]
    counts = counted(graph)
    assert counts.sums is None
    found = counts.evidence(graph, graph.places(graph.ids), held_out=False)
    np.testing.assert_allclose(found, presence(graph, graph.ids.tolist()), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["sparse", "hub"])
def test_a_held_out_node_is_judged_without_its_own_words(kind: str) -> None:
    graph = GRAPHS[kind]
    nodes = list(known(graph))[:25]
    found = counted(graph).evidence(graph, graph.places(nodes), held_out=True)
    for row, node in zip(found, nodes, strict=True):
        expected = presence(graph, [node], without=node)[0]
        np.testing.assert_allclose(row, expected, rtol=1e-9, atol=1e-9)


def test_dense_features_are_gaussians() -> None:
    graph = GRAPHS["dense"]
    counts = counted(graph)
    assert counts.sums is not None
    found = counts.evidence(graph, graph.places(graph.ids), held_out=False)
    for row, node in zip(found, graph.ids.tolist(), strict=True):
        np.testing.assert_allclose(row, gaussian(graph, node, held_out=False), rtol=1e-6, atol=1e-6)
    nodes = list(known(graph))
    found = counts.evidence(graph, graph.places(nodes), held_out=True)
    for row, node in zip(found, nodes, strict=True):
        np.testing.assert_allclose(row, gaussian(graph, node, held_out=True), rtol=1e-6, atol=1e-6)


def test_sums_of_dense_features_are_whole_numbers_without_a_scale() -> None:
    x = np.array([[1e30, -1e30, 0.5], [1e-30, 4.0, -0.5], [3e38, 1.0, 1.0]])
    graph = ge.Graph.from_arrays(x, np.zeros((2, 0), int), [0, 1, 1])
    sums = counted(graph).sums
    assert sums is not None
    q = np.rint(np.clip(np.arcsinh(x.astype(np.float32).astype(np.float64)), -16, 16) * 2**16)
    for c, rows in enumerate((q[:1], q[1:])):
        assert sums[0, c].tolist() == rows.sum(axis=0).tolist()
        assert sums[1, c].tolist() == (rows**2).sum(axis=0).tolist()


def test_the_kind_of_features_follows_from_what_is_left() -> None:
    """Dense or sparse by a hair: each deletion may change which, there and back again."""
    graph = random_graph(3, n=30, num_features=4, density=0.52)
    counts, flips, was = counted(graph), 0, None
    for node in list(known(graph))[:-1]:
        after = graph.without(ge.Nodes([node]))
        touched = np.union1d(graph.neighbours(node), [node])
        fresh = counted(after)
        counts = counts.changed(graph, after, touched, fresh.classes)
        dense = 2 * int((counts.counts).sum()) > len(known(after)) * 4
        assert (counts.sums is not None) == (fresh.sums is not None) == dense
        assert counts.counts.tobytes() == fresh.counts.tobytes()
        if counts.sums is not None and fresh.sums is not None:
            assert counts.sums.tobytes() == fresh.sums.tobytes()
        flips += was is not None and was != dense
        graph, was = after, dense
    assert flips >= 2


def test_half_of_all_entries_is_not_dense_yet() -> None:
    classes = np.array([2, 2])
    counts = np.array([[1, 1], [2, 0]], dtype=np.int32)
    assert not is_dense(classes, counts)
    assert is_dense(classes, counts + np.array([[0, 0], [0, 1]], dtype=np.int32))
    assert not is_dense(0 * classes, 0 * counts)


def test_no_member_that_counts_is_ever_sure() -> None:
    x = np.eye(2)[np.arange(40) % 2].repeat(40, axis=1)[:, :79]
    x[:, ::2] = 0
    graph = ge.Graph.from_arrays(x, np.zeros((2, 0), int), np.arange(40) % 2)
    found = counted(graph).evidence(graph, graph.places(graph.ids), held_out=False)
    assert found.min() == FLOOR


def test_a_class_of_which_nobody_is_left_is_still_possible() -> None:
    graph = GRAPHS["sparse"]
    rest = as_test_nodes(graph, [v for v, y in known(graph).items() if y == 1])
    counts = counted(rest)
    found = counts.evidence(rest, rest.places(rest.ids), held_out=False)
    np.testing.assert_allclose(found, presence(rest, rest.ids.tolist()), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_prior(counts.classes)), prior(rest), rtol=1e-14)


def test_counts_beyond_the_kept_logarithms_give_the_same_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    graph = GRAPHS["sparse"]
    words, places = counted(graph), graph.places(graph.train_nodes)
    kept = words.evidence(graph, places, held_out=True)
    few = words_module._logs_left()[:1].copy()
    monkeypatch.setattr(words_module, "_logs_left", lambda: few)
    assert words.counts.max() > 1
    assert words.evidence(graph, places, held_out=True).tobytes() == kept.tobytes()


def test_a_dense_node_is_judged_alike_whoever_is_beside_it() -> None:
    graph = GRAPHS["dense"]
    words, places = counted(graph), graph.places(graph.train_nodes)
    together = words.evidence(graph, places, held_out=True)
    for size in (1, 3, 8, 9):
        parts = [places[at : at + size] for at in range(0, len(places), size)]
        apart = [words.evidence(graph, part.copy(), held_out=True) for part in parts]
        assert np.concatenate(apart).tobytes() == together.tobytes()
