"""Several labels and numbers: answers, scores, refusals."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.metrics import f1_score, mean_absolute_error, r2_score, roc_auc_score
from sklearn.model_selection import cross_val_score

import grapheraser as ge
from grapheraser.aggregation.pooled import FittedPool
from grapheraser.engines import TrainingConfig
from grapheraser.engines.engine import CudaEngine
from grapheraser.eraser.settings import Settings
from grapheraser.errors import GraphError, ParameterError
from grapheraser.models import ModelSpec
from grapheraser.nodes.metrics import measured
from grapheraser.nodes.targets import engine_for
from grapheraser.receipts import Part
from tests.property.test_targets import World, fitted


def of(kind: str, **arguments: Any) -> ge.GraphEraser:
    return fitted(World.of(kind, 5, nodes=200), **arguments)


def test_scores_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    several = ge.graph.labels.LabelKind("several", 3)
    labels = rng.integers(0, 2, (80, 3)).astype(np.int8)
    said = rng.random((80, 3)).round(1).astype(np.float32)
    found = measured(several, labels, said)
    assert found["f1"] == pytest.approx(f1_score(labels, said >= 0.5, average="micro"))
    assert found["auc"] == pytest.approx(roc_auc_score(labels, said))
    numbers = ge.graph.labels.LabelKind("numbers", 2, exponents=(3, 3))
    true, guess = rng.normal(size=(2, 80, 2))
    found = measured(numbers, true, guess)
    assert found["r2"] == pytest.approx(r2_score(true, guess))
    assert found["mae"] == pytest.approx(mean_absolute_error(true, guess))


def test_unknown_targets_have_no_part_in_scores() -> None:
    kind = ge.graph.labels.LabelKind("several", 2)
    labels = np.array([[1, -1], [0, 1], [1, 0]], dtype=np.int8)
    said = np.array([[0.9, 0.9], [0.1, 0.8], [0.7, 0.2]], dtype=np.float32)
    assert measured(kind, labels, said)["f1"] == 1.0


def test_several_labels_are_learned_and_answered() -> None:
    eraser = of("several")
    nodes = eraser.graph_.test_nodes
    shares = eraser.predict_proba(nodes)
    assert shares.shape == (len(nodes), 3)
    assert ((shares > 0) & (shares < 1)).all()
    threshold = eraser.aggregator_.fitted.threshold  # type: ignore[attr-defined]
    assert np.array_equal(eraser.predict(nodes), shares >= np.float32(threshold))
    assert eraser.score(nodes) == eraser.evaluate(nodes)["f1"] > 0.5
    assert eraser.evaluate(nodes)["auc"] > 0.7
    assert eraser.target_names_ == ("0", "1", "2")
    assert is_classifier(eraser)
    new = eraser.predict_new(np.ones((2, 8)), [[3, 4], []])
    assert new.shape == (2, 3)


def test_numbers_are_learned_and_answered() -> None:
    eraser = of("one number")
    nodes = eraser.graph_.test_nodes
    assert eraser.predict(nodes).shape == (len(nodes),)
    assert eraser.score(nodes) == pytest.approx(
        r2_score(eraser.graph_.labels(nodes), eraser.predict(nodes))
    )
    assert eraser.score(nodes) > 0.2
    assert is_regressor(eraser)
    assert not hasattr(eraser, "classes_")
    with pytest.raises(ParameterError, match="numbers have no probabilities"):
        eraser.predict_proba(nodes)
    assert of("numbers").predict(nodes).shape == (len(nodes), 2)


def test_scorers_of_scikit_learn_take_an_eraser_that_is_bound_to_numbers() -> None:
    graph = of("one number").graph_
    bound = ge.GraphEraser("closed-form").on(graph)
    assert is_regressor(bound)
    nodes, scores = graph.train_nodes, dict[str, Any]()
    for scoring in ("r2", None):
        scores[str(scoring)] = cross_val_score(bound, nodes, graph.labels(nodes), scoring=scoring)
    np.testing.assert_allclose(scores["r2"], scores["None"])
    assert is_classifier(ge.GraphEraser("closed-form").on(of("several").graph_))


def test_a_target_without_a_name_is_called_as_it_is_shown() -> None:
    eraser = ge.GraphEraser("closed-form").fit(of("several").graph_)
    node = next(n for n in eraser.graph_.train_nodes if eraser.graph_.labels([n])[0, 2] >= 0)
    eraser.unlearn(ge.Labels([node], target=eraser.target_names_[2]))
    assert eraser.graph_.labels([node])[0, 2] == -1


@pytest.mark.parametrize(
    "y",
    [
        np.full(30, 3.5),
        np.where(np.arange(30) == 4, 1e30, 1.0),
        np.arange(30) * 5e-324,
        np.arange(30) * 1e300,
    ],
)
def test_extreme_numbers_have_finite_answers(y: Any) -> None:
    edges = [np.arange(29), np.arange(1, 30)]
    with np.errstate(all="raise", under="ignore"):
        declared = {"labels": "numbers", "label_range": 2 * y.max() + 1e-323}
        graph = ge.Graph.from_arrays(np.eye(30), edges, y, **declared)
        eraser = ge.GraphEraser("closed-form").fit(graph)
        eraser.unlearn(ge.Nodes([7]))
        answers = eraser.predict(eraser.graph_.ids)
    assert np.isfinite(answers).all()
    assert eraser.verify().identical
    if (y == y[0]).all():
        assert np.allclose(answers, y[0])


@pytest.mark.parametrize("positive", [0, 1])
def test_a_label_of_no_or_one_positive_node_is_learned(positive: int) -> None:
    y = np.zeros((30, 2), dtype=int)
    y[:positive, 0], y[::2, 1] = 1, 1
    graph = ge.Graph.from_arrays(np.eye(30), [np.arange(29), np.arange(1, 30)], y)
    eraser = ge.GraphEraser("closed-form").fit(graph)
    assert eraser.predict_proba(graph.ids)[:, 0].mean() < 0.2
    eraser.unlearn(ge.Nodes([0]))
    assert eraser.verify().identical


def test_labels_that_are_all_unknown_are_refused() -> None:
    graph = ge.Graph.from_arrays(np.eye(3), [[0, 1], [1, 2]], np.full((3, 2), -1))
    with pytest.raises(GraphError, match="no training nodes"):
        ge.GraphEraser("closed-form").fit(graph)


def test_what_takes_classes_alone_says_so(tmp_path: Path) -> None:
    world = World.of("several", 5)
    graph = world.graph()
    with pytest.raises(ParameterError, match="among pattern, features"):
        ge.GraphEraser("closed-form", members=["words"]).fit(graph)
    with pytest.raises(GraphError, match="recommend takes graphs whose nodes have classes"):
        ge.recommend(graph)
    with pytest.raises(GraphError, match="combines classes"):
        ge.GraphEraser("mlp", aggregation="mean", num_shards=2).fit(graph)
    config = TrainingConfig(ModelSpec("mlp"))
    stacked = cast(Settings, SimpleNamespace(engine=CudaEngine(), training=config, device="cpu"))
    with pytest.raises(ParameterError, match="engine 'cuda' learns classes"):
        engine_for({"engine": "cuda"}, stacked, graph)
    with pytest.warns(UserWarning, match="engine 'pyg', the reference loop, trains this run"):
        assert engine_for({"engine": "auto"}, stacked, graph).name == "pyg"
    eraser = fitted(world)
    with pytest.raises(GraphError, match="export takes"):
        eraser.export(tmp_path / "out")


def test_words_are_no_numbers_and_a_node_without_words_has_no_cell() -> None:
    eraser = fitted(World.of("one number", 5))
    words: Any = [{"art"}]
    with pytest.raises(GraphError, match=r"must be numbers \(found sets of words\)"):
        eraser.update([ge.SetLabels([7], words)])
    none_of_both = ge.Graph.from_arrays(np.eye(3), [[0], [1]], [[0, 0], [1, 1], [0, 1]])
    with pytest.raises(GraphError, match="an empty one is not known"):
        none_of_both.to_tables()


def test_whole_numbers_of_pandas_with_gaps_are_classes() -> None:
    pandas = pytest.importorskip("pandas")
    for values, dtype in (([0, None, 1], "Int64"), ([False, None, True], "boolean")):
        given = pandas.Series(values, dtype=dtype)
        for y in (given, given.array):
            graph = ge.Graph.from_arrays(np.eye(3), [[0], [1]], y)
            assert graph.label_kind.is_classes
            assert graph.y.tolist() == [0, -1, 1]


@pytest.mark.parametrize("kind", ["several", "numbers"])
def test_each_target_is_explained_by_its_members(kind: str) -> None:
    eraser = fitted(World.of(kind, 5))
    graph, pool = eraser.graph_, eraser.aggregator_.fitted
    assert isinstance(pool, FittedPool)
    for node in graph.ids[:12].tolist():
        for number, name in enumerate(graph.label_kind.target_names):
            said = eraser.explain(node, name)
            assert said == eraser.explain(node, number)
            assert said.target == name
            assert said.label == pytest.approx(float(eraser.predict([node]).reshape(-1)[number]))
            weights = [member.weight for member in said.members]
            assert weights == sorted(weights, reverse=True)
            assert sum(weights) == pytest.approx(1 if weights else 0)
            if kind == "numbers":
                assert said.label == pytest.approx(by_hand(eraser, node, number), abs=1e-6)
    assert eraser.explain(3) == eraser.explain(3, 0)
    with pytest.raises(GraphError, match="the targets of this graph are"):
        eraser.explain(3, "none")


def by_hand(eraser: ge.GraphEraser, node: int, number: int) -> float:
    """A number from what the explanation says of its members: their weighted sum, and the offset.

    Weights of an explanation are shares, and the sum is one about the target's centre.
    """
    graph, pool = eraser.graph_, eraser.aggregator_.fitted
    assert isinstance(pool, FittedPool)
    said = eraser.explain(node, number)
    kind, frame = graph.label_kind, graph.label_frame
    offsets = pool.learned.offsets.reshape(2, -1)
    quiet = {member.member for member in said.members} < {*pool.weights}
    for which in (0, 1) if quiet else (0,):
        weights = pool.learned.members[which, :, number]
        centre, spread = (
            float(kind.values(part)[number]) for part in (frame.centre, frame.centre + frame.spread)
        )
        spread -= centre
        parts = [m.weight * weights.sum() * (m.confidence - centre) for m in said.members]
        total = centre + sum(parts) + spread * float(offsets[which, number])
        if total == pytest.approx(said.label, abs=1e-6):
            return total
    return float("nan")


def test_numbers_declared_are_exact_and_found_ones_given_schema() -> None:
    y = np.linspace(0, 1, 30)
    for declared, statement in ((2.0, "exact"), (None, "exact given schema")):
        graph = ge.Graph.from_arrays(
            np.eye(30), [np.arange(29), np.arange(1, 30)], y, label_range=declared
        )
        receipt = ge.GraphEraser("closed-form").fit(graph).unlearn(ge.Nodes([7]))
        assert receipt.statement == statement


def test_a_frame_that_moves_is_said_in_the_receipt() -> None:
    y = np.r_[np.linspace(0, 1, 29), 900.0]
    edges = [np.arange(29), np.arange(1, 30)]
    graph = ge.Graph.from_arrays(np.eye(30), edges, y, label_range=1000.0)
    eraser = ge.GraphEraser("closed-form").fit(graph)
    receipt = eraser.unlearn(ge.Nodes([29]))
    assert any("spread" in note for note in receipt.aggregation["notes"])
    assert eraser.verify().identical


def test_the_example_of_the_page_runs() -> None:
    page = Path(__file__).parents[2] / "docs" / "targets.md"
    code = page.read_text().split("```python\n")[1].split("```")[0]
    exec(compile(code, str(page), "exec"), {})


@pytest.mark.parametrize("named", [False, True])
def test_receipts_about_one_target_can_be_read_back(named: bool) -> None:
    y = np.array([[0, 1], [1, 0], [1, 1], [0, 0]] * 3)
    ids = [f"n{node}" for node in range(12)] if named else list(range(12))
    x = np.eye(12, dtype=np.float32)
    edges = np.array([[ids[node] for node in range(11)], [ids[node + 1] for node in range(11)]])
    graph = ge.Graph.from_arrays(x, edges, y, ids=ids)
    eraser = ge.GraphEraser("closed-form").fit(graph)
    receipts = [
        eraser.unlearn(ge.Labels([ids[5]], target=1)),
        eraser.update(ge.SetLabels([ids[6]], [1], target=0)),
        eraser.unlearn(ge.Labels([ids[7]])),
    ]
    for receipt in receipts:
        assert receipt.parts
        for part in receipt.parts:
            assert Part.from_json(part.to_json()).about == part.about
