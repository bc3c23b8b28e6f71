"""CollectionEraser: it learns, forgets, keeps and explains; collections are checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.eraser import load_eraser
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graphs import Collection, CollectionEraser
from tests.graphs.collections import collection_of, random_parts


@pytest.fixture(scope="module")
def fitted() -> CollectionEraser:
    return CollectionEraser().fit(collection_of(random_parts(120, seed=7), test=range(90, 120)))


def test_it_learns(fitted: CollectionEraser) -> None:
    share = np.bincount(fitted.collection_.y[90:]).max() / 30
    assert fitted.score() > share + 0.1
    assert fitted.predict_proba([3, 95]).sum(axis=1) == pytest.approx(1)


def test_new_graphs_are_judged_as_test_graphs_are(fitted: CollectionEraser) -> None:
    parts = random_parts(120, seed=7)[90:]
    asked = fitted.predict_proba_new(collection_of(parts))
    assert np.array_equal(asked, fitted.predict_proba(np.arange(90, 120)))
    assert np.array_equal(fitted.predict_new(collection_of(parts)), fitted.predict())


def test_a_run_is_kept_and_verified(tmp_path: Path) -> None:
    eraser = CollectionEraser().fit(collection_of(random_parts(60, seed=8)))
    receipt = eraser.unlearn(ge.Graphs([4, 9]))
    assert receipt.statement == "exact"
    eraser.save(tmp_path / "run")
    loaded = load_eraser(tmp_path / "run")
    assert isinstance(loaded, CollectionEraser)
    ids = loaded.collection_.ids
    assert np.array_equal(loaded.predict_proba(ids), eraser.predict_proba(ids))
    loaded.unlearn(ge.Graphs([11]))
    assert loaded.verify().identical


def test_an_explanation_names_graphs_alike_and_nodes_that_decide(fitted: CollectionEraser) -> None:
    said = fitted.explain(95)
    assert said.label == fitted.predict([95])[0]
    assert len(said.alike) == 5
    assert said.alike[0].similarity >= said.alike[-1].similarity
    small = fitted.collection_[95]
    assert said.nodes.keys() == set(small.nodes.tolist())
    assert said.to_svg().count("<circle") == len(small.nodes)


def test_a_graph_is_read_back_as_it_was_given() -> None:
    parts = random_parts(5, seed=9)
    for small, (labels, edges, _) in zip(collection_of(parts), parts, strict=True):
        assert np.array_equal(small.labels, labels)
        assert np.array_equal(small.edges, edges)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"edges": [(0, 3)]}, "joins two graphs"),
        ({"edges": [(0, 9)]}, "must name nodes from 0 to 4"),
        ({"node_offset": [0, 3, 2]}, "must not fall"),
        ({"node_label": [0.5, 1, 1, 1, 1]}, "whole numbers"),
        ({"node_label": [-1, 1, 1, 1, 1]}, "at least 0"),
        ({"x": np.full((5, 1), np.nan)}, "must be finite"),
        ({"edge_label": [1]}, "must have 2 entries"),
        ({"edges": [(0, 1), (1, 0)], "edge_label": [1, 2]}, "differ in what they carry"),
    ],
)
def test_a_collection_that_makes_no_sense_is_refused(wrong: dict[str, object], said: str) -> None:
    given = {"node_offset": [0, 3, 5], "edges": [(0, 1), (3, 4)], "y": [0, 1]} | wrong
    with pytest.raises(GraphError, match=said):
        Collection.from_arrays(**given)  # type: ignore[arg-type]


def test_a_graph_is_no_collection() -> None:
    with pytest.raises(ParameterError, match="must be a Collection"):
        CollectionEraser().fit(ge.load_dataset("demo"))  # type: ignore[arg-type]
