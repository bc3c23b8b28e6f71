"""Graph stores made of streams: the same graph as in memory, whatever interrupts the import."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.datasets import GeneratedGraph
from grapheraser.errors import GraphError, ParameterError, StorageFullError, StoreError
from grapheraser.graph.formats.streams import NodeBlock
from grapheraser.store import importing
from grapheraser.store.importing import import_graph

PLAN = GeneratedGraph(1_500, degree=8, num_features=6, num_classes=3, labelled=0.8, seed=2)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many buckets and packs, and a note of all that has been done."""
    monkeypatch.setattr(importing, "_BUCKET", 300)
    monkeypatch.setattr(importing, "_MAX_KEYS", 1_000)
    monkeypatch.setattr(importing, "_NOTE_SECONDS", 0.0)


@dataclass
class Arrays:
    """A stream of arrays in blocks of 7 nodes and 11 edges, cut off after some blocks."""

    ids: Any
    y: Any
    x: Any
    edges: Any
    role: Any = None
    left: int = 10**9
    given: int = 0
    name: str = "arrays"
    num_classes: int | None = None
    each_edge_once: bool = False

    @property
    def signature(self) -> dict[str, Any]:
        return {"sum": int(np.sum(self.ids)), "edges": len(self.edges)}

    def node_blocks(self) -> Iterator[NodeBlock]:
        for at in range(0, len(self.ids), 7):
            part = slice(at, at + 7)
            role = None if self.role is None else self.role[part]
            yield self._count(NodeBlock(self.ids[part], self.y[part], role, self.x[part]))

    def edge_blocks(self) -> Iterator[Any]:
        for at in range(0, len(self.edges), 11):
            yield self._count(self.edges[at : at + 11])

    def _count(self, block: Any) -> Any:
        if self.left == 0:
            raise KeyboardInterrupt
        self.left, self.given = self.left - 1, self.given + 1
        return block


def random_arrays(seed: int, *, sparse: bool = False, consecutive: bool = False) -> Arrays:
    rng = np.random.default_rng(seed)
    n = 40 + 300 * (seed % 3)
    ids = np.arange(n) if consecutive else rng.choice(10**6, n, replace=False)
    x: Any = rng.standard_normal((n, 5)).astype(np.float32)
    if sparse:
        x = sp.csr_array(np.where(rng.random((n, 5)) < 0.2, x, 0).astype(np.float32))
    edges = rng.choice(ids, (4 * n, 2))
    return Arrays(ids, rng.integers(-1, 3, n), x, edges)


def in_memory(arrays: Arrays) -> ge.Graph:
    return ge.Graph.from_arrays(arrays.x, arrays.edges.T, arrays.y, ids=arrays.ids)


def test_a_generated_graph_is_the_same_on_the_disk_and_in_memory(tmp_path: Path) -> None:
    import_graph(PLAN, tmp_path / "G")
    graph = ge.Graph.open(tmp_path / "G")
    assert graph == ge.generate_graph(
        1_500, degree=8, num_features=6, num_classes=3, labelled=0.8, seed=2
    )
    assert len([*(tmp_path / "G" / "packs").iterdir()]) > 4
    assert not (tmp_path / "G" / "spill").exists()


@pytest.mark.parametrize("seed", range(6))
def test_a_stream_makes_the_graph_and_the_notes_of_its_arrays(tmp_path: Path, seed: int) -> None:
    arrays = random_arrays(seed, sparse=seed % 2 == 0, consecutive=seed > 3)
    import_graph(arrays, tmp_path / "G")
    graph, wanted = ge.Graph.open(tmp_path / "G"), in_memory(arrays)
    assert graph == wanted
    assert graph.notes == wanted.notes
    assert graph.pages.dense == wanted.pages.dense


@pytest.mark.parametrize("cut", [0, 1, 20, 48, 49, 60, 100])
def test_an_interrupted_import_goes_on_where_it_stopped(tmp_path: Path, cut: int) -> None:
    arrays = random_arrays(1)
    blocks = -(-len(arrays.ids) // 7) + -(-len(arrays.edges) // 11)
    arrays.left = cut
    with pytest.raises(KeyboardInterrupt):
        import_graph(arrays, tmp_path / "G")
    with pytest.raises(GraphError, match=r"has not finished|no graph here"):
        ge.Graph.open(tmp_path / "G")
    for part in (tmp_path / "G" / "spill").iterdir():
        with part.open("ab") as file:
            file.write(b"what a crash wrote")
    arrays.left, arrays.given = 10**9, 0
    import_graph(arrays, tmp_path / "G")
    assert ge.Graph.open(tmp_path / "G") == in_memory(arrays)
    # The stream begins anew, and its first blocks are passed over.
    assert arrays.given <= blocks


@pytest.mark.parametrize("packs", [0, 1, 3])
def test_a_full_disk_is_told_and_the_import_goes_on_later(
    tmp_path: Path, packs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, written, fsync = random_arrays(2), [0], os.fsync

    def full(handle: int) -> None:
        if str(os.readlink(f"/proc/self/fd/{handle}")).endswith(".pack"):
            if written[0] == packs:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written[0] += 1
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFullError, match=r"goes on"):
        import_graph(arrays, tmp_path / "G")
    monkeypatch.setattr(os, "fsync", fsync)
    arrays.given = 0
    import_graph(arrays, tmp_path / "G")
    assert arrays.given == 0
    graph = ge.Graph.open(tmp_path / "G")
    assert graph == in_memory(arrays)
    assert graph.notes == in_memory(arrays).notes


def test_the_beginning_of_another_import_is_not_mixed_in(tmp_path: Path) -> None:
    one, other = random_arrays(1), random_arrays(4)
    one.left = 20
    with pytest.raises(KeyboardInterrupt):
        import_graph(one, tmp_path / "G")
    with pytest.raises(ParameterError, match="another import"):
        import_graph(other, tmp_path / "G")
    import_graph(other, tmp_path / "G", replace=True)
    assert ge.Graph.open(tmp_path / "G") == in_memory(other)


def test_folders_that_hold_something_are_kept(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(StoreError, match="holds something"):
        import_graph(random_arrays(0), tmp_path / "mine", replace=True)
    import_graph(random_arrays(0), tmp_path / "G")
    with pytest.raises(ParameterError, match="holds a graph store"):
        import_graph(random_arrays(3), tmp_path / "G")
    assert ge.Graph.open(tmp_path / "G") == in_memory(random_arrays(0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": np.array([[999_999_999, 3]])}, "999999999"),
        ({"ids": np.zeros(40, dtype=np.int64)}, "unique"),
        ({"ids": np.arange(-1, 39)}, "non-negative"),
        ({"x": np.full((40, 2), np.nan)}, "finite"),
        ({"role": np.ones(40, dtype=np.int8), "y": np.full(40, -1)}, "need a label"),
        ({"y": np.full(40, -3)}, "labels must be"),
    ],
)
def test_what_is_no_graph_is_refused_and_leaves_nothing(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    arrays = random_arrays(0)
    for name, value in change.items():
        setattr(arrays, name, value)
    if "ids" in change:
        arrays.edges = np.zeros((0, 2), dtype=np.int64)
    with pytest.raises(GraphError, match=message):
        import_graph(arrays, tmp_path / "G")
    with pytest.raises(GraphError, match="no graph here"):
        ge.Graph.open(tmp_path / "G")
