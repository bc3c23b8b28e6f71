"""Small random graphs, as a Hypothesis strategy and by seed."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from grapheraser.graph import Graph


def random_graph(seed: int, *, largest: int = 24) -> Graph:
    """A graph of up to ``largest`` nodes, from edgeless to dense, with few distinct degrees."""
    rng = np.random.Generator(np.random.PCG64(seed))
    n = int(rng.integers(1, largest + 1))
    pairs = rng.integers(0, n, size=(int(rng.integers(0, 3 * n + 1)), 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    x = rng.integers(0, 2, size=(n, 4))
    return Graph.from_arrays(x, pairs.T, rng.integers(0, 3, size=n), name=f"random {seed}")


@st.composite
def graphs(draw: st.DrawFn, largest: int = 30) -> Graph:
    """Graphs with any edges (isolated nodes and several components included) and test nodes."""
    n = draw(st.integers(1, largest))
    node = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(node, node), max_size=4 * n))
    edges = np.array([p for p in pairs if p[0] != p[1]], dtype=np.int64).reshape(-1, 2)
    features = draw(st.sampled_from(["none", "same", "different"]))
    x = {
        "none": np.zeros((n, 3)),
        "same": np.ones((n, 3)),
        "different": np.arange(3 * n).reshape(n, 3) % 7,
    }[features]
    test = draw(st.lists(node, max_size=n // 3, unique=True))
    test = test if len(test) < n else test[1:]
    ids = np.arange(n) * 5 + 2
    return Graph.from_arrays(
        x,
        ids[edges.T],
        np.arange(n) % 3,
        ids=ids,
        test=ids[np.array(test, dtype=np.int64)],
        name="drawn",
    )
