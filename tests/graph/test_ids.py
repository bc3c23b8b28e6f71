"""Nodes are named by ids, names and masks, in whatever container."""

from __future__ import annotations

import copy
import hashlib
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.errors import ParameterError, UnknownNodeError
from grapheraser.graph.ids import NamedId, as_ids, is_plain, name_id
from tests.strategies import small_graph

IDS = [3, 1, 7]


class Index:
    """As much of a pandas index or series as is needed of one."""

    def __init__(self, values: Any, index: Any = None) -> None:
        self.values = np.asarray(values)
        if index is not None:
            self.index = index

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.values if dtype is None else self.values.astype(dtype)


@pytest.mark.parametrize(
    "nodes",
    [
        IDS,
        tuple(IDS),
        iter(IDS),
        dict.fromkeys(IDS),
        np.array(IDS, dtype=np.uint8),
        np.array(IDS, dtype=object),
        torch.tensor(IDS),
        Index(IDS),
        Index(np.array(IDS, dtype=object)),
    ],
)
def test_every_container_of_ids_names_the_same_nodes(nodes: Any) -> None:
    found = as_ids(nodes)
    assert found.dtype == np.int64
    assert found.tolist() == IDS


def test_ranges_and_single_ids() -> None:
    assert as_ids(range(2, 9, 3)).tolist() == [2, 5, 8]
    assert as_ids(range(0)).tolist() == as_ids([]).tolist() == []
    assert as_ids(5).tolist() == as_ids(np.int32(5)).tolist() == [5]


