"""Kernels of the local members: lists of the nearest rows, and regression on them."""

from __future__ import annotations

import numpy as np

from grapheraser.aggregation.members.dual import SHARPNESS
from grapheraser.graphs.colours import COLUMNS
from grapheraser.kernels.cholesky import solve_few
from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.elementary import exponential

# The graphs that are regressed on, and how many more are known of a judged graph, so that a few
# can go before it is compared with all references again.
_NEAREST, _SPARE = 32, 16
# Ids that are looked through one by one.
_FEW = 8
# Of the kernel: of similarity and of size; and what is added to its diagonal.
_SHARP, _SIZES, _RIDGE = 4.0, 0.5, 0.2


@compiled
def index(pointers, columns, values):  # type: ignore[no-untyped-def]
    """Return rows by column: where each column begins, and its rows and values."""
    starts = np.zeros(COLUMNS + 1, dtype=np.int64)
    for column in columns:
        starts[column + 1] += 1
    for column in range(COLUMNS):
        starts[column + 1] += starts[column]
    at = starts[:-1].copy()
    owners, carried = np.empty(len(columns), dtype=np.int32), np.empty(len(columns), np.float32)
    for r in range(len(pointers)):
        for e in range(pointers[r, 0], pointers[r, -1]):
            place = at[columns[e]]
            owners[place], carried[place] = r, values[e]
            at[columns[e]] += 1
    return starts, owners, carried


@compiled
def nearest(rows, own, nodes, index, shares):  # type: ignore[no-untyped-def]
    """Find the references most similar to each row, but for the graph itself.

    Products are added in the order of columns, as `_products` does: the same bits.
    """
    m, names, most = len(rows.pointers), len(shares), _NEAREST + _SPARE
    near = np.full((m, names, most), -1, dtype=np.int64)
    similar = np.full((m, names, most), -1.0)
    product, means = np.empty(len(nodes)), np.empty((names, len(nodes)))
    for r in range(m):
        means[:] = 0.0
        for block in range(shares.shape[1]):
            _multiply(rows, r, block, index, product)
            for k in range(names):
                if shares[k, block] > 0.0:
                    for i in range(len(nodes)):
                        means[k, i] += shares[k, block] * product[i]
        for k in range(names):
            for i in range(len(nodes)):
                if means[k, i] >= similar[r, k, most - 1] and nodes[i] != own[r]:
                    _let_in(near[r, k], similar[r, k], nodes[i], means[k, i])
    return near, similar


@compiled
def _multiply(rows, r, block, index, product):  # type: ignore[no-untyped-def]
    """Multiply a block of a row with those of all references."""
    starts, owners, carried = index
    product[:] = 0.0
    for e in range(rows.pointers[r, block], rows.pointers[r, block + 1]):
        value, column = np.float64(rows.values[e]), rows.columns[e]
        for i in range(starts[column], starts[column + 1]):
            product[owners[i]] += np.float64(carried[i]) * value


@compiled(inline=True)
def _open(wide, rows, r):  # type: ignore[no-untyped-def]
    """Write a row where every column has its place."""
    for e in range(rows.pointers[r, 0], rows.pointers[r, -1]):
        wide[rows.columns[e]] = rows.values[e]


@compiled(inline=True)
def _close(wide, rows, r):  # type: ignore[no-untyped-def]
    for e in range(rows.pointers[r, 0], rows.pointers[r, -1]):
        wide[rows.columns[e]] = 0.0


@compiled
def _products(wide, rows, r, shares, blocks):  # type: ignore[no-untyped-def]
    """Multiply a row with one that lies wide open, in the order of columns; blocks with a share."""
    for b in range(len(blocks)):
        total = 0.0
        if shares[b] > 0.0:
            for e in range(rows.pointers[r, b], rows.pointers[r, b + 1]):
                total += np.float64(rows.values[e]) * np.float64(wide[rows.columns[e]])
        blocks[b] = total


@compiled
def _mean(blocks, shares):  # type: ignore[no-untyped-def]
    total = 0.0
    for b in range(len(blocks)):
        if shares[b] > 0.0:
            total += shares[b] * blocks[b]
    return total


@compiled
def _let_in(near, similar, node, value):  # type: ignore[no-untyped-def]
    """Put a reference in its place: most similar first, equals by id; the last one falls out."""
    last = len(near) - 1
    if value < similar[last] or (value == similar[last] and node > near[last] >= 0):
        return False
    at = last
    while at > 0 and (
        value > similar[at - 1] or (value == similar[at - 1] and node < near[at - 1])
    ):
        near[at], similar[at] = near[at - 1], similar[at - 1]
        at -= 1
    near[at], similar[at] = node, value
    return True


