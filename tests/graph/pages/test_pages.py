"""Pages follow from the content alone, and a change writes only those that it touches."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.graph.pages.directory import Directory
from grapheraser.graph.pages.pages import _MAX_REMEMBERED, Lineage, Pages
from grapheraser.graph.proof.register import Register
from grapheraser.kernels.paged import NOWHERE, ROOM, located, nodes_at
from grapheraser.receipts.tree import EMPTY
from tests.store.runs import paged_graph

KINDS = ("consecutive", "sparse", "clustered")


def some_ids(count: int, kind: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if kind == "consecutive":
        return np.arange(count, dtype=np.int64)
    if kind == "sparse":
        return np.unique(rng.integers(0, 2**63 - 1, count, dtype=np.int64))
    if kind == "of types":  # close together in few blocks; one begins late, one has holes
        types = np.arange(4 * count), 9000 + np.arange(4 * count), 7 * np.arange(8 * count)
        return np.concatenate([(index << 61) + numbers for index, numbers in enumerate(types)])
    close = rng.integers(0, 700, count // 2)
    far = 2**40 + rng.integers(0, 5000, count - count // 2)
    return np.unique(np.concatenate([close, far, [2**63 - 1]])).astype(np.int64)


def some_graph(count: int, kind: str, seed: int = 0, *, dense: bool = False) -> ge.Graph:
    rng = np.random.default_rng(seed)
    ids = some_ids(count, kind, seed)
    n = len(ids)
    x = rng.standard_normal((n, 6)) if dense else sp.random_array((n, 30), density=0.1, rng=rng)
    pairs = ids[rng.integers(0, n, (2, 3 * n))]
    return ge.Graph.from_arrays(x, pairs, rng.integers(0, 3, n), ids=ids, test=ids[::5])


def rebuilt(graph: ge.Graph) -> ge.Graph:
    """The same graph from its arrays, with nothing shared or remembered."""
    x = graph.x.toarray() if graph.pages.dense else graph.x.copy()
    return ge.Graph.from_arrays(
        x,
        graph.ids[graph.edge_index],
        graph.y.copy(),
        ids=graph.ids.copy(),
        train=graph.train_nodes.copy(),
        test=graph.test_nodes.copy(),
        num_classes=graph.num_classes,
    )


def same_pages(a: ge.Graph, b: ge.Graph) -> bool:
    return a.pages.directory.starts.tolist() == b.pages.directory.starts.tolist() and all(
        all(np.array_equal(p, q) for p, q in zip(first, second, strict=True))
        for first, second in zip(a.pages.pages, b.pages.pages, strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [0, 1, 2, ROOM, ROOM + 1, 3000])
def test_blocks_hold_all_ids_and_are_as_large_as_they_may_be(kind: str, count: int) -> None:
    ids = some_ids(count, kind, 1)
    directory = Directory.of(ids)
    ends = np.cumsum(directory.counts)
    assert directory.counts.sum() == len(ids)
    assert (directory.counts > 0).all()
    assert (directory.counts <= ROOM).all()
    for start, size, low, high in zip(
        directory.starts.tolist(),
        directory.sizes.tolist(),
        (ends - directory.counts).tolist(),
        ends.tolist(),
        strict=True,
    ):
        assert start % 16**size == 0
        assert all(start <= node < start + 16**size for node in ids[low:high].tolist())
        if size < 16:
            around = start // 16 ** (size + 1) * 16 ** (size + 1)
            inside = [n for n in ids.tolist() if around <= n < around + 16 ** (size + 1)]
            assert len(inside) > ROOM, "the block around would do"


@pytest.mark.parametrize("kind", [*KINDS, "of types"])
def test_every_node_is_found_and_no_other(kind: str) -> None:
    graph = some_graph(2000, kind)
    places = graph.places(graph.ids)
    assert (np.diff(places) > 0).all()
    assert np.array_equal(nodes_at(graph.table, places), graph.ids)
    others = np.setdiff1d(
        np.concatenate([graph.ids + 1, graph.ids - 1, [0, -1, 2**62, 2**63 - 1]]), graph.ids
    )
    assert (located(graph.table, others) == NOWHERE).all()
    assert np.array_equal(graph.positions(graph.ids), np.arange(graph.num_nodes))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_changed_pages_are_those_of_a_graph_built_afresh(kind: str, dense: bool) -> None:
    graph = some_graph(1500, kind, 2, dense=dense)
    assert graph.fingerprint
    rng = np.random.default_rng(3)
    for step in range(12):
        if step % 4 == 3:
            node = int(rng.integers(0, 2**63 - 1)) if kind == "sparse" else 10_000 + step
            others = rng.choice(graph.ids, 5, replace=False)
            graph = graph.with_node(node, rng.standard_normal(graph.num_features), 1, others)
        else:
            nodes = rng.choice(graph.ids, 1 if step % 2 else 100, replace=False)
            edges = graph.edges[rng.choice(graph.num_edges, 3, replace=False)]
            filled = graph.ids[np.diff(graph.x.indptr) > 0]
            cleared = rng.choice(filled, 4, replace=False)
            graph = graph.without([ge.Nodes(nodes), ge.Edges(edges), ge.Features(cleared)])
        fresh = rebuilt(graph)
        if dense == fresh.pages.dense:
            assert same_pages(graph, fresh)
        assert graph.fingerprint == fresh.fingerprint
        assert graph.tree.inner == fresh.tree.inner
        assert graph.num_edges == fresh.num_edges
        assert np.array_equal(graph.indices, fresh.indices)
        assert np.array_equal(graph.x.toarray(), fresh.x.toarray())


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_nodes_come_and_go_and_leave_no_trace_in_the_pages(data: st.DataObject) -> None:
    graph = some_graph(600, data.draw(st.sampled_from(KINDS)), 4)
    before = graph
    node = data.draw(st.integers(0, 2**63 - 1).filter(lambda n: not graph.contains([n])[0]))
    others = data.draw(st.lists(st.sampled_from(graph.ids.tolist()), max_size=4))
    there = graph.with_node(node, np.ones(graph.num_features), 0, others)
    assert there.neighbours(node).tolist() == sorted(set(others))
    assert same_pages(there.without(ge.Nodes([node])), before)


def test_a_change_shares_all_pages_that_it_does_not_touch() -> None:
    graph = some_graph(3000, "consecutive")
    node = int(graph.ids[1000])
    touched = {int(place) // ROOM for place in graph.places([node, *graph.neighbours(node)])}
    rest = graph.without(ge.Nodes([node]))
    for number, (old, new) in enumerate(zip(graph.pages.pages, rest.pages.pages, strict=True)):
        assert (new is old) == (number not in touched)
        assert (new.features is old.features) == (number != int(graph.places([node])[0]) // ROOM)


def test_old_pages_leave_memory_with_the_last_graph_that_holds_them() -> None:
    graph = some_graph(3000, "consecutive")
    node = int(graph.ids[1000])
    old = weakref.ref(graph.pages.pages[int(graph.places([node])[0]) // ROOM].nodes)
    rest = graph.without(ge.Nodes([node]))
    assert old() is not None
    del graph
    gc.collect()
    assert old() is None
    assert not rest.contains([node])[0]


def test_a_graph_in_pages_can_be_sent_to_another_process() -> None:
    graph = some_graph(900, "sparse").without(ge.Nodes(some_ids(900, "sparse", 0)[:3]))
    sent = pickle.loads(pickle.dumps(graph))
    assert sent == graph
    assert np.array_equal(sent.neighbours(int(graph.ids[5])), graph.neighbours(int(graph.ids[5])))


@pytest.mark.gnn
def test_dense_features_stay_dense_and_sparse_ones_sparse() -> None:
    assert some_graph(50, "consecutive", dense=True).pages.dense
    assert not some_graph(50, "consecutive").pages.dense
    dense = some_graph(50, "consecutive", dense=True)
    assert dense.with_split(seed=1).pages.dense
    assert ge.Graph.from_pyg(dense.to_pyg()).pages.dense
    as_sparse = ge.Graph.from_arrays(
        sp.csr_array(dense.x), dense.edge_index, dense.y, test=dense.test_nodes
    )
    assert not as_sparse.pages.dense
    assert as_sparse == dense, "how features are kept is no part of the content"


# -- the Merkle tree ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_proofs_show_who_is_there_and_who_is_not(kind: str) -> None:
    graph = some_graph(700, kind)
    gone = graph.ids[::97]
    rest = graph.without(ge.Nodes(gone))
    for node in gone.tolist():
        there, absent = graph.proof(node), rest.proof(node)
        assert there.leaf is not None
        assert there.root() == graph.tree.root
        assert absent.leaf is None
        assert absent.root() == rest.tree.root
        assert absent.root() != graph.tree.root
    for node in (0, 2**63 - 1, 123_456_789):
        assert rest.proof(node).root() == rest.tree.root
        assert (rest.proof(node).leaf is None) == (not rest.contains([node])[0])


def test_a_proof_of_absence_shows_no_leaf_of_another_node() -> None:
    graph = some_graph(700, "sparse")
    leaves = {leaf.tobytes() for page in graph.tree.leaves for leaf in page.leaves}
    for node in range(0, 2**63 - 1, 2**57):
        shown = {digest for step in graph.proof(node).steps for digest in step.digests}
        assert not shown & leaves


def test_forged_proofs_lead_elsewhere_or_nowhere() -> None:
    graph = some_graph(700, "consecutive")
    root = graph.tree.root
    there, absent = graph.proof(5), graph.proof(100_000)
    forged = [
        dataclasses.replace(there, leaf=None),
        dataclasses.replace(there, node=6),
        dataclasses.replace(there, leaf=graph.proof(6).leaf),
        dataclasses.replace(absent, node=5),
        dataclasses.replace(absent, steps=absent.steps[:-1]),
        dataclasses.replace(there, steps=there.steps[1:]),
        dataclasses.replace(absent, steps=()),
        dataclasses.replace(absent, leaf=there.leaf),
    ]
    for proof in forged:
        with contextlib.suppress(ValueError):
            assert proof.root() != root


def test_an_empty_graph_has_an_empty_tree() -> None:
    graph = some_graph(3, "consecutive")
    rest = graph.without(ge.Nodes(graph.ids))
    assert rest.num_nodes == rest.num_edges == len(rest.pages.pages) == 0
    assert rest.tree.root == EMPTY
    assert rest.proof(1).root() == EMPTY


def test_any_change_of_content_changes_the_fingerprint() -> None:
    graph = some_graph(400, "consecutive")
    seen = {graph.fingerprint}
    for request in (
        ge.Nodes([7]),
        ge.Edges(graph.edges[:1]),
        ge.Features(graph.ids[np.diff(graph.x.indptr) > 0][:1]),
    ):
        seen.add(graph.without(request).fingerprint)
    seen.add(graph.with_split(seed=9).fingerprint)
    assert len(seen) == 5


# -- lineage: it names all pages that have changed ------------------------------------------------


def differing(old: Pages, new: Pages) -> frozenset[int]:
    pairs = zip(old.pages, new.pages, strict=True)
    return frozenset(number for number, (one, other) in enumerate(pairs) if one is not other)


def test_every_version_knows_what_differs_from_those_before() -> None:
    graph = paged_graph()
    versions = [graph]
    for node in (3, 500, 501, 899):
        versions.append(versions[-1].without([ge.Nodes([node])]))
    versions.append(versions[-1].without([ge.Features([7]), ge.Labels([300])]))
    assert len(graph.pages.pages) == 4
    seen = set()
    for at, later in enumerate(versions):
        for earlier in versions[: at + 1]:
            found = later.pages.lineage.since(earlier.pages.lineage.token)
            assert found == differing(earlier.pages, later.pages)
            seen.add(found)
        for other in versions[at + 1 :]:
            assert later.pages.lineage.since(other.pages.lineage.token) is None
    assert len(seen) > 2


def test_other_blocks_begin_anew() -> None:
    graph = paged_graph(apart=16**3)
    fewer = graph.without([ge.Nodes(graph.ids[3:].tolist())])
    assert len(fewer.pages.pages) < len(graph.pages.pages)
    assert fewer.pages.lineage.since(graph.pages.lineage.token) is None


def test_the_pages_of_a_register_have_one_too() -> None:
    register = Register.of(np.arange(5_000))
    assert len(register.pages) > 1
    gone = np.array([17, 18])
    after = register.changed(gone, np.array([9_000]))
    pairs = zip(register.pages, after.pages, strict=True)
    changed = frozenset(number for number, (one, other) in enumerate(pairs) if one is not other)
    assert after.lineage.since(register.lineage.token) == changed
    assert 1 <= len(changed) <= 3


def test_it_does_not_grow_and_does_not_travel() -> None:
    lineage = first = Lineage()
    for number in range(3 * _MAX_REMEMBERED):
        lineage = lineage.changed([number])
    assert len(lineage.before) == _MAX_REMEMBERED
    assert lineage.since(first.token) is None
    back = pickle.loads(pickle.dumps(lineage))
    assert back.before == ()
    assert back.since(lineage.token) is None
