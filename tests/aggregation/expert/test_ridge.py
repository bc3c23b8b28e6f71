"""The global expert: a ridge regression that an independent one agrees with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import grapheraser as ge
import grapheraser.aggregation.expert.ridge as expert_module
from grapheraser.aggregation import Ensemble, Expert, MeanAggregator, WithExpert
from grapheraser.aggregation.expert.sketch import Sketch
from grapheraser.aggregation.expert.smoothing import (
    FIRST,
    OWN,
    OWN_APART,
    SCALE,
    SECOND,
    smoothed_rows,
)
from grapheraser.aggregation.with_expert import FittedWithExpert
from grapheraser.errors import ParameterError
from grapheraser.kernels.cholesky import solve_positive
from grapheraser.models import PRESETS
from grapheraser.seeding import derive
from tests.strategies import small_graph


def ensemble_of(graph: ge.Graph, seed: int = 0) -> Ensemble:
    partition = ge.partition_graph(graph, "hash", num_shards=1)
    return Ensemble(graph, partition, {}, PRESETS["gcn"], seed)


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)


def step(graph: ge.Graph, most: int, seed: int) -> NDArray[Any]:
    """The matrix of one step: a node and its first neighbours by hash, equally weighted."""
    S = np.eye(graph.num_nodes)
    key = derive(seed, "smoothing")
    for row, node in enumerate(graph.ids.tolist()):
        near = graph.neighbours(node).tolist()
        own = mixed(key, node)
        for other in sorted(near, key=lambda other: mixed(own, other))[:most]:
            S[row, graph.positions([other])] = 1.0
    return S / S.sum(axis=1, keepdims=True)


def mixed(a: int, b: int) -> int:
    """The hash of `thinning`, in Python's own integers."""
    whole = 2**64
    z = (a + b * 0x9E3779B97F4A7C15) % whole
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % whole
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % whole
    return z ^ (z >> 31)


def plain_rows(graph: ge.Graph, seed: int = 0) -> NDArray[Any]:
    """The rows by dense matrices, for features that need no projection."""
    first, second = step(graph, FIRST, seed), step(graph, SECOND, seed)
    x = unit(graph.x.toarray().astype(np.float64))
    return unit(OWN * x + unit(second @ (first @ x)))


def rows_apart(graph: ge.Graph, seed: int = 0) -> NDArray[Any]:
    """The same with a node's own features in columns of their own."""
    first, second = step(graph, FIRST, seed), step(graph, SECOND, seed)
    x = unit(graph.x.toarray().astype(np.float64))
    return unit(np.hstack([unit(second @ (first @ x)), OWN_APART * x]))


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("ties", [2, 12])
def test_rows_are_what_dense_matrices_give(ties: int, apart: bool) -> None:
    graph = small_graph(ties=ties)
    assert (graph.degree.max() > SECOND) == (ties > 2)
    everywhere = np.ones(graph.num_nodes, dtype=bool)
    sketch = Sketch.of(graph.num_features, 100, 0, apart=apart)
    assert sketch.width == graph.num_features * (1 + apart)
    rows, _ = smoothed_rows(sketch, graph, np.arange(graph.num_nodes), everywhere, 0)
    expected = rows_apart(graph) if apart else plain_rows(graph)
    np.testing.assert_allclose(rows / SCALE, expected, atol=1e-4)
    assert np.array_equal(rows, np.rint(rows))


def test_weights_and_posteriors_are_those_of_ridge_regression() -> None:
    graph = small_graph(n=60)
    training = graph.training_graph
    H, Y = plain_rows(training), np.eye(graph.num_classes)[training.y]
    weights = np.linalg.solve(H.T @ H + 1.0 * np.eye(H.shape[1]), H.T @ Y)
    fitted = Expert().fit(ensemble_of(graph))
    np.testing.assert_allclose(fitted.weights, weights, atol=1e-3)
    scores = np.exp(8.0 * plain_rows(graph) @ weights)
    found = fitted.predict_proba(ensemble_of(graph), np.arange(graph.num_nodes))
    np.testing.assert_allclose(found, scores / scores.sum(axis=1, keepdims=True), atol=1e-3)


def test_test_nodes_have_no_part_in_it() -> None:
    graph = small_graph()
    alone = Expert().fit(ensemble_of(graph.training_graph))
    for name, tensor in Expert().fit(ensemble_of(graph)).tensors.items():
        assert tensor.tobytes() == alone.tensors[name].tobytes()


