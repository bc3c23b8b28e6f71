"""The chosen neighbours are those with the smallest hashes, and follow from ids alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.kernels.hashing import paired
from grapheraser.kernels.neighbourhoods import chosen_neighbours, room_for


def chosen(ids: list[int], allowed: list[bool], most: int, key: int) -> list[int]:
    """The chosen neighbours of node 0, which is next to all nodes."""
    indptr, indices = np.array([0, len(ids)]), np.arange(len(ids), dtype=np.int32)
    hashes, positions = room_for(most)
    arrays = (indptr, indices, np.array(ids), 0, np.array(allowed), np.uint64(key))
    count = chosen_neighbours(*arrays, hashes, positions)
    found: list[int] = positions[:count].tolist()
    return found


@given(st.data())
def test_those_with_the_smallest_hashes_are_chosen_in_order(data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, 10**9), min_size=1, max_size=12, unique=True))
    allowed = data.draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids)))
    most, key = data.draw(st.integers(1, 6)), data.draw(st.integers(0, 2**64 - 1))
    own = np.uint64(paired(np.uint64(key), np.uint64(ids[0])))
    ranked = sorted(
        (i for i in range(len(ids)) if allowed[i]),
        key=lambda i: int(paired(own, np.uint64(ids[i]))),
    )
    assert chosen(ids, allowed, most, key) == sorted(ranked[:most])


def test_whoever_is_not_chosen_changes_nothing_by_leaving() -> None:
    ids = list(range(20))
    before = chosen(ids, [True] * 20, 5, 7)
    for gone in set(range(20)) - set(before):
        allowed = [node != gone for node in ids]
        assert chosen(ids, allowed, 5, 7) == before
