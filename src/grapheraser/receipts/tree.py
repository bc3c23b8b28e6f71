"""The log's Merkle tree (RFC 9162, section 2.1): roots, proofs of inclusion and of consistency.

Leaves are given by their hashes, from which everything else follows. Standard library alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

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
