"""Merkle trees and proofs about them, checked by the standard library alone.

The log's tree (RFC 9162, section 2.1) has roots, proofs of inclusion and of consistency; leaves are
given by their hashes, from which everything else follows. `Proof` is about trees with sixteen
branches at each level, keyed by hexadecimal digits: see `graph.proof`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from grapheraser.errors import VerificationError

EMPTY_ROOT = hashlib.sha256(b"").digest()
HASH_SIZE = 32


def leaf_hash(entry: bytes) -> bytes:
    """The hash of a leaf that holds this entry."""
    return hashlib.sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of an inner node."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Growing:
    """A tree that leaves are added to: the roots of its complete subtrees, largest first.

    ``size`` and ``roots`` say how far a tree had come, to go on from there.
    """

    def __init__(
        self, leaves: Iterable[bytes] = (), *, size: int = 0, roots: Sequence[bytes] = ()
    ) -> None:
        self.size = size
        self._roots = list(roots)
        if len(self._roots) != size.bit_count():
            raise VerificationError(f"a log of {size} entries has other roots.")
        for leaf in leaves:
            self.add(leaf)

    @property
    def roots(self) -> tuple[bytes, ...]:
        """The roots of the complete subtrees, largest first: all that it takes to go on."""
        return tuple(self._roots)

    def add(self, leaf: bytes) -> None:
        """Add a leaf by its hash, in O(log size)."""
        size = self.size
        while size & 1:
            leaf = node_hash(self._roots.pop(), leaf)
            size >>= 1
        self._roots.append(leaf)
        self.size += 1

    @property
    def root(self) -> bytes:
        """The root of what was added so far."""
        if not self._roots:
            return EMPTY_ROOT
        root = self._roots[-1]
        for left in self._roots[-2::-1]:
            root = node_hash(left, root)
        return root


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root of a tree."""
    return Growing(leaves).root


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """Return the proof that a leaf is in the tree, from the leaf upwards."""
    if not 0 <= index < len(leaves):
        raise VerificationError(f"the log has no entry {index} (it has {len(leaves)}).")
    if len(leaves) == 1:
        return []
    split = _split(len(leaves))
    if index < split:
        return [*inclusion_proof(leaves[:split], index), root_of(leaves[split:])]
    return [*inclusion_proof(leaves[split:], index - split), root_of(leaves[:split])]


