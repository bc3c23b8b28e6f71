"""Posteriors of any nodes under every shard model, from sparse features, row by row.

A node's posterior is a function of the weights and of its own two-hop neighbourhood. Every sum
runs over one row in the order of node positions, so the bits of a row do not depend on which
other rows are asked for, on their order or on the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numba import njit
from numpy.typing import NDArray

from grapheraser.graph import Graph
from grapheraser.graph.csr import slices_of
from grapheraser.models import ModelSpec, input_parameters
from grapheraser.training.task import ShardWeights

Matrix = NDArray[np.float32]
ACTIVATION_CODES = {"none": 0, "relu": 1, "elu": 2}
NORM_EPS = 1e-5
LEAK = 0.2


def posteriors(
    spec: ModelSpec,
    weights: Sequence[ShardWeights],
    graph: Graph,
    positions: NDArray[np.int64],
) -> NDArray[np.float32]:
    """Class probabilities in eval mode, on the whole graph.

    Args:
        spec: the architecture of every shard model.
        weights: one entry per shard.
        graph: the whole current graph; all of its edges count, also those between shards.
        positions: int64 ``[m]``, rows of ``graph``; any order, repeats allowed.

    Returns: float32 ``[len(weights), m, num_classes]``.
    """
    wanted, back = np.unique(np.asarray(positions, dtype=np.int64), return_inverse=True)
    out = np.empty((len(weights), len(wanted), graph.num_classes), dtype=np.float32)
    if len(wanted):
        num_hops = 0 if spec.kind == "mlp" else 2
        field = _ReceptiveField.around(graph, wanted, num_hops)
        for shard, shard_weights in enumerate(weights):
            out[shard] = _softmax(_logits(spec, shard_weights, field))
    return out[:, back]


@dataclass(frozen=True)
class _Hop:
    """Edges from the nodes of one ring of the neighbourhood to those of the next, wider one.

    Attributes:
        indptr, indices: CSR; columns are places in the wider ring.
        own: place of each row's own node in the wider ring.
        degree_out, degree_in: float32, neighbours in the whole graph of rows and of columns.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[np.int64]
    own: NDArray[np.int64]
    degree_out: Matrix
    degree_in: Matrix


@dataclass(frozen=True)
class _ReceptiveField:
    """The rows that the wanted posteriors depend on.

    Attributes:
        hops: outer layer first: from two hops away to one, and from one hop to the wanted nodes.
        rows: positions of the outermost ring, whose features are read.
        x_indptr, x_indices, x_data: CSR features of the whole graph.
    """

    hops: tuple[_Hop, ...]
    rows: NDArray[np.int64]
    x_indptr: NDArray[np.int32]
    x_indices: NDArray[np.int32]
    x_data: Matrix
    num_features: int

    @classmethod
    def around(cls, graph: Graph, wanted: NDArray[np.int64], num_hops: int) -> _ReceptiveField:
        hops: list[_Hop] = []
        ring = wanted
        for _ in range(num_hops):
            wider = graph.within_hops(ring, 1)
            place = np.full(graph.num_nodes, -1, dtype=np.int64)
            place[wider] = np.arange(len(wider))
            counts = graph.indptr[ring + 1] - graph.indptr[ring]
            hop = _Hop(
                indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                indices=place[graph.indices[slices_of(graph.indptr, ring)]],
                own=place[ring],
                degree_out=graph.degree[ring].astype(np.float32),
                degree_in=graph.degree[wider].astype(np.float32),
            )
            hops.insert(0, hop)
            ring = wider
        x = graph.x
        return cls(tuple(hops), ring, x.indptr, x.indices, x.data, graph.num_features)


_LAYOUTS: WeakKeyDictionary[ShardWeights, dict[str, Matrix]] = WeakKeyDictionary()


def _row_major(spec: ModelSpec, weights: ShardWeights) -> dict[str, Matrix]:
    """The weights with matrices as ``[in, out]``: a feature's weights lie side by side.

    Kept as long as the weights themselves live, and not a moment longer.
    """
    known = _LAYOUTS.get(weights)
    if known is None:
        known = {
            name: np.ascontiguousarray(np.asarray(tensor, dtype=np.float32).T)
            if tensor.ndim == 2
            else np.ascontiguousarray(tensor, dtype=np.float32).reshape(-1)
            for name, tensor in weights.tensors.items()
        }
        first = input_parameters(spec)
        known["input"] = np.ascontiguousarray(np.hstack([known.pop(name) for name in first]))
        _LAYOUTS[weights] = known
    return known


