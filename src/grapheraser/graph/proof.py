"""Proofs that a node is in a graph, or that it is not; the standard library alone checks them.

See `merkle` for the tree that they are about.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

LEVELS = 16
EMPTY = hashlib.sha256(b"\x01\x00\x00").digest()
_NODE = b"\x01"


@dataclass(frozen=True)
class Step:
    """One level of a proof.

    Attributes:
        branches: two bytes as a number, bit b for branch b.
        digests: of the branches that are there, in order, without the one on the way.
    """

    branches: int
    digests: tuple[bytes, ...]


@dataclass(frozen=True)
class Proof:
    """That a node has a certain leaf in a tree, or that it has none.

    Attributes:
        node: its id.
        leaf: the digest of its leaf; None where it is absent.
        steps: from the root down, to the node or to the empty branch on the way to it.
    """

    node: int
    leaf: bytes | None
    steps: tuple[Step, ...]

    def root(self) -> bytes:
        """The root that the proof leads to; it holds for the tree that has this root."""
        depth = len(self.steps)
        digest = self.leaf
        if (digest is None and not 1 <= depth <= LEVELS) or (digest and depth != LEVELS):
            raise ValueError("the proof has the wrong number of levels")
        for level in range(depth, 0, -1):
            step = self.steps[level - 1]
            branch = self.node >> 4 * (LEVELS - level) & 15
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


def joined(branches: int, digests: list[bytes]) -> bytes:
    """The digest of an inner node: which branches are there, and theirs."""
    head = _NODE + branches.to_bytes(2, "little")
    return hashlib.sha256(head + b"".join(digests)).digest()
