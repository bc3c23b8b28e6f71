"""A graph in pages on the disk: what is read is what was written, and anything else is refused."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.errors import CorruptRunError
from grapheraser.graph import Request
from grapheraser.graph.pages.files import index_content
from grapheraser.graph.proof import merkle
from tests.store.runs import bits, contents, forge, paged, paged_graph
from tests.strategies import with_edge_values


@pytest.fixture(scope="module", params=[(True, 1), (False, 1), (True, 10**15)])
def eraser(request: pytest.FixtureRequest) -> ge.GraphEraser:
    dense, apart = request.param
    return paged(dense=dense, apart=apart)


@pytest.fixture
def saved(eraser: ge.GraphEraser, tmp_path: Path) -> Path:
    eraser.save(tmp_path / "run")
    return tmp_path / "run"


def test_pages_come_back_bit_for_bit_and_no_node_is_digested_again(
    eraser: ge.GraphEraser, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(merkle, "leaf_digests", None)
        back = ge.GraphEraser.load(saved)
        assert back.graph_.fingerprint == eraser.graph_.fingerprint
    assert bits(back) == bits(eraser)
    for one, two in ((back.graph_, eraser.graph_), (back.partition_, eraser.partition_)):
        assert len(one.pages.pages) > 3
        assert one.pages.num_entries == two.pages.num_entries
        for page, other in zip(one.pages.pages, two.pages.pages, strict=True):
            assert [block.tobytes() for block in page] == [block.tobytes() for block in other]


def test_a_restored_tree_proves_and_changes_as_the_first_one_did(
    eraser: ge.GraphEraser, saved: Path
) -> None:
    graph, back = eraser.graph_, ge.GraphEraser.load(saved).graph_
    for node in [*graph.ids[::100].tolist(), int(graph.ids[5]) + 7]:
        assert back.proof(node) == graph.proof(node)
        assert back.proof(node).root() == graph.tree.root
    gone: list[Request] = [ge.Nodes(graph.ids[100:105]), ge.Features(graph.ids[300:301])]
    assert back.without(gone).fingerprint == graph.without(gone).fingerprint
    rest = back.without(ge.Nodes(graph.ids[:300]))  # joins pages
    assert rest.fingerprint == graph.without(ge.Nodes(graph.ids[:300])).fingerprint


def test_a_loaded_run_forgets_and_verifies(saved: Path) -> None:
    back = ge.GraphEraser.load(saved)
    back.unlearn(ge.Nodes(back.graph_.train_nodes[40:41]))
    back.save(saved)
    assert ge.GraphEraser.load(saved).verify().identical


def test_what_is_forgotten_leaves_memory_and_disk(saved: Path) -> None:
    back = ge.GraphEraser.load(saved)
    pages = [weakref.ref(page.features) for page in back.graph_.pages.pages]
    leaves = [weakref.ref(page.leaves) for page in back.graph_.tree.leaves]
    node = int(back.graph_.train_nodes[2])
    row = back.graph_.x[back.graph_.positions([node])].data.tobytes()
    assert any(row in content for content in contents(saved).values())
    back.unlearn(ge.Nodes([node]))
    back.save(saved)
    assert not any(row in content for content in contents(saved).values())
    gc.collect()
    assert pages[0]() is None
    assert leaves[0]() is None
    assert all(page() is not None for page in pages[1:]), "the others are shared"


def test_any_flipped_byte_truncated_or_missing_file_is_noticed(saved: Path) -> None:
    before = contents(saved)
    rng = np.random.default_rng(0)
    for name, content in before.items():
        if name == "run.json":
            continue
        at = int(rng.integers(len(content)))
        flipped = content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :]
        for damaged in (flipped, content[:-1], content + b"\0", b"", None):
            (saved / name).unlink()
            if damaged is not None:
                (saved / name).write_bytes(damaged)
            with pytest.raises(CorruptRunError, match=name):
                ge.GraphEraser.load(saved)
            (saved / name).write_bytes(content)
    ge.GraphEraser.load(saved)


def test_a_link_or_a_pipe_in_the_place_of_a_page_is_refused(saved: Path, tmp_path: Path) -> None:
    page = next((saved / "pages").iterdir())
    page.rename(tmp_path / "elsewhere")
    page.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptRunError, match="can't be read"):
        ge.GraphEraser.load(saved)


# -- crafted pages, every digest of which is right ------------------------------------------------


class Topology:
    """The parts of a topology file, to be changed."""

    def __init__(self, content: bytes) -> None:
        _, m, e, _ = np.frombuffer(content[:32], "<i8")
        raw = np.frombuffer(content, np.uint8).copy()
        self.raw, edges = raw, 32 + 13 * m + -13 * m % 8
        self.ids = raw[32 : 32 + 8 * m].view("<i8")
        self.y = raw[32 + 8 * m : 32 + 12 * m].view("<i4")
        self.role = raw[32 + 12 * m : 32 + 13 * m].view("i1")
        self.pointers = raw[edges : edges + 8 * (m + 1)].view("<i8")
        self.around = raw[edges + 8 * (m + 1) :][: 8 * e].view("<i8")

    def row(self, least: int = 2) -> slice:
        """The neighbours of the first node that has so many."""
        at = np.flatnonzero(np.diff(self.pointers) >= least)[0]
        return slice(self.pointers[at], self.pointers[at + 1])


def _set(part: str, at: Any, value: Any) -> Callable[[Topology], None]:
    return lambda page: getattr(page, part).__setitem__(at, value)


def _swap_neighbours(page: Topology) -> None:
    page.around[page.row()] = page.around[page.row()][::-1].copy()


def _double_neighbour(page: Topology) -> None:
    row = page.row()
    page.around[row.start + 1] = page.around[row.start]


def _self_loop(page: Topology) -> None:
    at = np.flatnonzero(np.diff(page.pointers) == 1)[0]
    page.around[page.pointers[at]] = page.ids[at]


def _another_neighbour(page: Topology) -> None:
    page.around[page.row().stop - 1] += 1


def _untrainable(page: Topology) -> None:
    page.y[page.role == 1] = -1


CRAFTED: dict[str, Callable[[Topology], None]] = {
    "ids that descend": lambda page: _set("ids", slice(0, 2), page.ids[1::-1].copy())(page),
    "an id twice": lambda page: _set("ids", 1, page.ids[0])(page),
    "a negative id": _set("ids", 0, -5),
    "an id of another page": _set("ids", -1, 2**62),
    "a label too large": _set("y", 3, 3),
    "a label too small": _set("y", 3, -2),
    "no such role": _set("role", 3, 4),
    "a training node without a label": _untrainable,
    "a first pointer": _set("pointers", 0, 1),
    "a pointer that goes back": _set("pointers", 5, 0),
    "a pointer far out": _set("pointers", 5, 2**40),
    "a negative pointer": _set("pointers", 5, -(2**40)),
    "a last pointer": _set("pointers", -1, 1),
    "neighbours that descend": _swap_neighbours,
    "a neighbour twice": _double_neighbour,
    "an edge to itself": _self_loop,
    "an edge that the other end lacks": _another_neighbour,
    "a neighbour that is not there": _set("around", -1, 2**62),
    "a negative neighbour": _set("around", 0, -1),
}


@pytest.mark.parametrize("case", CRAFTED)
def test_a_crafted_topology_is_refused(saved: Path, case: str) -> None:
    file = next(f for f in sorted((saved / "pages").iterdir()) if b"GE-topo" in f.read_bytes()[:8])
    page = Topology(file.read_bytes())
    CRAFTED[case](page)
    forge(saved, file, page.raw.tobytes())
    with pytest.raises(CorruptRunError, match=r"the (graph|pages)"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("value", [0, -1, 2**31, 2**62, -(2**63)])
@pytest.mark.parametrize("kind", [b"GE-topo", b"GE-feat", b"GE-part"])
def test_a_crafted_header_is_refused(saved: Path, kind: bytes, at: int, value: int) -> None:
    file = next(f for f in sorted((saved / "pages").iterdir()) if kind in f.read_bytes()[:8])
    raw = np.frombuffer(file.read_bytes(), np.uint8).copy()
    header = raw[:32].view("<i8")
    if header[at] == value:
        return
    header[at] = value
    forge(saved, file, raw.tobytes())
    with pytest.raises(CorruptRunError, match=r"not a|not the|don't fit"):
        ge.GraphEraser.load(saved)


def _features_file(saved: Path) -> tuple[Path, np.ndarray]:
    file = next(f for f in sorted((saved / "pages").iterdir()) if b"GE-feat" in f.read_bytes()[:8])
    return file, np.frombuffer(file.read_bytes(), np.uint8).copy()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_features_that_are_not_finite_are_refused(saved: Path, value: float) -> None:
    file, raw = _features_file(saved)
    raw[-4:].view("<f4")[0] = value
    forge(saved, file, raw.tobytes())
    with pytest.raises(CorruptRunError, match="not finite"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize(
    ("at", "value"), [(0, 30), (0, -1), (1, 0), ("pointer", -1), ("pointer", 2**40), ("value", 0)]
)
def test_crafted_sparse_features_are_refused(tmp_path: Path, at: Any, value: int) -> None:
    saved = tmp_path / "run"
    paged(dense=False).save(saved)
    file, raw = _features_file(saved)
    m = int(raw[8:16].view("<i8")[0])
    columns = raw[32 + 8 * (m + 1) :].view("<i4")
    if at == "pointer":
        raw[40:48].view("<i8")[0] = value
    elif at == "value":
        raw[-4:].view("<f4")[0] = value
    else:
        columns[at] = value
    forge(saved, file, raw.tobytes())
    with pytest.raises(CorruptRunError, match=r"page \d of the graph has"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("value", [-1, 3, 2**30])
def test_a_shard_that_there_is_not_is_refused(saved: Path, value: int) -> None:
    file = next(f for f in sorted((saved / "pages").iterdir()) if b"GE-part" in f.read_bytes()[:8])
    raw = np.frombuffer(file.read_bytes(), np.uint8).copy()
    m = int(raw[8:16].view("<i8")[0])
    raw[32 + 8 * m : 36 + 8 * m].view("<i4")[0] = value
    forge(saved, file, raw.tobytes())
    with pytest.raises(CorruptRunError, match="the partition has labels out of range"):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("listed", ["graph-*", "partition-*"])
@pytest.mark.parametrize("case", ["start", "size", "count", "swapped", "left out", "twice"])
def test_a_crafted_index_is_refused(saved: Path, listed: str, case: str) -> None:
    (file,) = saved.glob(listed)
    index = np.load(file)
    if case in index.dtype.names:
        index[case][1] += 1
    elif case == "swapped":
        index = index[[1, 0, *range(2, len(index))]]
    else:
        index = index[1:] if case == "left out" else index[[0, *range(len(index))]]
    forge(saved, file, index_content(index))
    with pytest.raises(CorruptRunError):
        ge.GraphEraser.load(saved)


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"\x93NUMPY\x01\x00v\x00{}", b"x" * 99])
def test_a_crafted_header_of_an_index_is_refused(saved: Path, content: bytes) -> None:
    (file,) = saved.glob("graph-*")
    forge(saved, file, content)
    with pytest.raises(CorruptRunError):
        ge.GraphEraser.load(saved)


def test_an_index_does_not_ask_for_more_memory_than_it_is_large(saved: Path) -> None:
    (file,) = saved.glob("graph-*")
    forged = file.read_bytes().replace(b"'shape': (", b"'shape': (9999999", 1)
    forge(saved, file, forged)
    with pytest.raises(CorruptRunError):
        ge.GraphEraser.load(saved)


@pytest.fixture(scope="module", params=[False, True])
def weighted(request: pytest.FixtureRequest) -> ge.GraphEraser:
    """An eraser on a graph of several pages, whose edges have weights, or directions as well."""
    graph = with_edge_values(paged_graph(dense=False), directed=request.param)
    return ge.GraphEraser(num_shards=3, epochs=1).fit(graph)


def test_what_edges_carry_comes_back_and_leaves_with_them(
    weighted: ge.GraphEraser, tmp_path: Path
) -> None:
    run, graph = tmp_path / "run", weighted.graph_
    weighted.save(run)
    back = ge.GraphEraser.load(run)
    assert back.graph_.edge_kind == graph.edge_kind
    assert back.graph_ == graph
    assert graph.edge_weight is not None
    np.testing.assert_array_equal(back.graph_.edge_weight, graph.edge_weight)
    assert bits(back) == bits(weighted)
    (u, v), node = graph.edges[0], int(graph.edges[-1, 1])
    gone: list[Request] = [ge.Edges([(u, v)]), ge.Nodes([node])]
    mark = graph.values_between(np.array([u, v]), np.array([v, u]))
    mark = mark[mark.any(axis=1)][0].tobytes()
    assert any(mark in content for content in contents(run).values())
    back.unlearn(gone)
    back.save(run)
    assert not any(mark in content for content in contents(run).values())
    assert ge.GraphEraser.load(run).graph_ == graph.without(gone)
    assert ge.GraphEraser.load(run).verify().identical


@pytest.mark.parametrize(("at", "value"), [(0, np.nan), (0, 7.0), (0, -0.5), (1, np.nan)])
def test_a_crafted_value_of_an_edge_is_refused(
    weighted: ge.GraphEraser, tmp_path: Path, at: int, value: float
) -> None:
    """Of the first entry: its direction and its weight, or its weight and the next one's."""
    run = tmp_path / "run"
    weighted.save(run)
    file = next(f for f in sorted((run / "pages").iterdir()) if b"GE-topo" in f.read_bytes()[:8])
    raw = np.frombuffer(file.read_bytes(), np.uint8).copy()
    _, m, e, width = raw[:32].view("<i8")
    start = 32 + 13 * m + -13 * m % 8 + 8 * (m + 1 + e)
    raw[start : start + 4 * e * width].view("<f4")[at] = value
    forge(run, file, raw.tobytes())
    with pytest.raises(CorruptRunError, match="the graph"):
        ge.GraphEraser.load(run)
