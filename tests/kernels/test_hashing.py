"""Compiled hashes: the same numbers as in plain Python, each a function of its own place."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from grapheraser.kernels.hashing import keyed_uniform, mixed, paired
from grapheraser.seeding import derive

MASK = 2**64 - 1
WORDS = st.integers(0, MASK)


def finalised(z: int) -> int:
    """The finaliser of splitmix64 in plain Python integers."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


@given(WORDS, WORDS)
def test_compiled_hashes_equal_plain_integers(a: int, b: int) -> None:
    assert int(mixed(np.uint64(a))) == finalised(a)
    expected = finalised((a + b * 0x9E3779B97F4A7C15) & MASK)
    assert int(paired(np.uint64(a), np.uint64(b))) == expected


def test_the_global_generator_is_left_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    keyed_uniform(np.arange(5), 5, 1)
    after = np.random.get_state()  # noqa: NPY002
    assert str(before) == str(after)


@given(st.data())
def test_an_entry_depends_on_its_own_row_and_column_alone(data: st.DataObject) -> None:
    key = data.draw(st.integers(0, 2**63))
    rows = data.draw(st.lists(st.integers(0, 10_000), min_size=1, max_size=20, unique=True))
    width = data.draw(st.integers(1, 20))
    whole = keyed_uniform(np.array(rows), width, key)
    keep = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1))
    narrow = data.draw(st.integers(1, width))
    part = keyed_uniform(np.array(rows)[keep], narrow, key)
    assert part.tobytes() == whole[keep, :narrow].tobytes()


def test_uniform_numbers_are_uniform_and_uncorrelated() -> None:
    numbers = keyed_uniform(np.arange(400), 50, derive(0, "test"))
    assert numbers.dtype == np.float32
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert stats.kstest(numbers.ravel(), "uniform").pvalue > 0.001
    for shifted in (numbers[1:] - numbers[:-1], numbers[:, 1:] - numbers[:, :-1]):
        # The difference of two independent uniform numbers has variance 1/6.
        assert abs(float(shifted.var()) - 1 / 6) < 0.01
    other = keyed_uniform(np.arange(400), 50, derive(0, "other"))
    assert abs(np.corrcoef(numbers.ravel(), other.ravel())[0, 1]) < 0.03