def test_the_callers_array_is_left_alone() -> None:
    mine = np.array(IDS)
    as_ids(mine)[0] = 99
    assert mine.tolist() == IDS


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([1.0], r"64-bit integers, or names\. Got 1.0 \(dtype float64\)"),
        ([1, None], r"Got None \(dtype object\)"),
        ([1, True], r"Got True"),
        ([[1, 2], [3, 4]], r"flat list\. Got an array of shape \[2, 2\]"),
        ([2**63], "64-bit"),
        (np.array([1.0, np.nan]), "Got 1.0"),
        ([True, False], "says nothing without its graph"),
        ([b"alice"], "Got b'alice'"),
        ([""], "must not be empty"),
        (["a\0"], "null character"),
        (["\ud800"], "valid Unicode"),
    ],
)
def test_what_names_no_nodes_is_refused(bad: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        as_ids(bad)


def test_a_float_is_told_where_it_may_come_from() -> None:
    with pytest.raises(ParameterError) as caught:
        as_ids([1.0, 2.0])
    assert "gaps" in str(caught.value.hint)


def test_the_id_of_a_name_is_63_bits_of_its_sha256() -> None:
    content = hashlib.sha256("Zoë".encode()).digest()
    expected = int.from_bytes(content, "big") >> (256 - 63)
    assert name_id("Zoë") == expected
    assert as_ids(["Zoë"]).tolist() == as_ids("Zoë").tolist() == [expected]
    assert as_ids(np.array(["Zoë"])).tolist() == as_ids(np.array(["Zoë"], object)).tolist()
    assert 0 <= expected < 2**63


def test_the_id_of_a_name_keeps_it_in_copies() -> None:
    for made in (copy.deepcopy(name_id("ada")), pickle.loads(pickle.dumps(name_id("ada")))):
        assert isinstance(made, NamedId)
        assert (made, made.name) == (name_id("ada"), "ada")


def test_a_mask_is_about_all_nodes_of_the_graph() -> None:
    graph = small_graph(seed=1)
    graph = graph.without(ge.Nodes(graph.ids[[0, 5]]))
    mask = graph.ids % 2 == 0
    even = graph.ids[mask]
    for masked in (mask, mask.tolist(), torch.from_numpy(mask), Index(mask)):
        assert graph.ids_of(masked).tolist() == even.tolist()
        assert graph.labels(masked).tolist() == graph.labels(even).tolist()
        assert graph.contains(masked).all()
    counting = Index(mask, index=np.arange(len(mask)))
    assert graph.ids_of(counting).tolist() == even.tolist()
    with pytest.raises(ParameterError, match=rf"{len(mask)} entries, one per node\. Got 3"):
        graph.places([True, False, True])


def test_the_index_of_a_pandas_mask_names_its_nodes() -> None:
    graph = small_graph(seed=1)
    order = graph.ids[::-1]
    few = graph.ids[:4]
    series = Index(np.isin(order, few), index=order)
    assert sorted(graph.ids_of(series)) == few.tolist()


def test_splits_are_given_by_masks_of_the_rows_as_they_came() -> None:
    x, edges, y = np.eye(4), [[7, 9], [9, 2]], [0, 1, 0, 1]
    graph = ge.Graph.from_arrays(
        x, edges, y, ids=[9, 2, 7, 4], train=[True, False, True, False], test=np.array([False] * 4)
    )
    assert graph.train_nodes.tolist() == [7, 9]
    assert graph.test_nodes.tolist() == []
    with pytest.raises(ParameterError, match=r"4 entries.*Got 3"):
        ge.Graph.from_arrays(x, edges, y, ids=[9, 2, 7, 4], test=[True, False, True])


def test_requests_take_masks_which_the_graph_gives_a_meaning() -> None:
    graph = small_graph(seed=2)
    mask = np.zeros(graph.num_nodes, dtype=bool)
    mask[[2, 4]] = True
    assert graph.without(ge.Nodes(mask)) == graph.without(ge.Nodes(graph.ids[mask]))
    assert ge.Nodes(mask) == ge.Nodes(mask.tolist()) != ge.Nodes(~mask)
    full = np.diff(graph.x.indptr) > 0
    assert graph.without(ge.Features(mask & full)) == graph.without(
        ge.Features(graph.ids[mask & full])
    )
    with pytest.raises(ParameterError, match="one per node"):
        graph.without(ge.Labels(mask[1:]))
    with pytest.raises(ParameterError, match="that of its ids"):
        ge.graph.request_digest([ge.Nodes(mask)])


def test_unknown_nodes_are_named_as_they_were_given() -> None:
    graph = small_graph(seed=2)
    with pytest.raises(UnknownNodeError, match="node 999 is not in the graph"):
        graph.places([graph.ids[0], 999])
    named: Any
    for named in ("ada", ["ada"], np.array(["ada"])):
        with pytest.raises(UnknownNodeError, match="node 'ada' is not in the graph"):
            graph.places(named)
    named = iter(["ada"])
    with pytest.raises(UnknownNodeError, match=f"node {int(name_id('ada'))} is not in"):
        graph.places(named)
    with pytest.raises(UnknownNodeError, match=r"nodes '\w+' and '\w+' are not .*2 of 2") as caught:
        graph.without([ge.Nodes(["ada"]), ge.Edges([("ada", "bob")])])
    assert {node.name for node in caught.value.ids} == {"ada", "bob"}  # type: ignore[attr-defined]


def test_only_arrays_that_kernels_can_read_are_taken_as_they_are() -> None:
    ids = np.arange(6)
    fixed = ids.copy()
    fixed.flags.writeable = False
    assert is_plain(ids)
    assert is_plain(ids[2:])
    assert is_plain(ids[:0])
    for other in (fixed, ids[::2], ids.astype(np.int32), ids.reshape(2, 3), [1, 2], ids > 2):
        assert not is_plain(other)


def test_places_are_the_same_however_ids_lie_in_memory() -> None:
    graph = small_graph()
    ids = graph.ids.copy()
    apart = np.repeat(ids, 2)[::2]
    assert graph.places(ids).tolist() == graph.places(graph.ids).tolist()
    assert graph.places(apart).tolist() == graph.places(ids.tolist()).tolist()
    with pytest.raises(UnknownNodeError):
        graph.places(np.append(ids, ids.max() + 1))
