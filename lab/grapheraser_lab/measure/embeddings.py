"""Rows of nodes judged alike, whoever made them; and those of DeepWalk, node2vec and FastRP.

A split holds out a fifth of the nodes and a tenth of the edges for the test, and a fifth and a
twentieth for validation. A row is judged by a linear probe (logistic regression on standardised
columns, micro F1) and by how well pairs of rows tell edges from other pairs (AUC). Rows for links
are made from the graph without the edges that are held out. Choices are made on validation nodes
and edges alone: those of a method's settings, of the probe's penalty, and of how two rows are
compared (product, cosine, or logistic regression on the products of their columns).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Rows = NDArray[np.float32]
Pairs = NDArray[np.int64]

_PENALTIES = (0.01, 0.1, 1.0)
# Edges, and other pairs, that the comparison of two rows is learned from at the most.
_LEARNED = 20_000
# (p, q) of node2vec that are tried.
WAYS = ((1.0, 0.5), (1.0, 2.0))


@dataclass(frozen=True, eq=False)
class Split:
    """Nodes and edges by role.

    Attributes:
        edges: all of them ``[m, 2]``, each once, smaller end first.
        nodes: positions for training, validation and test.
        kept: the edges that rows for links may be made from.
        pairs: edges and as many other pairs, by role: ``learn``, ``validate``, ``test``.
    """

    num_nodes: int
    edges: Pairs
    nodes: tuple[NDArray[np.int64], ...]
    kept: Pairs
    pairs: dict[str, tuple[Pairs, Pairs]]

    @classmethod
    def of(cls, num_nodes: int, edges: Pairs, seed: int) -> Split:
        """Split a graph by a seed."""
        order = np.random.default_rng([seed, 1]).permutation(num_nodes)
        nodes = tuple(np.split(order, [int(0.6 * num_nodes), int(0.8 * num_nodes)]))
        rng = np.random.default_rng([seed, 2])
        shuffled = edges[rng.permutation(len(edges))]
        test, validate, kept = np.split(shuffled, [len(edges) // 10, len(edges) * 3 // 20])
        learn = kept[rng.permutation(len(kept))[:_LEARNED]]
        known = set((edges[:, 0] * num_nodes + edges[:, 1]).tolist())
        parts = {"learn": learn, "validate": validate, "test": test}
        pairs = {
            name: (some, _others(num_nodes, known, len(some), rng)) for name, some in parts.items()
        }
        return cls(num_nodes, edges, nodes, kept, pairs)


def _others(num_nodes: int, known: set[int], count: int, rng: np.random.Generator) -> Pairs:
    """Draw pairs without an edge, each once."""
    found: list[int] = []
    while len(found) < count:
        drawn = np.sort(rng.integers(0, num_nodes, (count, 2)), axis=1)
        for key in (drawn[:, 0] * num_nodes + drawn[:, 1])[drawn[:, 0] != drawn[:, 1]].tolist():
            if key not in known and len(found) < count:
                known.add(key)
                found.append(key)
    keys = np.array(found, dtype=np.int64)
    return np.stack([keys // num_nodes, keys % num_nodes], axis=1)


def probe(rows: Rows, labels: NDArray[np.int64], split: Split) -> tuple[float, float]:
    """Return micro F1 of a linear probe on validation and on test nodes."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train, validate, test = split.nodes
    scaled = StandardScaler().fit(rows[train]).transform(rows)
    found = []
    for penalty in _PENALTIES:
        model = LogisticRegression(C=penalty, max_iter=200).fit(scaled[train], labels[train])
        chosen, told = (float(model.score(scaled[s], labels[s])) for s in (validate, test))
        found.append((chosen, told))
    return max(found, key=lambda pair: pair[0])


