"""The log's tree against published vectors, and proofs against whole trees."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.errors import VerificationError
from grapheraser.receipts.tree import (
    EMPTY_ROOT,
    Growing,
    check_consistency,
    check_inclusion,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    root_of,
)

# The reference tree of Certificate Transparency: entries, and the root after each.
ENTRIES = [
    bytes.fromhex(entry)
    for entry in (
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    )
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]


def test_roots_are_the_published_ones() -> None:
    growing = Growing()
    assert growing.root == EMPTY_ROOT
    for leaf, root in zip(LEAVES, ROOTS, strict=True):
        growing.add(leaf)
        assert growing.root.hex() == root


def test_inclusion_is_the_published_one() -> None:
    assert [each.hex() for each in inclusion_proof(LEAVES, 0)] == [
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ]


sizes = st.integers(1, 40)


def leaves(count: int) -> list[bytes]:
    return [leaf_hash(bytes([number])) for number in range(count)]


@given(sizes, st.data())
def test_every_entry_can_be_shown_and_nothing_else(size: int, data: st.DataObject) -> None:
    tree, index = leaves(size), data.draw(st.integers(0, size - 1))
    proof, root = inclusion_proof(tree, index), root_of(tree)
    check_inclusion(tree[index], index, size, proof, root)
    wrong = [
        (leaf_hash(b"other"), index, size, proof, root),
        (tree[index], index, size, [*proof, root], root),
        (tree[index], index, size, proof, leaf_hash(b"other root")),
        (tree[index], size, size, proof, root),
    ]
    if proof:
        wrong.append((tree[index], index, size, proof[:-1], root))
        wrong.append((tree[index], (index + 1) % size, size, proof, root))
    for case in wrong:
        with pytest.raises(VerificationError):
            check_inclusion(*case)


@given(sizes, st.data())
def test_growth_can_be_shown_and_rewriting_cannot(size: int, data: st.DataObject) -> None:
    tree, old = leaves(size), data.draw(st.integers(1, size))
    proof = consistency_proof(tree, old)
    check_consistency(old, size, proof, root_of(tree[:old]), root_of(tree))
    rewritten = [leaf_hash(b"other"), *tree[1:]]
    for was, now, shown in (
        (root_of(rewritten[:old]), root_of(tree), proof),
        (root_of(tree[:old]), root_of(rewritten), consistency_proof(rewritten, old)),
        (root_of(tree[:old]), root_of(tree), [*proof, root_of(tree)]),
    ):
        with pytest.raises(VerificationError):
            check_consistency(old, size, shown, was, now)


def test_an_empty_log_may_grow_into_anything() -> None:
    check_consistency(0, 3, [], EMPTY_ROOT, root_of(leaves(3)))
    with pytest.raises(VerificationError, match="had 4 entries and now has 3"):
        check_consistency(4, 3, [], root_of(leaves(4)), root_of(leaves(3)))


@pytest.mark.parametrize("index", [-1, 3])
def test_unknown_entries(index: int) -> None:
    with pytest.raises(VerificationError, match="no entry"):
        inclusion_proof(leaves(3), index)