def inclusion_proofs(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """Return the proof of inclusion of every leaf."""
    return _proofs(leaves)[1] if leaves else []


def _proofs(leaves: Sequence[bytes]) -> tuple[bytes, list[list[bytes]]]:
    """The root, and the proof of each leaf."""
    if len(leaves) == 1:
        return leaves[0], [[]]
    split = _split(len(leaves))
    (left, lefts), (right, rights) = _proofs(leaves[:split]), _proofs(leaves[split:])
    for proof in lefts:
        proof.append(right)
    for proof in rights:
        proof.append(left)
    return node_hash(left, right), lefts + rights


def check_inclusion(
    leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes
) -> None:
    """Raise `VerificationError` unless the proof leads from the leaf to the root."""
    if not 0 <= index < size:
        raise VerificationError(f"a log of {size} entries has no entry {index}.")
    sides, found = _sides(index, size - 1), leaf
    if len(sides) == len(proof):
        for is_left, sibling in zip(sides, proof, strict=True):
            found = node_hash(sibling, found) if is_left else node_hash(found, sibling)
        if found == root:
            return
    raise VerificationError("the entry is not in the log that was signed.")


def consistency_proof(leaves: Sequence[bytes], old: int) -> list[bytes]:
    """Return the proof that a tree only grew since it had ``old`` leaves."""
    if not 1 <= old <= len(leaves):
        raise VerificationError(f"no proof leads from {old} entries to {len(leaves)}.")
    return _subproof(leaves, old, is_whole=True)


def check_consistency(
    old: int, new: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes
) -> None:
    """Raise `VerificationError` unless the new tree begins with the leaves of the old one."""
    if old > new:
        raise VerificationError(f"the log had {old} entries and now has {new}.")
    if old in (0, new):
        is_consistent = not proof and (old == 0 or old_root == new_root)
    else:
        # The old root itself is left out of the proof where it is a complete subtree of the new.
        shown = [old_root, *proof] if old & (old - 1) == 0 else [*proof]
        is_consistent = _leads_to_both(old, new, shown, old_root, new_root)
    if not is_consistent:
        raise VerificationError("the log was rewritten: it does not begin as it did.")


def _leads_to_both(
    old: int, new: int, shown: Sequence[bytes], old_root: bytes, new_root: bytes
) -> bool:
    first, last = old - 1, new - 1
    while first & 1:
        first, last = first >> 1, last >> 1
    sides = _sides(first, last)
    if len(shown) != 1 + len(sides):
        return False
    was = now = shown[0]
    for is_left, sibling in zip(sides, shown[1:], strict=True):
        was = node_hash(sibling, was) if is_left else was
        now = node_hash(sibling, now) if is_left else node_hash(now, sibling)
    return was == old_root and now == new_root


def _sides(index: int, last: int) -> list[bool]:
    """For each sibling from a node (of its row) to the root, whether it is on the left."""
    sides = []
    while last:
        if index & 1 or index == last:
            sides.append(True)
            while index and not index & 1:
                index, last = index >> 1, last >> 1
        else:
            sides.append(False)
        index, last = index >> 1, last >> 1
    return sides


def _subproof(leaves: Sequence[bytes], old: int, *, is_whole: bool) -> list[bytes]:
    """``is_whole``: the old tree's root is known to whoever checks, so it need not be shown."""
    if old == len(leaves):
        return [] if is_whole else [root_of(leaves)]
    split = _split(len(leaves))
    if old <= split:
        return [*_subproof(leaves[:split], old, is_whole=is_whole), root_of(leaves[split:])]
    return [*_subproof(leaves[split:], old - split, is_whole=False), root_of(leaves[:split])]


def _split(size: int) -> int:
    """The largest power of two that is smaller."""
    return 1 << ((size - 1).bit_length() - 1)


LEVELS = 16
EMPTY = hashlib.sha256(b"\x01\x00\x00").digest()
_NODE = b"\x01"


@dataclass(frozen=True)
class Step:
    """One level of a proof."""

    branches: int  # two bytes as a number, bit b for branch b
    # Of the branches that are there, in order, without the one on the way.
    digests: tuple[bytes, ...]


@dataclass(frozen=True)
class Proof:
    """A proof that a node has a certain leaf in the tree of a graph, or that it has none."""

    node: int  # its id
    leaf: bytes | None  # the digest of its leaf; None where it is absent
    # From the root down, to the node or to the empty branch on the way to it.
    steps: tuple[Step, ...]

    def root(self) -> bytes:
        """The root that the proof leads to; it holds for the tree that has this root."""
        return root_above(self.node, LEVELS, self.leaf, self.steps)


def root_above(key: int, levels: int, leaf: bytes | None, steps: Sequence[Step]) -> bytes:
    """Return the root that leads through these steps to the leaf of a key, or to the lack of it.

    The digits of the 64-bit key are the way, the most significant first; ``levels`` of them lead to
    a leaf. ``leaf`` is its digest, None where there is none; steps go from the root down.
    """
    depth, digest = len(steps), leaf
    if (digest is None and not 1 <= depth <= levels) or (digest and depth != levels):
        raise ValueError("the proof has the wrong number of levels")
    for level in range(depth, 0, -1):
        step = steps[level - 1]
        branch = key >> 4 * (LEVELS - level) & 15
        there = bool(step.branches >> branch & 1)
        if there != (digest is not None):
            raise ValueError("the proof does not say what it shows")
        digests = list(step.digests)
        if digest is not None:
            digests.insert((step.branches & ((1 << branch) - 1)).bit_count(), digest)
        if len(digests) != step.branches.bit_count():
            raise ValueError("the proof lacks branches, or has too many")
        digest = joined(step.branches, digests)
    assert digest is not None
    return digest


def joined(branches: int, digests: Sequence[bytes]) -> bytes:
    """The digest of an inner node: which branches are there, and theirs."""
    head = _NODE + branches.to_bytes(2, "little")
    return hashlib.sha256(head + b"".join(digests)).digest()
