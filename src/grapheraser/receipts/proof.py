"""Proofs about trees with sixteen branches at each level, keyed by hexadecimal digits.

See `graph.proof.merkle` and `graph.proof.register` for the trees. The standard library alone checks
a proof.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

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