def test_the_projection_depends_on_the_seed_and_nothing_else() -> None:
    first, again, other = (Sketch.of(50, 10, seed) for seed in (3, 3, 4))
    assert first.width == 10
    targets = first.around.targets
    assert np.array_equal(targets, again.around.targets)
    assert not np.array_equal(targets, other.around.targets)
    # A wider table of features starts with the same columns.
    assert np.array_equal(Sketch.of(80, 10, 3).around.targets[: len(targets)], targets)
    # A node's own features go their own way only where they are kept apart.
    assert first.own is first.around
    apart = Sketch.of(50, 10, 3, apart=True)
    assert np.array_equal(apart.around.targets, targets)
    assert not np.array_equal(apart.own.targets, targets)


def test_fewer_nodes_than_columns_are_enough() -> None:
    graph = small_graph(n=10, num_features=12)
    posteriors = Expert().fit(ensemble_of(graph)).predict_proba(ensemble_of(graph), np.arange(3))
    np.testing.assert_allclose(posteriors.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 47, 48, 49, 97, 150])
def test_the_solver_agrees_with_lapack(n: int) -> None:
    rng = np.random.default_rng(n)
    H = rng.normal(size=(n + 3, n))
    A, B = H.T @ H + np.eye(n), rng.normal(size=(n, 3))
    np.testing.assert_allclose(solve_positive(A, B), np.linalg.solve(A, B), rtol=1e-8, atol=1e-10)


def test_sgc_alone_forgets_without_training_anything() -> None:
    graph = ge.load_dataset("demo")
    eraser = ge.GraphEraser(model="sgc", num_shards=1).fit(graph)
    assert eraser.score(graph.test_nodes) > 1.5 / graph.num_classes
    receipt = eraser.unlearn(ge.Nodes(graph.train_nodes[:3].tolist()))
    assert receipt.statement == "exact"
    assert receipt.retrained == ()
    assert receipt.aggregation["relearned"] == ["expert.cross", "expert.gram", "expert.weights"]
    assert eraser.verify().differences == ()
    with pytest.raises(ParameterError, match=r"must be 1\. Got 20"):
        ge.GraphEraser(model="sgc", num_shards=20).fit(graph)


@pytest.mark.parametrize(
    "bad", [{"columns": 0}, {"columns": 2**16}, {"ridge": 0.0}, {"sharpness": -1.0}]
)
def test_bad_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        Expert(**bad)
    with pytest.raises(ParameterError, match="weight"):
        WithExpert(None, weight=1.5)


def test_options_of_the_expert_survive_saving(tmp_path: Any) -> None:
    graph = small_graph()
    rule = WithExpert(None, Expert(columns=5, ridge=2.0), weight=0.25)
    eraser = ge.GraphEraser(
        num_shards=3,
        epochs=2,
        aggregation=WithExpert(MeanAggregator(), rule.expert, rule.weight),
    ).fit(graph)
    eraser.save(tmp_path / "run")
    loaded = ge.GraphEraser.load(tmp_path / "run")
    assert loaded.predict_proba(graph.ids).tobytes() == eraser.predict_proba(graph.ids).tobytes()
    loaded.unlearn(ge.Nodes([int(graph.train_nodes[0])]))
    assert loaded.verify().differences == ()


@pytest.mark.parametrize(("model", "shards"), [("gcn", 2), ("sgc", 1)])
def test_a_wide_expert_is_asked_for_by_name_and_comes_back(
    model: str, shards: int, tmp_path: Path
) -> None:
    graph = small_graph()
    eraser = ge.GraphEraser(model=model, num_shards=shards, epochs=1, global_expert="wide")
    eraser.fit(graph).save(tmp_path / "run")
    again = ge.GraphEraser.load(tmp_path / "run")
    for one in (eraser, again):
        fitted = one.aggregator_.fitted
        assert isinstance(fitted, FittedWithExpert)
        assert fitted.rule.expert == Expert.wide()
        one.unlearn(ge.Nodes(graph.train_nodes[:1]))
        assert one.verify().identical
    probabilities = eraser.predict_proba(graph.test_nodes)
    assert probabilities.tobytes() == again.predict_proba(graph.test_nodes).tobytes()


@pytest.mark.parametrize("expert", ["narrow", 1, 1.0, 0, []], ids=repr)
def test_other_names_of_an_expert_are_refused(expert: Any) -> None:
    with pytest.raises(ParameterError, match="must be False, True or 'wide'"):
        ge.GraphEraser(global_expert=expert).fit(small_graph())


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = small_graph(n=60)
    ensemble = ensemble_of(graph)
    positions = np.arange(graph.num_nodes)
    whole = Expert().fit(ensemble)
    answers = whole.predict_proba(ensemble, positions)
    monkeypatch.setattr(expert_module, "_MOST_NUMBERS", 7 * graph.num_features)
    parts = Expert().fit(ensemble)
    for name, tensor in whole.tensors.items():
        assert tensor.tobytes() == parts.tensors[name].tobytes()
    assert parts.predict_proba(ensemble, positions).tobytes() == answers.tobytes()
