"""Small runs, and what is in their folders."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import grapheraser as ge
from grapheraser.graph.pages.files import index_content
from tests.strategies import small_graph

MARK = np.float32(1234.5678)


def marked_graph() -> ge.Graph:
    """A graph with one feature value that can be found again among bytes."""
    graph = small_graph()
    x = graph.x.toarray()
    x[np.flatnonzero(graph.role == 1)[0], 0] = MARK
    return ge.Graph.from_arrays(
        x, graph.edges.T, graph.y, ids=graph.ids, test=graph.test_nodes, each_edge_once=True
    )


def fitted() -> ge.GraphEraser:
    """An eraser with one receipt, that still knows the marked node: its first one."""
    eraser = ge.GraphEraser(num_shards=3, epochs=2, partition="hash").fit(marked_graph())
    eraser.unlearn(ge.Nodes(eraser.graph_.train_nodes[-1:]))
    return eraser


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of the run, byte for byte; the lock is no part of it."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != ".lock"
    }


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    tensors = {name: array.tobytes() for name, array in eraser._snapshot.state.tensors().items()}
    return {**tensors, "posteriors": eraser.predict_proba(eraser.graph_.ids).tobytes()}


def forge(folder: Path, file: Path, content: bytes) -> None:
    """Put other content into a file, and adjust every digest on the way to it."""
    before, after = (hashlib.sha256(it).digest() for it in (file.read_bytes(), content))
    if file.parent.name in ("pages", "shards"):
        name = after.hex() if file.suffix == ".page" else after.hex()[:20]
        file.rename(file.with_name(f"{name}{file.suffix}")).write_bytes(content)
        for listed in folder.glob("*.npy"):
            index = np.load(listed)
            for kind in {"topology", "features", "shards", "weights"} & set(index.dtype.names):
                named = np.array([digest.tobytes() == before for digest in index[kind]])
                index[kind][named] = np.frombuffer(after, dtype="V32")
                if f"{kind}_bytes" in index.dtype.names:
                    index[f"{kind}_bytes"][named] = len(content)
            forge(folder, listed, index_content(index))
        return
    file.write_bytes(content)
    manifest = (folder / "run.json").read_text()
    (folder / "run.json").write_text(manifest.replace(before.hex(), after.hex()))


def paged_graph(*, dense: bool = True, apart: int = 1) -> ge.Graph:
    """A graph of several pages; ``apart`` is the distance from one id to the next."""
    rng = np.random.default_rng(3)
    n = 900
    ids = np.arange(n) * apart
    x = rng.standard_normal((n, 6)) if dense else sp.random_array((n, 30), density=0.1, rng=rng)
    edges = ids[rng.integers(0, n, (2, 2 * n))]
    return ge.Graph.from_arrays(x, edges, rng.integers(0, 3, n), ids=ids, test=ids[::5])


def paged(**options: Any) -> ge.GraphEraser:
    """An eraser on a graph of several pages, with one receipt."""
    graph = paged_graph(**options)
    eraser = ge.GraphEraser(num_shards=3, epochs=1, partition="hash").fit(graph)
    eraser.unlearn(ge.Nodes(graph.train_nodes[-1:]))
    return eraser