@compiled
def exchanged(near, similar, hit, kept, gone, come, new, rows, sample, shares, others):  # type: ignore[no-untyped-def]
    """Take references out of the lists and put others in, in place.

    ``hit`` marks the rows with one of ``gone`` in a list. ``new`` are the rows of those that come,
    ``rows`` those of the sample; ``others`` count the references of each, but for the graph itself,
    before and after.

    Returns: which rows have to be compared with all again; and by member, which have other nearest
    ones.
    """
    m, names, _ = near.shape
    stale, moved = ~kept, np.zeros((m, names), dtype=np.bool_)
    wide, blocks = np.zeros(COLUMNS, dtype=np.float32), np.empty((len(come), shares.shape[1]))
    before, some = np.empty(_NEAREST, dtype=np.int64), shares.sum(axis=0)
    for r in range(m):
        if not (kept[r] and (hit[r] or len(come))):
            continue
        if len(come):
            _open(wide, rows, r)
            for i in range(len(come)):
                _products(wide, new, i, some, blocks[i])
            _close(wide, rows, r)
        for k in range(names):
            before[:] = near[r, k, :_NEAREST]
            # Whoever comes belongs to a list that held all there were.
            whole = _length(near[r, k]) >= others[0][r]
            _take_out(near[r, k], similar[r, k], gone)
            _put_in(near[r, k], similar[r, k], come, blocks, shares[k], sample[r], whole)
            stale[r] |= _length(near[r, k]) < min(_NEAREST, others[1][r]) and not whole
            for j in range(_NEAREST):
                moved[r, k] |= near[r, k, j] != before[j] or _among(near[r, k, j], come)
    return stale, moved


@compiled
def _length(near):  # type: ignore[no-untyped-def]
    count = 0
    while count < len(near) and near[count] >= 0:
        count += 1
    return count


@compiled
def _take_out(near, similar, gone):  # type: ignore[no-untyped-def]
    left = 0
    for j in range(len(near)):
        node, value = near[j], similar[j]
        near[j], similar[j] = -1, -1.0
        if node >= 0 and not _among(node, gone):
            near[left], similar[left] = node, value
            left += 1


@compiled
def _put_in(near, similar, come, blocks, shares, own, whole):  # type: ignore[no-untyped-def]
    """Put those that come into a list; where it does not hold all, only before its last one."""
    left = _length(near)
    bound, last = (similar[left - 1], near[left - 1]) if left else (2.0, -1)
    for i in range(len(come)):
        value = _mean(blocks[i], shares)
        closer = value > bound or (value == bound and come[i] < last)
        if come[i] != own and (closer or whole):
            _let_in(near, similar, come[i], value)


@compiled
def _among(node, nodes):  # type: ignore[no-untyped-def]
    if len(nodes) <= _FEW:
        found = False
        for other in nodes:
            found |= other == node
        return found
    at = np.searchsorted(nodes, node)
    return at < len(nodes) and nodes[at] == node


@compiled
def regress(near, similar, sizes, moved, nodes, rows, targets, shares, classes, out):  # type: ignore[no-untyped-def]
    """Solve each small system in one fixed order, its unknowns from the most similar graph on."""
    wide, blocks = np.zeros(COLUMNS, dtype=np.float32), np.empty(shares.shape[1])
    for r in range(len(near)):
        for k in range(near.shape[1]):
            if not moved[r, k]:
                continue
            count = min(_NEAREST, _length(near[r, k]))
            at = np.searchsorted(nodes, near[r, k, :count])
            kernel = _kernel(at, rows, shares[k], wide, blocks)
            weights = np.empty(count)
            for i in range(count):
                weights[i] = _closeness(similar[r, k, i], sizes[r] - rows.sizes[at[i]])
            # (K + ridge)^-1 k, once for all classes: the kernel is symmetric.
            solve_few(kernel, weights)
            for u in range(targets.shape[1]):
                centre = 0.0 if classes else _centre(targets, at, u)
                total = 0.0
                for i in range(count):
                    if not np.isnan(targets[at[i], u]):
                        total += weights[i] * (targets[at[i], u] - centre)
                out[r, k, u] = SHARPNESS * total if classes else centre + total


@compiled
def _centre(targets, at, u):  # type: ignore[no-untyped-def]
    """Return the mean of what is known of a target; the frame's centre where nothing is."""
    total, known = 0.0, 0
    for i in at:
        if not np.isnan(targets[i, u]):
            total += targets[i, u]
            known += 1
    return total / max(known, 1)


@compiled
def _closeness(similar, apart):  # type: ignore[no-untyped-def]
    return exponential(_SHARP * (similar - 1.0) - _SIZES * apart * apart)


@compiled
def _kernel(at, rows, shares, wide, blocks):  # type: ignore[no-untyped-def]
    """Compare the rows at these places with each other; the lower half, with the ridge."""
    out = np.empty((len(at), len(at)))
    for i in range(len(at)):
        _open(wide, rows, at[i])
        for j in range(i):
            _products(wide, rows, at[j], shares, blocks)
            apart = rows.sizes[at[i]] - rows.sizes[at[j]]
            out[i, j] = _closeness(_mean(blocks, shares), apart)
        out[i, i] = 1.0 + _RIDGE
        _close(wide, rows, at[i])
    return out
