"""The Merkle tree of a graph, keyed by node id: its root is what the fingerprint is made of.

The tree has sixteen branches at each of sixteen levels, one for each hexadecimal digit of an id,
the most significant first. Below the last level lies the leaf of a node. The digest of an inner
node is that of the branches that hold anything:

    leaf   SHA-256(0, id, label, role, number of neighbours, their ids, columns, values)
           SHA-256(2, the same, what each neighbour's entry carries), where edges carry anything
           SHA-256(4 or 6, the same, its targets), where labels are no classes
    node   SHA-256(1, two bytes that say which branches are there, their digests)

So a change costs as much as it touches, times the levels. A proof shows, level by level, the other
branches on the way to a node. That a node is absent is shown by the empty branch on the way to it,
without showing the leaf of any other.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from grapheraser.graph.pages.pages import Pages
from grapheraser.kernels.paged import (
    NODES,
    ROOM,
    edge_value_rows,
    feature_rows,
    labels_at,
    located,
    neighbour_rows,
    nodes_at,
    roles_at,
    target_rows,
)
from grapheraser.receipts.tree import EMPTY, LEVELS, Proof, Step, joined

# Bits of the first byte of a leaf: edges carry values, labels are targets.
_VALUES, _TARGETS = 2, 4
_SIXTEENS = 16 ** np.arange(1, LEVELS, dtype=np.int64)

Ids = NDArray[np.int64]
Digests = NDArray[np.uint8]


class Leaves(NamedTuple):
    """The leaves of one page."""

    leaves: Digests  # ``[m, 32]``, the digests of its nodes
    levels: NDArray[np.int8]  # int8 ``[m]``, the highest level at which each node is alone
    # ``[m, 32]``, the digests of their branches there; where no node is alone at any level, the
    # leaves themselves.
    tops: Digests
    # The digests of the blocks within the page that hold several nodes, by level and smallest id.
    blocks: dict[tuple[int, int], bytes]
    root: bytes  # the digest of the page's block


class KeptLeaves(NamedTuple):
    """Leaves that were stored; the rest is worked out once a change touches their page."""

    leaves: Digests
    root: bytes


@dataclass(frozen=True, eq=False)
class MerkleTree:
    """The tree of a graph's pages."""

    pages: Pages  # of the graph
    leaves: tuple[Leaves | KeptLeaves, ...]  # of each page
    # Digests of the blocks of pages and of all blocks around them, by their level and smallest id.
    inner: dict[tuple[int, int], bytes]

    @classmethod
    def of(cls, pages: Pages) -> MerkleTree:
        """Digest every node."""
        counts = enumerate(pages.directory.counts.tolist())
        places = ((number, number * ROOM + np.arange(count)) for number, count in counts)
        leaves = tuple(_page_leaves(pages, n, leaf_digests(pages, part)) for n, part in places)
        return cls(pages, leaves, _inner(pages, leaves))

    @classmethod
    def restored(cls, pages: Pages, leaves: Iterable[KeptLeaves]) -> MerkleTree:
        """Put the tree together from stored leaves; digest no node."""
        kept = tuple(leaves)
        return cls(pages, kept, _inner(pages, kept))

    @property
    def root(self) -> bytes:
        return self.inner.get((LEVELS, 0), EMPTY)

    def changed(self, pages: Pages, touched: Ids) -> MerkleTree:
        """Return the tree of pages that differ in touched ids (sorted), and in ids gone."""
        old, new = self.pages.table, pages.table
        if not self.pages.directory.same_blocks(pages.directory):
            return self._recut(pages, touched)
        moved = (old.pages[:, NODES:] != new.pages[:, NODES:]).any(axis=1)  # another address
        leaves, inner = list(self.leaves), dict(self.inner)
        places = located(new, touched)
        digests = leaf_digests(pages, places)
        dirty = np.flatnonzero(moved).tolist()
        for number in dirty:
            low, high = np.searchsorted(places, [number * ROOM, (number + 1) * ROOM])
            rows, part = places[low:high] % ROOM, digests[low:high]
            leaves[number] = _updated(self, pages, number, rows, part)
            inner[_key(pages, number)] = leaves[number].root
        _climb(pages, inner, dirty)
        return MerkleTree(pages, tuple(leaves), inner)

    def _recut(self, pages: Pages, touched: Ids) -> MerkleTree:
        """Do as `changed` where blocks were joined or split; keep leaves not touched."""
        before = {_key(self.pages, number): number for number in range(len(self.leaves))}
        leaves: list[Leaves | KeptLeaves] = []
        for number in range(len(pages.pages)):
            same = before.get(_key(pages, number))
            if same is not None and self.pages.pages[same] is pages.pages[number]:
                leaves.append(self.leaves[same])
            else:
                leaves.append(_again(self, pages, number, touched))
        return MerkleTree(pages, tuple(leaves), _inner(pages, leaves))

    def leaf(self, node: int) -> bytes | None:
        """Return the digest of a node's leaf; None where there is no such node."""
        (place,) = located(self.pages.table, np.array([node], dtype=np.int64)).tolist()
        return None if place < 0 else self.leaves[place // ROOM].leaves[place % ROOM].tobytes()

    def proof(self, node: int) -> Proof:
        """Prove that a node is in the graph, or that it is not."""
        leaf, steps = self.leaf(node), []
        for level in range(LEVELS, 0, -1):
            branch = node >> 4 * (level - 1) & 15
            digests = self._branches(level, (node >> 4 * level) << 4 * level)
            mask = sum(1 << number for number in digests)
            others = tuple(digest for number, digest in digests.items() if number != branch)
            steps.append(Step(mask, others))
            if branch not in digests:
                break
        return Proof(node, leaf, tuple(steps))

    def _branches(self, level: int, start: int) -> dict[int, bytes]:
        """Return the digests of the branches of a block, by number."""
        inside = self._page_around(level, start)
        if inside is None:
            return _under(self.inner, level, start)
        leaves = _whole(self, inside)
        ids = _ids(self.pages, inside)
        low, high = np.searchsorted(ids, [start, min(start + 16**level, 2**63 - 1)])
        high = int(high) + int(high < len(ids) and start + 16**level > 2**63 - 1)
        return _split(ids.tolist(), leaves, int(low), int(high), level)

    def _page_around(self, level: int, start: int) -> int | None:
        """Return the page whose block holds this block or is it."""
        number = self.pages.directory.page_of(start)
        if number is None or int(self.pages.directory.sizes[number]) < level:
            return None
        return number


def leaf_digests(pages: Pages, places: Ids) -> Digests:
    """Digest the nodes at these places ``[len(places), 32]``.

    A leaf has one spelling: neighbours and columns ascend, numbers are little-endian, and their
    widths are fixed. Whatever changes the order or a width changes every fingerprint.
    """
    table, places = pages.table, np.asarray(places, dtype=np.int64)
    indptr, around = neighbour_rows(table, places)
    x_indptr, columns, values = feature_rows(table, places)
    degree = np.diff(indptr)
    heads = np.stack([nodes_at(table, places), labels_at(table, places)], axis=1)
    heads = np.column_stack([heads, roles_at(table, places), degree]).astype("<i8")
    head, near = heads.tobytes(), around.astype("<i8", copy=False).tobytes()
    column, value = columns.astype("<i4", copy=False).tobytes(), values.astype("<f4").tobytes()
    ends, x_ends = (8 * indptr).tolist(), (4 * x_indptr).tolist()
    width, size = table.edge_width, pages.row_bytes
    tag = bytes([_VALUES * (width > 0) + _TARGETS * (size > 0)])
    carried = edge_value_rows(table, places).astype("<f4", copy=False).tobytes() if width else b""
    labels = target_rows(table, places, size).tobytes() if size else b""
    sha, parts = hashlib.sha256, []
    for i in range(len(places)):
        start, end = x_ends[i], x_ends[i + 1]
        content = head[32 * i : 32 * i + 32] + near[ends[i] : ends[i + 1]]
        content += column[start:end] + value[start:end]
        content += carried[ends[i] // 2 * width : ends[i + 1] // 2 * width]
        content += labels[size * i : size * i + size]
        parts.append(sha(tag + content).digest())
    return np.frombuffer(b"".join(parts), dtype=np.uint8).reshape(-1, 32)


def _under(inner: dict[tuple[int, int], bytes], level: int, start: int) -> dict[int, bytes]:
    """Return the digests of the branches of a block around pages, by number, ascending."""
    below, step = level - 1, 16 ** (level - 1)
    keys = ((below, start + branch * step) for branch in range(16))
    return {branch: inner[key] for branch, key in enumerate(keys) if key in inner}


def _node(branches: dict[int, bytes]) -> bytes:
    """Digest a node of the tree from its branches, which ascend."""
    return joined(sum(1 << branch for branch in branches), list(branches.values()))


def _chain(digest: bytes, node: int, low: int, high: int) -> bytes:
    """Digest a branch that holds one node alone, from one level up to another."""
    for level in range(low, high):
        digest = joined(1 << (node >> 4 * level & 15), [digest])
    return digest


def _ids(pages: Pages, number: int) -> Ids:
    count = int(pages.directory.counts[number])
    return pages.pages[number].nodes[: 8 * count].view(np.int64)


def _key(pages: Pages, number: int) -> tuple[int, int]:
    directory = pages.directory
    return int(directory.sizes[number]), int(directory.starts[number])


def _alone(ids: Ids, size: int) -> NDArray[np.int8]:
    """Return the highest level, up to the block's, at which each of the sorted ids is alone."""
    if len(ids) == 1:
        return np.array([size], dtype=np.int8)
    shared = np.searchsorted(_SIXTEENS, ids[1:] ^ ids[:-1], side="right")
    return np.minimum(np.append(shared, LEVELS), np.append(LEVELS, shared)).astype(np.int8)


def _page_leaves(
    pages: Pages, number: int, leaves: Digests, known: tuple[Ids, Leaves] | None = None
) -> Leaves:
    """Digest the block of a page from its leaves; take over tops that are known."""
    size, ids = int(pages.directory.sizes[number]), _ids(pages, number)
    levels = _alone(ids, size)
    tops, again = leaves.copy() if levels.any() else leaves, np.ones(len(ids), dtype=bool)
    blocks: dict[tuple[int, int], bytes] = {}
    if known is not None and len(known[0]):
        before, old = known
        at = np.minimum(np.searchsorted(before, ids), len(before) - 1)
        same = (before[at] == ids) & (old.levels[at] == levels)
        same &= (old.leaves[at] == leaves).all(axis=1)
        tops[same] = old.tops[at[same]]
        again = ~same
        if old.blocks:
            stay = np.minimum(np.searchsorted(ids, before), len(ids) - 1)
            gone = before[ids[stay] != before]
            blocks = _clean(old.blocks, np.concatenate([gone, ids[again]]), size)
    _raise(tops, ids, levels, np.flatnonzero(again & (levels > 0)))
    return _rooted(Leaves(leaves, levels, tops, blocks, b""), ids, size)


def _raise(tops: Digests, ids: Ids, levels: NDArray[np.int8], rows: Ids) -> None:
    """Turn the leaves in some rows into the digests of their branches."""
    for row in rows.tolist():
        digest = _chain(tops[row].tobytes(), int(ids[row]), 0, int(levels[row]))
        tops[row] = np.frombuffer(digest, dtype=np.uint8)


def _rooted(page: Leaves, ids: Ids, size: int) -> Leaves:
    """Return the page with the digest of its block."""
    return page._replace(root=_block(ids.tolist(), page, 0, len(ids), size))


def _whole(tree: MerkleTree, number: int) -> Leaves:
    """Return the leaves of a page with all that belongs to them."""
    page = tree.leaves[number]
    return page if isinstance(page, Leaves) else _page_leaves(tree.pages, number, page.leaves)


def _clean(
    blocks: dict[tuple[int, int], bytes], nodes: Ids, size: int
) -> dict[tuple[int, int], bytes]:
    """Return the digests of the blocks that hold none of these nodes."""
    left = dict(blocks)
    for node in nodes.tolist():
        for level in range(1, size + 1):
            left.pop((level, node >> 4 * level << 4 * level), None)
    return left


def _block(ids: list[int], page: Leaves, low: int, high: int, level: int) -> bytes:
    """Digest a block of ids, all of one page."""
    first = ids[low]
    if high - low == 1:
        return _chain(page.tops[low].tobytes(), first, int(page.levels[low]), level)
    key = level, first >> 4 * level << 4 * level
    known = page.blocks.get(key)
    if known is None:
        known = page.blocks[key] = _node(_split(ids, page, low, high, level))
    return known


def _split(ids: list[int], page: Leaves, low: int, high: int, level: int) -> dict[int, bytes]:
    """Digest the branches of a block of ids, all of one page, by number, ascending."""
    if level == 1:
        content = page.leaves[low:high].tobytes()
        return {ids[low + i] & 15: content[32 * i : 32 * i + 32] for i in range(high - low)}
    if high - low == 1 and int(page.levels[low]) >= level:
        node = ids[low]
        digest = _chain(page.leaves[low].tobytes(), node, 0, level - 1)
        return {node >> 4 * (level - 1) & 15: digest}
    shift, found = 4 * (level - 1), {}
    while low < high:
        number = ids[low] >> shift
        end = bisect_left(ids, number + 1 << shift, low, high)
        found[number & 15] = _block(ids, page, low, end, level - 1)
        low = end
    return found


def _updated(tree: MerkleTree, pages: Pages, number: int, rows: Ids, digests: Digests) -> Leaves:
    """Return the leaves of a page of the same block, with other digests in some rows."""
    old, ids, before = tree.leaves[number], _ids(pages, number), _ids(tree.pages, number)
    same = tree.pages.table.pages[number, NODES] == pages.table.pages[number, NODES]
    if same:
        leaves = old.leaves.copy()
    else:
        leaves = np.empty((len(ids), 32), dtype=np.uint8)
        at = np.minimum(np.searchsorted(before, ids), len(before) - 1)
        stays = before[at] == ids
        leaves[stays] = old.leaves[at[stays]]
    leaves[rows] = digests
    if isinstance(old, KeptLeaves):  # no blocks are known that could be taken over
        return _page_leaves(pages, number, leaves)
    if not same:
        return _page_leaves(pages, number, leaves, (before, old))
    tops = leaves
    if old.tops is not old.leaves:
        tops = old.tops.copy()
        tops[rows] = digests
        _raise(tops, ids, old.levels, rows)
    size = int(pages.directory.sizes[number])
    made = Leaves(leaves, old.levels, tops, _clean(old.blocks, ids[rows], size), b"")
    return _rooted(made, ids, size)


def _again(tree: MerkleTree, pages: Pages, number: int, touched: Ids) -> Leaves:
    """Return the leaves of a page of another block; digest only nodes that are touched or new."""
    ids = _ids(pages, number)
    numbers = _pages_over(tree.pages, ids)
    old_ids = np.concatenate([ids[:0], *(_ids(tree.pages, old) for old in numbers)])
    leaves = np.empty((len(ids), 32), dtype=np.uint8)
    fresh, known = np.isin(ids, touched) | ~np.isin(ids, old_ids), None
    if len(old_ids):
        olds: Any = zip(*(_whole(tree, old)[:3] for old in numbers), strict=True)
        own, levels, tops = map(np.concatenate, olds)
        known = old_ids, Leaves(own, levels, tops, {}, b"")
        leaves[~fresh] = known[1].leaves[np.searchsorted(old_ids, ids[~fresh])]
    rows = np.flatnonzero(fresh)
    leaves[rows] = leaf_digests(pages, number * ROOM + rows)
    return _page_leaves(pages, number, leaves, known)


def _pages_over(pages: Pages, ids: Ids) -> list[int]:
    """Return the pages of another graph that hold ids in the range of these."""
    if len(ids) == 0 or len(pages.pages) == 0:
        return []
    starts = pages.directory.starts
    low = max(0, int(np.searchsorted(starts, ids[0], side="right")) - 1)
    return list(range(low, int(np.searchsorted(starts, ids[-1], side="right"))))


def _inner(pages: Pages, leaves: Sequence[Leaves | KeptLeaves]) -> dict[tuple[int, int], bytes]:
    inner = {_key(pages, number): page.root for number, page in enumerate(leaves)}
    _climb(pages, inner, range(len(leaves)))
    return inner


def _climb(pages: Pages, inner: dict[tuple[int, int], bytes], dirty: Iterable[int]) -> None:
    """Compute the digests of all blocks around these pages, from small to large."""
    waiting: dict[int, set[int]] = {level: set() for level in range(1, LEVELS + 1)}
    for number in dirty:
        level, start = _key(pages, number)
        if level < LEVELS:
            waiting[level + 1].add(start >> 4 * (level + 1) << 4 * (level + 1))
    for level in range(1, LEVELS + 1):
        for start in waiting[level]:
            inner[level, start] = _node(_under(inner, level, start))
            if level < LEVELS:
                waiting[level + 1].add(start >> 4 * (level + 1) << 4 * (level + 1))
