"""scikit-learn splits, searches and scores the nodes of a graph."""

from __future__ import annotations

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import NotFittedError, ParameterError

selection = pytest.importorskip("sklearn.model_selection")


@pytest.fixture
def closed(small: ge.Graph) -> ge.GraphEraser:
    return ge.GraphEraser(model="closed-form")


def test_each_fold_is_a_fit_with_the_other_folds_alone(
    small: ge.Graph, closed: ge.GraphEraser
) -> None:
    nodes, folds = small.train_nodes, selection.KFold(3)
    found = selection.cross_val_score(closed.on(small), nodes, cv=folds)
    expected = []
    for train, test in folds.split(nodes):
        alone = ge.Graph.from_arrays(
            small.x,
            small.edges.T,
            small.y,
            ids=small.ids,
            train=nodes[train],
            test=np.setdiff1d(small.ids, nodes[train]),
            num_classes=small.num_classes,
            each_edge_once=True,
        )
        expected.append(ge.GraphEraser(model="closed-form").fit(alone).score(nodes[test]))
    assert found.tolist() == expected


def test_what_is_bound_to_a_graph_can_be_shown(small: ge.Graph, closed: ge.GraphEraser) -> None:
    bound = closed.on(small)
    assert "eraser=GraphEraser(model='closed-form')" in repr(bound)
    assert "OnGraph" in repr(selection.GridSearchCV(bound, {"eraser__seed": [0, 1]}))


def test_other_scorers_and_searches_work(small: ge.Graph) -> None:
    nodes, y = small.train_nodes, small.labels(small.train_nodes)
    eraser = ge.GraphEraser(num_shards=2, epochs=1)
    macro = selection.cross_val_score(eraser.on(small), nodes, y, scoring="f1_macro", cv=2)
    assert ((macro >= 0) & (macro <= 1)).all()
    search = selection.GridSearchCV(
        eraser.on(small), {"eraser__num_shards": [1, 2]}, scoring="neg_log_loss", cv=2
    )
    search.fit(nodes, y)
    best = search.best_estimator_.eraser_
    assert best.num_shards == search.best_params_["eraser__num_shards"]
    assert best.unlearn(ge.Nodes(nodes[:1])).statement == "exact"
    assert eraser.num_shards == 2  # what was bound is left as it is


def test_it_is_a_classifier_with_nested_parameters(small: ge.Graph, closed: ge.GraphEraser) -> None:
    from sklearn.base import clone, is_classifier

    bound = closed.on(small)
    assert is_classifier(bound)
    copy = clone(bound).set_params(eraser__seed=7)
    assert (copy.eraser.seed, closed.seed) == (7, 0)
    with pytest.raises(NotFittedError):
        _ = bound.eraser_
    with pytest.raises(ParameterError, match="no parameter 'sede'"):
        bound.set_params(eraser__sede=1)


def test_without_nodes_the_test_nodes_are_meant(small: ge.Graph, closed: ge.GraphEraser) -> None:
    closed.fit(small)
    assert closed.predict().tolist() == closed.predict(small.test_nodes).tolist()
    assert closed.score() == closed.score(small.labelled_test_nodes)


def test_predictions_are_words_where_classes_are(small: ge.Graph) -> None:
    words = np.array(["red", "green", "blue"])
    named = ge.Graph.from_arrays(
        small.x, small.edges.T, words[small.y], ids=small.ids, each_edge_once=True
    )
    eraser = ge.GraphEraser(model="closed-form").fit(named)
    assert set(eraser.classes_) == set(words)
    posteriors = eraser.predict_proba(named.ids)
    assert eraser.predict(named.ids).tolist() == [
        eraser.classes_[k] for k in posteriors.argmax(axis=1)
    ]
    new = eraser.predict_new(small.x[:1], [small.ids[1:3]])
    assert new[0] in words