def _logits(spec: ModelSpec, weights: ShardWeights, field: _ReceptiveField) -> Matrix:
    """Logits of the innermost ring ``[m, num_classes]``."""
    w = _row_major(spec, weights)
    place = np.full(field.num_features, -1, dtype=np.int64)
    place[weights.columns] = np.arange(len(weights.columns))
    z = _project(field.rows, field.x_indptr, field.x_indices, field.x_data, place, w["input"])
    act = ACTIVATION_CODES[spec.activation]
    match spec.kind:
        case "gcn":
            return _gcn(spec, w, field, z, act)
        case "sage":
            return _sage(w, field, z, act)
        case "gat":
            return _gat(spec, w, field, z, act)
        case "gin":
            return _gin(spec, w, field, z, act)
        case _:
            h = _activate(_add(z, w["lin1.bias"]), act)
            h = _activate(_linear(h, w["lin2.weight"], w["lin2.bias"]), act)
            return _linear(h, w["lin3.weight"], w["lin3.bias"])


def _gcn(
    spec: ModelSpec, w: dict[str, Matrix], field: _ReceptiveField, z: Matrix, act: int
) -> Matrix:
    outer, inner = field.hops
    h = _convolve(*_edges(outer), spec.self_loops, z)
    h = _activate(_add(h, w["conv1.bias"]) if spec.bias else h, act)
    h = _matmul(h, w["conv2.lin.weight"])
    out = _convolve(*_edges(inner), spec.self_loops, h)
    return _add(out, w["conv2.bias"]) if spec.bias else out


def _sage(w: dict[str, Matrix], field: _ReceptiveField, z: Matrix, act: int) -> Matrix:
    outer, inner = field.hops
    h = z.shape[1] // 2
    left, right = np.ascontiguousarray(z[:, :h]), np.ascontiguousarray(z[:, h:])
    hidden = _mean(outer.indptr, outer.indices, left) + right[outer.own]
    hidden = _activate(_add(hidden, w["conv1.lin_l.bias"]), act)
    left = _matmul(hidden, w["conv2.lin_l.weight"])
    right = _linear(hidden[inner.own], w["conv2.lin_r.weight"], w["conv2.lin_l.bias"])
    return _mean(inner.indptr, inner.indices, left) + right


def _gat(
    spec: ModelSpec, w: dict[str, Matrix], field: _ReceptiveField, z: Matrix, act: int
) -> Matrix:
    for layer, heads, hop in zip((1, 2), (spec.heads, 1), field.hops, strict=True):
        name = f"conv{layer}"
        if layer == 2:
            z = _matmul(_activate(z, act), w["conv2.lin.weight"])
        source, target = w[f"{name}.att_src"], w[f"{name}.att_dst"]
        z = _attend(hop.indptr, hop.indices, hop.own, spec.self_loops, heads, source, target, z)
        z = _add(z, w[f"{name}.bias"])
    return z


def _gin(
    spec: ModelSpec, w: dict[str, Matrix], field: _ReceptiveField, z: Matrix, act: int
) -> Matrix:
    relu = ACTIVATION_CODES["relu"]
    for layer, hop in zip((1, 2), field.hops, strict=True):
        name = f"conv{layer}.nn"
        if layer == 2:
            z = _matmul(z, w[f"{name}.0.weight"])
        z = _sum(hop.indptr, hop.indices, z) + z[hop.own]
        z = _activate(_add(z, w[f"{name}.0.bias"]), relu)
        z = _linear(z, w[f"{name}.2.weight"], w[f"{name}.2.bias"])
        if layer == 2 and not spec.linear_head:
            return z
        if spec.batch_norm:
            z = _normalise(z, w, f"norm{layer}")
        z = _activate(z, act)
    return _linear(z, w["head.weight"], w["head.bias"])


def _normalise(z: Matrix, w: dict[str, Matrix], name: str) -> Matrix:
    """Batch norm with running statistics."""
    scale = w[f"{name}.weight"] / np.sqrt(w[f"{name}.running_var"] + np.float32(NORM_EPS))
    return (z - w[f"{name}.running_mean"]) * scale + w[f"{name}.bias"]


def _edges(
    hop: _Hop,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], Matrix, Matrix]:
    return hop.indptr, hop.indices, hop.own, hop.degree_out, hop.degree_in


def _add(z: Matrix, bias: Matrix) -> Matrix:
    return z + bias


def _linear(h: Matrix, weight: Matrix, bias: Matrix) -> Matrix:
    return _matmul(h, weight) + bias


@njit(cache=True, nogil=True)
def _project(
    rows: NDArray[np.int64],
    indptr: NDArray[np.int32],
    indices: NDArray[np.int32],
    data: Matrix,
    place: NDArray[np.int64],
    weight: Matrix,
) -> Matrix:
    """Rows of X W ``[len(rows), width]``; ``place`` maps a feature to a row of W, or -1."""
    width = weight.shape[1]
    out = np.zeros((len(rows), width), dtype=np.float32)
    for r in range(len(rows)):
        for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
            at = place[indices[k]]
            if at >= 0:
                for u in range(width):
                    out[r, u] += data[k] * weight[at, u]
    return out