def link_auc(rows: Rows, split: Split) -> tuple[float, float, float]:
    """Return the AUC of edges against other pairs on those for validation and for the test.

    And the latter among pairs whose ends both have an edge left: of the others nothing is known but
    that they have none.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    unit = rows / np.maximum(1e-12, np.linalg.norm(rows, axis=1, keepdims=True))

    def products(some: Rows, role: str) -> NDArray[np.float32]:
        pairs = np.concatenate(split.pairs[role])
        return some[pairs[:, 0]] * some[pairs[:, 1]]

    def truth(role: str) -> NDArray[np.float64]:
        return np.repeat([1.0, 0.0], [len(part) for part in split.pairs[role]])

    linked = np.bincount(split.kept.reshape(-1), minlength=split.num_nodes) > 0
    known = linked[np.concatenate(split.pairs["test"])].all(axis=1)
    found = []
    for some in (rows, unit):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=200))
        model.fit(products(some, "learn"), truth("learn"))
        for score in (lambda part: part.sum(axis=1), model.decision_function):
            chosen, told = (score(products(some, role)) for role in ("validate", "test"))
            found.append(
                (
                    float(roc_auc_score(truth("validate"), chosen)),
                    float(roc_auc_score(truth("test"), told)),
                    float(roc_auc_score(truth("test")[known], told[known])),
                )
            )
    return max(found, key=lambda scores: scores[0])


# -- rivals --------------------------------------------------------------------------------------


def adjacency(num_nodes: int, edges: Pairs) -> sp.csr_array:
    """Return the symmetric adjacency matrix."""
    ends = np.concatenate([edges, edges[:, ::-1]])
    ones = np.ones(len(ends), dtype=np.float32)
    return sp.csr_array((ones, (ends[:, 0], ends[:, 1])), shape=(num_nodes, num_nodes))


def fastrp(
    num_nodes: int, edges: Pairs, seed: int, width: int = 128, draws: int = 4
) -> Iterator[tuple[str, Rows]]:
    """Yield rows of FastRP (Chen et al., CIKM 2019) for several settings, as its authors tune it.

    Very sparse random projections of the first four powers of the transition matrix, sources
    weighted by a power of their degrees; that power and the weight of the last are drawn.
    """
    rng = np.random.default_rng([seed, 3])
    matrix = adjacency(num_nodes, edges)
    degrees = np.maximum(1.0, matrix.sum(axis=1))
    walk = sp.diags_array(1.0 / degrees) @ matrix
    signs = rng.choice([-1.0, 0.0, 1.0], size=(num_nodes, width), p=[1 / 6, 2 / 3, 1 / 6])
    settings = [(-0.628, (1.0, 1.0, 7.81, 45.28))]
    for power in rng.uniform(-1, 0, draws):
        settings.append((float(power), (0.0, 0.0, 1.0, float(2.0 ** rng.uniform(-3, 6)))))
    for power, weights in settings:
        rows = signs * ((degrees / degrees.sum()) ** power)[:, None]
        total = np.zeros((num_nodes, width))
        for weight in weights:
            rows = walk @ rows
            length = np.linalg.norm(rows, axis=1, keepdims=True)
            total += weight * rows / np.maximum(1e-12, length)
        yield f"power {power:.2f}, last {weights[-1]:.2f}", total.astype(np.float32)


def node2vec(
    num_nodes: int, edges: Pairs, seed: int, *, p: float = 1.0, q: float = 1.0, width: int = 128
) -> Rows:
    """Return rows of node2vec, or of DeepWalk where p and q are 1: gensim's word2vec on walks.

    As published: ten walks of 80 nodes from each, windows of 10, skip-gram with five other nodes.
    """
    from gensim.models import Word2Vec

    matrix = adjacency(num_nodes, edges)
    matrix.sort_indices()
    rng = np.random.default_rng([seed, 4])
    walks = [
        walk.astype(str).tolist()
        for _ in range(10)
        for walk in _walks(matrix, rng.permutation(num_nodes), 80, p, q, rng)
    ]
    model = Word2Vec(
        walks, vector_size=width, window=10, sg=1, negative=5, min_count=0, epochs=1, workers=1,
        seed=seed,
    )  # fmt: skip
    return np.asarray(model.wv[[str(node) for node in range(num_nodes)]], dtype=np.float32)


def _walks(
    matrix: sp.csr_array,
    start: NDArray[np.int64],
    length: int,
    p: float,
    q: float,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw a walk from each node ``[len(start), length]``; weights of node2vec by rejection."""
    first, count = matrix.indptr[:-1].astype(np.int64), np.diff(matrix.indptr)
    size = len(count)
    keys = np.repeat(np.arange(size), count) * size + matrix.indices

    def neighbours(here: NDArray[np.int64]) -> NDArray[np.int64]:
        at = first[here] + (rng.random(len(here)) * count[here]).astype(np.int64)
        return np.where(count[here] > 0, matrix.indices[np.minimum(at, len(keys) - 1)], here)

    path = np.empty((len(start), length), dtype=np.int64)
    path[:, 0] = start
    for step in range(1, length):
        waiting = np.arange(len(start))
        while len(waiting):
            here = path[waiting, step - 1]
            new = path[waiting, step] = neighbours(here)
            if step == 1 or p == q == 1.0:
                break
            last = path[waiting, step - 2]
            known = last * size + new
            near = keys[np.minimum(np.searchsorted(keys, known), len(keys) - 1)] == known
            weight = np.where(new == last, 1 / p, np.where(near, 1.0, 1 / q))
            waiting = waiting[rng.random(len(waiting)) * max(1.0, 1 / p, 1 / q) >= weight]
    return path


def deepwalk(num_nodes: int, edges: Pairs, seed: int) -> Iterator[tuple[str, Rows]]:
    """Yield rows of DeepWalk."""
    yield "p 1, q 1", node2vec(num_nodes, edges, seed)


def node2vec_ways(num_nodes: int, edges: Pairs, seed: int) -> Iterator[tuple[str, Rows]]:
    """Yield rows of node2vec for several (p, q)."""
    for p, q in WAYS:
        yield f"p {p:g}, q {q:g}", node2vec(num_nodes, edges, seed, p=p, q=q)


Method = Callable[[int, Pairs, int], Iterator[tuple[str, Rows]]]


def best_of(method: Method, labels: NDArray[np.int64], split: Split, seed: int) -> dict[str, Any]:
    """Judge a method, its settings chosen on validation: for the probe, and for links."""
    judged: dict[str, Any] = {}
    made = [
        (name, *probe(r, labels, split)) for name, r in method(split.num_nodes, split.edges, seed)
    ]
    judged["setting_probe"], _, judged["f1"] = max(made, key=lambda found: found[1])
    links = [(name, *link_auc(r, split)) for name, r in method(split.num_nodes, split.kept, seed)]
    judged["setting_links"], _, judged["auc"], judged["auc_known"] = max(
        links, key=lambda found: found[1]
    )
    return judged
