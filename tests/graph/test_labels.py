"""The kind of labels: chosen by type and shape, or said; kept by every way in and out."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import grapheraser as ge
from grapheraser.errors import GraphError, NothingToForgetError, ParameterError
from grapheraser.graph.labels import Frame, moments_of

EDGES = [[0, 1, 2], [1, 2, 3]]
X = np.eye(4)
SEVERAL = np.array([[1, 0], [0, 1], [-1, 1], [0, 0]])
NUMBERS = np.array([1.5, np.nan, -2.25, 1e3])


def graph(y: Any, **options: Any) -> ge.Graph:
    return ge.Graph.from_arrays(X, EDGES, y, each_edge_once=True, **options)


def same(found: NDArray[Any], expected: NDArray[Any]) -> bool:
    return np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize(
    ("y", "kind", "count"),
    [
        ([0, 1, 2, -1], "classes", 3),
        (SEVERAL, "several", 2),
        (SEVERAL == 1, "several", 2),
        ([{"a"}, {"b", "c"}, set(), None], "several", 3),
        (NUMBERS, "numbers", 1),
        (np.array([[0.5, 1.5]] * 4), "numbers", 2),
    ],
)
def test_type_and_shape_choose_the_kind(y: Any, kind: str, count: int) -> None:
    made = graph(y)
    assert (made.label_kind.name, made.num_classes) == (kind, count)


def test_a_choice_that_could_have_been_another_is_said() -> None:
    with pytest.warns(UserWarning, match="taken as numbers; labels='classes'"):
        assert graph(np.array([0.0, 1.0, 2.0, np.nan])).label_kind.is_numbers
    with pytest.warns(UserWarning, match="taken as several labels; labels='numbers'"):
        assert graph(SEVERAL.astype(float)).label_kind.name == "several"
    with pytest.warns(UserWarning, match="argmax"):
        graph(np.eye(2, dtype=int)[[0, 1, 0, 1]])
    said = graph(np.array([0.0, 1.0, 2.0, np.nan]), labels="classes")
    assert said.y.tolist() == [0, 1, 2, -1]


def test_sets_of_names_are_columns_and_none_is_not_known() -> None:
    made = graph([{"b"}, {"a", "b"}, None, set()])
    assert made.label_kind.names == ("a", "b")
    assert made.y.tolist() == [[0, 1], [1, 1], [-1, -1], [0, 0]]
    assert made.inferred == ("classes",)
    declared = graph([{"b"}, {"a"}, None, set()], target_names=["b", "a", "c"])
    assert declared.y.shape == (4, 3)
    assert declared.inferred == ()


@pytest.mark.parametrize("y", [SEVERAL, NUMBERS, np.array([[1e30, 5e-324]] * 4)])
def test_labels_come_back_from_pages_npz_and_pyg(y: Any, tmp_path: Path) -> None:
    made = graph(y)
    assert same(made.y, made.label_kind.decoded(*made.label_kind.encoded(made.y)))
    made.to_npz(tmp_path / "g.npz")
    assert ge.Graph.from_npz(tmp_path / "g.npz") == made
    assert ge.Graph.from_pyg(made.to_pyg(), labels=made.label_kind.name).label_kind == (
        made.label_kind
    )
    assert made.with_fields() == made


def test_one_number_and_words_come_back_from_tables() -> None:
    for y, kind in (
        (NUMBERS, "numbers"),
        (np.array([[1, 0], [0, 1], [1, 1], [-1, -1]]), "several"),
    ):
        made = graph(y, target_names=["p", "q"] if kind == "several" else None)
        nodes, edges = made.to_tables()
        names = ["p", "q"] if kind == "several" else None
        again = ge.Graph.from_tables(nodes, edges, labels=kind, target_names=names)
        assert same(again.y, made.y)
    with pytest.raises(GraphError, match="to_npz keeps"):
        graph(SEVERAL).to_tables()


def table(cells: list[Any], **options: Any) -> ge.Graph:
    ends = {"source": EDGES[0], "target": EDGES[1]}
    return ge.Graph.from_tables({"id": [0, 1, 2, 3], "label": cells}, ends, **options)


def test_cells_of_tables_are_lists_rows_of_numbers_or_text() -> None:
    several = [["a", "b"], {"b"}, None, "b; a"]
    assert table(several, labels="several").y.tolist() == [[1, 1], [0, 1], [-1, -1], [1, 1]]
    numbers = table(["1.5", "nan", "", -2], labels="numbers")
    assert same(numbers.y, np.array([1.5, np.nan, np.nan, -2]))
    rows = table([[1.0, 2], [3, 4], None, [5, 6]], labels="numbers")
    assert same(rows.y, np.array([[1, 2], [3, 4], [np.nan] * 2, [5, 6]]))
    with pytest.warns(UserWarning, match="labels='several' takes several words"):
        assert table(["a;b", "b", "a", ""]).num_classes == 3
    with pytest.raises(GraphError, match="row 1: column 'label' must be finite numbers"):
        table(["1", "many", "2", "3"], labels="numbers")
    with pytest.raises(ParameterError, match="separator"):
        table(["a", "b", "a", "b"], labels="several", separator="")


def test_sparse_rows_are_several_labels() -> None:
    assert graph(sp.csr_array(np.maximum(SEVERAL, 0))) == graph(np.maximum(SEVERAL, 0))


def test_minus_one_is_a_number_to_insert_and_none_is_no_label() -> None:
    made = graph(NUMBERS, label_range=2000.0)
    assert made.with_node(9, X[0], -1.0, [1]).labels([9]) == -1.0
    with pytest.raises(GraphError, match="need a label"):
        made.with_node(9, X[0], np.nan, [1])
    with pytest.raises(GraphError, match="found none for node 0"):
        graph(SEVERAL).updated([ge.SetLabels([0], [np.nan], target=0)])


def test_a_fingerprint_tells_kinds_and_values_apart() -> None:
    prints = {
        graph(y, labels=kind).fingerprint
        for y, kind in (
            (SEVERAL, "several"),
            (np.abs(SEVERAL), "several"),
            (SEVERAL.astype(float), "numbers"),
            ([0, 0, 0, 0], "classes"),
        )
    }
    assert len(prints) == 4


def test_one_target_is_set_and_forgotten_by_name_or_number() -> None:
    made = graph(SEVERAL, target_names=["p", "q"])
    changed = made.updated([ge.SetLabels([2, 3], [0, 1], target="p")])
    assert changed.labels([2, 3]).tolist() == [[0, 1], [1, 0]]
    left = changed.without(ge.Labels([2, (3, "q")], target=None))
    assert left.labels([2, 3]).tolist() == [[-1, -1], [1, -1]]
    assert left.roles([2, 3]).tolist() == [0, 1], "a node without any label is a context node"
    assert left == changed.without([ge.Labels([2]), ge.Labels([3], target=1)])
    bare = left.without(ge.Labels([3], target="p"))
    assert bare.roles([3]).tolist() == [0]
    for other in (changed, left, bare):
        assert other.with_fields().fingerprint == other.fingerprint


def test_bad_labels_are_refused_and_change_nothing() -> None:
    made = graph(SEVERAL)
    with pytest.raises(GraphError, match=r"0, 1, or -1 .*\(found 2\)"):
        graph([[0, 2]] * 4)
    with pytest.raises(GraphError, match="finite"):
        graph(np.array([1.0, np.inf, 0.0, 0.5]))
    with pytest.raises(ParameterError, match="'labels' of Graph"):
        graph(SEVERAL, labels="many")
    with pytest.raises(GraphError, match=r"the targets of this graph are 0, 1 \(found 'x'\)"):
        made.without(ge.Labels([1], target="x"))
    with pytest.raises(NothingToForgetError, match="no label '0' to forget"):
        made.without(ge.Labels([2], target=0))
    with pytest.raises(GraphError, match="2 targets of the graph"):
        made.updated([ge.AddNodes([9], X[:1], [[0, 1, 1]])])
    with pytest.raises(GraphError, match="one class"):
        graph([0, 1, 0, 1]).without(ge.Labels([1], target=0))
    with pytest.raises(GraphError, match="both changes and forgets"):
        made.updated([ge.SetLabels([0], [0], target=0), ge.Labels([0], target=0)])


def test_a_number_beyond_the_range_is_refused_with_what_declares_it() -> None:
    made = graph(NUMBERS, label_range=2000.0)
    assert made.inferred == ()
    assert graph(NUMBERS).inferred == ("range",)
    with pytest.raises(GraphError, match=r"at most 2048 in magnitude \(found 5000\)"):
        made.updated([ge.SetLabels([0], [5000.0])])
    tiny = graph(np.array([1e-9, 2e-9, np.nan, 0.5e-9]))
    assert tiny.updated([ge.SetLabels([0], [0.0])]).labels([0]) == 0.0
    with pytest.raises(GraphError, match=r"as label_range says \(found 1000\)"):
        graph(NUMBERS, label_range=10.0)


def test_a_number_that_hides_all_others_is_noted() -> None:
    with pytest.warns(UserWarning, match="most others are lost"):
        graph(np.array([1.5, 2.5, 3.5, 1e30]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        graph(np.array([0.0, 0.0, 0.0, 1.5]))  # zeros are not lost


def test_moments_are_exact_and_the_frame_is_theirs() -> None:
    rng = np.random.default_rng(0)
    steps = np.rint(rng.normal(2**23, 2**12, (500, 3)))
    steps[rng.random(steps.shape) < 0.2] = np.nan
    rest, some = steps[100:], steps[:100]
    assert np.array_equal(moments_of(steps) - moments_of(some), moments_of(rest))
    frame = Frame.of(moments_of(steps))
    assert np.allclose(frame.mean, np.nanmean(steps, axis=0))
    ratio = np.nanstd(steps, axis=0) / frame.spread
    assert ((ratio > 0.7) & (ratio < 1.5)).all()
    assert (np.abs(frame.centre - frame.mean) <= frame.spread / 4).all()


@pytest.mark.parametrize("bad", [(0.0, 1.0, 2.0, 3.0, 4.0), "much", [[1.0]]])
def test_a_range_of_another_shape_is_refused(bad: object) -> None:
    with pytest.raises(ParameterError, match="label_range"):
        graph(NUMBERS, label_range=bad)