@njit(cache=True, nogil=True)
def _matmul(h: Matrix, weight: Matrix) -> Matrix:
    """``h @ weight``, each row by itself: a BLAS may sum differently when there are more rows."""
    out = np.zeros((h.shape[0], weight.shape[1]), dtype=np.float32)
    for r in range(h.shape[0]):
        for k in range(h.shape[1]):
            for u in range(weight.shape[1]):
                out[r, u] += h[r, k] * weight[k, u]
    return out


@njit(cache=True, nogil=True)
def _convolve(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    own: NDArray[np.int64],
    degree_out: Matrix,
    degree_in: Matrix,
    self_loops: bool,
    z: Matrix,
) -> Matrix:
    """GCN's symmetrically normalised sum over neighbours."""
    out = np.zeros((len(own), z.shape[1]), dtype=np.float32)
    loop = np.float32(1.0 if self_loops else 0.0)
    for r in range(len(own)):
        degree = degree_out[r] + loop
        if degree == 0:
            continue
        here = np.float32(1.0) / np.sqrt(degree)
        for k in range(indptr[r], indptr[r + 1]):
            j = indices[k]
            factor = here / np.sqrt(degree_in[j] + loop)
            for u in range(z.shape[1]):
                out[r, u] += factor * z[j, u]
        if self_loops:
            for u in range(z.shape[1]):
                out[r, u] += here * here * z[own[r], u]
    return out


@njit(cache=True, nogil=True)
def _sum(indptr: NDArray[np.int64], indices: NDArray[np.int64], z: Matrix) -> Matrix:
    """Sum over neighbours."""
    out = np.zeros((len(indptr) - 1, z.shape[1]), dtype=np.float32)
    for r in range(len(indptr) - 1):
        for k in range(indptr[r], indptr[r + 1]):
            for u in range(z.shape[1]):
                out[r, u] += z[indices[k], u]
    return out


@njit(cache=True, nogil=True)
def _mean(indptr: NDArray[np.int64], indices: NDArray[np.int64], z: Matrix) -> Matrix:
    """Mean over neighbours; zero where there are none."""
    out = _sum(indptr, indices, z)
    for r in range(out.shape[0]):
        share = np.float32(1.0) / np.float32(max(1, indptr[r + 1] - indptr[r]))
        for u in range(z.shape[1]):
            out[r, u] *= share
    return out


@njit(cache=True, nogil=True)
def _attend(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    own: NDArray[np.int64],
    self_loops: bool,
    heads: int,
    att_source: Matrix,
    att_target: Matrix,
    z: Matrix,
) -> Matrix:
    """GAT's attention-weighted sum over neighbours, heads side by side."""
    n, width = len(own), z.shape[1] // heads
    score = np.zeros((z.shape[0], heads), dtype=np.float32)
    target = np.zeros((n, heads), dtype=np.float32)
    for j in range(z.shape[0]):
        for u in range(z.shape[1]):
            score[j, u // width] += z[j, u] * att_source[u]
    for r in range(n):
        for u in range(z.shape[1]):
            target[r, u // width] += z[own[r], u] * att_target[u]

    out = np.zeros((n, z.shape[1]), dtype=np.float32)
    for r in range(n):
        count = indptr[r + 1] - indptr[r] + (1 if self_loops else 0)
        for head in range(heads):
            best = np.float32(-np.inf)
            for e in range(count):
                k = indptr[r] + e
                j = indices[k] if k < indptr[r + 1] else own[r]
                best = max(best, _leaky(score[j, head] + target[r, head]))
            total = np.float32(0.0)
            for e in range(count):
                k = indptr[r] + e
                j = indices[k] if k < indptr[r + 1] else own[r]
                share = np.exp(_leaky(score[j, head] + target[r, head]) - best)
                total += share
                for u in range(head * width, (head + 1) * width):
                    out[r, u] += share * z[j, u]
            if count:
                for u in range(head * width, (head + 1) * width):
                    out[r, u] /= total
    return out


@njit(cache=True, nogil=True)
def _leaky(value: np.float32) -> np.float32:
    return value if value > 0 else np.float32(LEAK) * value


@njit(cache=True, nogil=True)
def _activate(z: Matrix, code: int) -> Matrix:
    """Apply an activation of `ACTIVATION_CODES`."""
    out = z.copy()
    if code != 0:
        for r in range(z.shape[0]):
            for u in range(z.shape[1]):
                if z[r, u] < 0:
                    out[r, u] = np.float32(0.0) if code == 1 else np.expm1(z[r, u])
    return out


@njit(cache=True, nogil=True)
def _softmax(logits: Matrix) -> Matrix:
    out = np.empty_like(logits)
    for r in range(logits.shape[0]):
        best = logits[r].max()
        total = np.float32(0.0)
        for c in range(logits.shape[1]):
            out[r, c] = np.exp(logits[r, c] - best)
            total += out[r, c]
        for c in range(logits.shape[1]):
            out[r, c] /= total
    return out
