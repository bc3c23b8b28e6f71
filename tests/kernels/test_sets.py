"""Small sets in compiled code: what a dictionary holds."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from grapheraser.kernels.sets import find, put, ranks, room_for_set

KEYS = st.integers(0, 2**62)


@given(keys=st.lists(KEYS, max_size=60), others=st.lists(KEYS, max_size=10))
def test_keys_are_ranked_in_the_order_in_which_they_came(
    keys: list[int], others: list[int]
) -> None:
    slots, held = room_for_set(len(set(keys)))
    known: dict[int, int] = {}
    for key in keys:
        assert put(slots, held, len(known), key) == known.setdefault(key, len(known))
    assert held.tolist() == list(known)
    for key in [*keys, *others]:
        assert find(slots, held, key) == known.get(key, -1)


def test_keys_that_collide_are_told_apart() -> None:
    keys = np.arange(0, 2**40, 2**34)
    slots, held = room_for_set(len(keys))
    for rank, key in enumerate(keys.tolist()):
        assert put(slots, held, rank, key) == rank
    assert [find(slots, held, key) for key in keys.tolist()] == list(range(len(keys)))


@given(keys=st.lists(KEYS, max_size=20), among=st.sets(KEYS, max_size=20))
def test_ranks_in_a_sorted_array(keys: list[int], among: set[int]) -> None:
    ordered = sorted(among)
    asked = np.array([*keys, *ordered], dtype=np.int64)
    expected = [ordered.index(key) if key in among else -1 for key in asked.tolist()]
    assert ranks(asked, np.array(ordered, dtype=np.int64)).tolist() == expected
