"""Columns of tables become features by a rule that the graph keeps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import GraphError, ParameterError
from grapheraser.graph.encoding import Encoding

EDGES = {"source": [1, 2, 3], "target": [2, 3, 4]}
NAN = math.nan


class NAType:
    """As much of pandas' NA as is needed of one: it can't be compared."""

    def __eq__(self, other: object) -> Any:
        return self

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")


NA = NAType()


def graph_of(missing: Any = None, categories: Any = None, **columns: Any) -> ge.Graph:
    nodes = {"id": [1, 2, 3, 4], "label": [0, 1, 0, 1], **columns}
    options = {"missing": missing, "categories": categories, "num_classes": 2}
    return ge.Graph.from_tables(nodes, EDGES, **options)


def rows(graph: ge.Graph) -> list[list[float]]:
    found: list[list[float]] = graph.x.toarray().tolist()
    return found


@pytest.mark.parametrize(
    ("cells", "missing", "expected"),
    [
        ([True, False, True, True], None, [[1], [0], [1], [1]]),
        (["True", "false", "TRUE", "False"], None, [[1], [0], [1], [0]]),
        ([np.True_, np.False_, NA, np.True_], "zero", [[1], [0], [0], [1]]),
        ([3, NA, 5, 4], "zero", [[3], [0], [5], [4]]),
        ([3, None, 5, NAN], "indicator", [[3, 0], [0, 1], [5, 0], [0, 1]]),
        (["3", "", "5", "4"], "mean", [[3, 0], [4, 1], [5, 0], [4, 0]]),
        ([True, NA, False, False], "mean", [[1, 0], [np.float32(1 / 3), 1], [0, 0], [0, 0]]),
        ([NA, NA, None, NAN], "mean", [[0, 1], [0, 1], [0, 1], [0, 1]]),
        (["b", "a", "b", "c"], None, [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]),
        (["b", "", "b", "a"], "mean", [[0, 1, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0]]),
        ([[1, 2], None, [3, 4], [5, 0]], "mean", [[1, 2, 0], [3, 2, 1], [3, 4, 0], [5, 0, 0]]),
    ],
)
def test_cells_become_features(cells: Any, missing: Any, expected: Any) -> None:
    assert rows(graph_of(missing, f=cells)) == expected


def test_a_rule_by_column_declares_where_gaps_may_be() -> None:
    graph = graph_of({"a": "indicator"}, a=[1, 2, 3, 4], b=[5, 6, 7, 8])
    assert rows(graph) == [[1, 0, 5], [2, 0, 6], [3, 0, 7], [4, 0, 8]]
    with pytest.raises(GraphError, match="column 'b' must be finite numbers"):
        graph_of({"a": "indicator"}, a=[1, 2, 3, 4], b=[5, None, 7, 8])


@pytest.mark.parametrize(
    ("columns", "options", "inferred"),
    [
        ({"f": [1, 2, 3, 4]}, {}, ()),
        ({"f": [True, False, True, True]}, {}, ()),
        ({"f": [1, 2, 3, 4]}, {"missing": "mean"}, ()),
        ({"f": [1, NA, 3, 4]}, {"missing": "zero"}, ()),
        ({"f": [1, NA, 3, 4]}, {"missing": "mean"}, ("gaps",)),
        ({"f": [1, NA, 3, 4]}, {"missing": {"f": "mean"}}, ()),
        ({"f": ["a", "b", "a", "b"]}, {}, ("categories",)),
        ({"f": ["a", "b", "a", "b"]}, {"categories": {"f": ["a", "b"]}}, ()),
        ({"f": [1, 2, 1, 2]}, {"categories": {"f": [1, 2, 3]}}, ()),
    ],
)
def test_what_the_cells_decided_is_schema(columns: Any, options: Any, inferred: Any) -> None:
    graph = graph_of(**options, **columns)
    assert graph.inferred == inferred
    statement = ge.GraphEraser("closed-form").fit(graph).exactness_["statement"]
    assert statement == ("exact given schema" if inferred else "exact")


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        ({"f": [1, NA, 3, 4]}, r"row 1: column 'f' .*found nothing", "missing='mean'"),
        ({"f": ["1", "2", "x", "4"]}, r"row 2: column 'f' .*found 'x'", "categories="),
        ({"f": [1, 2, 3, 1j]}, r"row 3: column 'f'", "make numbers of the column"),
        ({"f": ["a", "b", "a", "c"], "categories": {"f": ["a", "b"]}}, "row 3.*'c'", "declare all"),
    ],
)
def test_a_bad_cell_is_named_with_what_to_do(options: Any, message: str, hint: str) -> None:
    with pytest.raises(GraphError, match=message) as caught:
        graph_of(**options)
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("option", [{"missing": "median"}, {"missing": {"g": "zero"}}])
def test_a_rule_is_one_of_three_for_a_column_that_is_there(option: Any) -> None:
    with pytest.raises(ParameterError, match=r"^'missing'"):
        graph_of(f=[1, 2, 3, 4], **option)


def test_words_without_end_are_no_categories() -> None:
    many = [f"word {number}" for number in range(1001)]
    nodes = {"id": list(range(1001)), "f": many}
    with pytest.raises(GraphError, match="1001 different words"):
        ge.Graph.from_tables(nodes, {"source": [0], "target": [1]})


COLUMNS: Any = {"age": [3, NA, 5, 4], "town": ["b", "a", "b", "a"]}


@pytest.fixture
def eraser() -> ge.GraphEraser:
    return ge.GraphEraser("closed-form").fit(graph_of("mean", **COLUMNS))


def test_the_rule_stays_with_graphs_files_and_runs(tmp_path: Path, eraser: ge.GraphEraser) -> None:
    graph = eraser.graph_
    eraser.save(tmp_path / "run")
    graph.to_npz(tmp_path / "graph.npz")
    others = [
        ge.GraphEraser.load(tmp_path / "run").graph_,
        ge.Graph.from_npz(tmp_path / "graph.npz"),
        graph.without(ge.Nodes([1])),
        graph.subgraph([1, 2]),
        ge.LinkEraser().fit(graph).graph_,
    ]
    assert graph.encoding is not None
    assert all(other.encoding == graph.encoding for other in others)
    assert Encoding.of_list(graph.encoding.to_list()) == graph.encoding


def test_new_nodes_are_encoded_as_the_others_were(eraser: ge.GraphEraser) -> None:
    table = {"age": [None, 5], "town": ["b", "a"]}
    by_hand = [[4, 1, 0, 1], [5, 0, 1, 0]]  # the mean of 3, 5 and 4; a column each for a and b
    near = [[1], [2, 3]]
    assert eraser.predict_proba_new(table, near).tolist() == (
        eraser.predict_proba_new(by_hand, near).tolist()
    )
    with pytest.raises(GraphError, match="row 0: column 'town' must be one of the categories a, b"):
        eraser.predict_new({"age": [1], "town": ["c"]}, [[1]])
    with pytest.raises(GraphError, match="column 'city' is none of age, town"):
        eraser.predict_new({"age": [1], "city": ["a"]}, [[1]])
    with pytest.raises(GraphError, match="there is no column 'town'"):
        eraser.predict_new({"age": [1]}, [[1]])


def test_updates_are_encoded_and_every_gap_follows(eraser: ge.GraphEraser) -> None:
    new = ge.AddNodes([9], {"age": [16], "town": ["a"]}, [1], [(9, 1)])
    receipt = eraser.update([new, ge.SetFeatures([1], {"age": [None], "town": ["b"]})])
    # 5, 4 and 16 are known
    mean = np.float32(25 / 3)
    expected = [[mean, 1, 0, 1], [mean, 1, 1, 0], [5, 0, 0, 1], [4, 0, 1, 0], [16, 0, 1, 0]]
    assert rows(eraser.graph_) == expected
    assert (receipt.counts["added_nodes"], receipt.counts["set_features"]) == (1, 1)
    assert eraser.verify().identical


def test_numbers_with_gaps_can_come_as_an_array_or_as_json() -> None:
    from grapheraser.graph.changes.kinds import changes_of

    graph = graph_of("mean", a=[1, None, 3, 2], b=[1, 2, 3, 4])
    expected = [2, 1, 7]
    for x in ([[None, 7]], [[NAN, 7]], np.array([[NAN, 7]]), {"a": [None], "b": [7]}):
        assert rows(graph.updated(ge.SetFeatures([4], x)))[3] == expected
    named = {"set_features": {"nodes": [4], "x": [{"b": 7}]}}
    (change,) = changes_of(named, graph.num_features)
    assert rows(graph.updated(change))[3] == expected
    with pytest.raises(GraphError, match="column 'b' must be finite numbers"):
        graph.updated(ge.SetFeatures([4], [[1, NAN]]))


def test_a_plan_shows_the_rows_that_follow_a_mean() -> None:
    cells = [None if node % 5 == 0 else node for node in range(40)]
    nodes = {"id": list(range(40)), "label": [0, 1] * 20, "a": cells, "b": [1] * 40}
    edges = {"source": list(range(39)), "target": list(range(1, 40))}
    graph = ge.Graph.from_tables(nodes, edges, missing={"a": "mean"}, num_classes=2)
    eraser = ge.GraphEraser("gcn", num_shards=8, epochs=2).fit(graph)
    gaps = [node for node in range(40) if node % 5 == 0]
    plan = eraser.plan(ge.Nodes([39]))
    hit = {int(shard) for shard in eraser.partition_.shard_of([39, *gaps])}
    assert {shard.shard for shard in plan.shards} == hit
    assert "8 rows with a gap get another mean" in plan.notes
    assert set(gaps) <= set(plan.touched.tolist())
    receipt = eraser.unlearn(ge.Nodes([39]))
    assert receipt.requests == 1
    assert receipt.counts == {"nodes": 1, "edges": 0, "features": 0, "labels": 0}
    # An edge changes no mean, and a node without a known cell none either.
    assert not eraser.plan(ge.Edges([(0, 1)])).notes
    assert not eraser.plan(ge.Nodes([5])).notes


def test_verify_finds_a_mean_that_is_not_that_of_the_rest(eraser: ge.GraphEraser) -> None:
    from dataclasses import replace

    state = eraser._snapshot.state
    x = state.graph.x.toarray()
    x[1, 0] = 3.5
    wrong = ge.Graph.from_arrays(x, [[1], [2]], [0, 1, 0, 1], ids=[1, 2, 3, 4])
    ensemble = replace(state.ensemble, graph=wrong.with_encoding(state.graph.encoding))
    eraser._fitted = replace(eraser._snapshot, state=replace(state, ensemble=ensemble))
    found = eraser.verify().differences
    assert "graph: gaps are not filled with the means of what is left" in found


# -- pandas itself --------------------------------------------------------------------------------


def test_frames_of_pandas_are_encoded() -> None:
    pd = pytest.importorskip("pandas", reason="needs pandas")
    frame = pd.DataFrame(
        {
            "id": [1, 2, 3, 4],
            "label": pd.Categorical(["x", "y", "x", "y"]),
            "age": pd.array([3, None, 5, 4], dtype="Int64"),
            "ok": pd.array([True, None, False, True], dtype="boolean"),
            "when": pd.Categorical([2020, 2021, 2020, 2021], categories=[2021, 2020, 2022]),
            "size": pd.Categorical(["s", None, "m", "s"]),
        }
    )
    frame = pd.concat([frame, pd.get_dummies(pd.Series(["u", "v", "u", "v"]))], axis=1)
    graph = ge.Graph.from_tables(frame, EDGES, missing="indicator")
    assert graph.class_names == ("x", "y")
    assert graph.inferred == ("categories", "classes", "gaps")
    assert rows(graph) == [
        [3, 0, 1, 0, 0, 1, 0, 0, 1, 0, 1, 0],
        [0, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 1],
        [5, 0, 0, 0, 0, 1, 0, 1, 0, 0, 1, 0],
        [4, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1],
    ]
    eraser = ge.GraphEraser("closed-form").fit(graph)
    new = frame.drop(columns=["id", "label"])
    assert set(eraser.predict_new(new, [[1]] * 4)) <= {"x", "y"}
