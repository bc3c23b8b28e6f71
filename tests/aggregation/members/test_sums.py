"""Sums over rows of whole numbers: exact, however they came about."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from grapheraser.aggregation.members.base import SCALE
from grapheraser.aggregation.members.sums import Sums
from grapheraser.datasets import load_dataset
from grapheraser.graph import UNLABELLED


def drawn_rows(rng: np.random.Generator, n: int, width: int) -> NDArray[np.float64]:
    """Whole numbers up to the largest that a row may hold."""
    return np.rint(rng.uniform(-SCALE, SCALE, size=(n, width)) * (rng.random((n, width)) < 0.8))


def exact(rows: NDArray[np.float64], labels: NDArray[np.int64], classes: int) -> tuple[object, ...]:
    """Lower half of H'H, and H'Y, in Python's own integers."""
    H = [[int(value) for value in row] for row in rows.tolist()]
    width = rows.shape[1]
    gram = [[sum(row[i] * row[j] for row in H) for j in range(i + 1)] for i in range(width)]
    cross = [
        [sum(row[i] for row, y in zip(H, labels, strict=True) if y == c) for c in range(classes)]
        for i in range(width)
    ]
    return gram, cross


def plain(sums: Sums) -> tuple[object, ...]:
    packed, width = sums.gram.tolist(), len(sums.cross)
    assert len(packed) == width * (width + 1) // 2
    gram = [packed[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2] for i in range(width)]
    return gram, sums.cross.tolist()


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), width=st.sampled_from([1, 3, 31, 33, 40]))
def test_sums_are_those_of_whole_numbers_however_they_came_about(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    old, new = drawn_rows(rng, 12, width), drawn_rows(rng, 12, width)
    labels, others = rng.integers(3, size=12), rng.integers(3, size=12)
    old[3], labels[3] = 0.0, UNLABELLED  # came
    new[7], others[7] = 0.0, UNLABELLED  # went
    new[5] = old[5]  # stayed
    sums = Sums.zeros(width, 3).plus(old[:5], labels[:5]).plus(old[5:], labels[5:])
    assert plain(sums) == exact(old, labels, 3)
    changed = sums.replaced(old, labels, new, others)
    assert plain(changed) == exact(new, others, 3)
    part = Sums.zeros(width, 3).plus(new[:4], others[:4])
    assert plain(changed.without(part)) == exact(new[4:], others[4:], 3)
    back = changed.replaced(new, others, old, labels)
    graph = load_dataset("demo")
    assert back.solve(1.0, graph).tobytes() == sums.solve(1.0, graph).tobytes()


def test_more_rows_are_replaced_than_fit_into_the_cache() -> None:
    rng = np.random.default_rng(0)
    old, new, labels = drawn_rows(rng, 150, 5), drawn_rows(rng, 150, 5), rng.integers(2, size=150)
    sums = Sums.zeros(5, 2).plus(old, labels).replaced(old, labels, new, labels)
    assert plain(sums) == exact(new, labels, 2)


def test_rows_that_are_in_neither_sum_are_not_looked_at() -> None:
    rng = np.random.default_rng(1)
    rows, labels = drawn_rows(rng, 9, 4), rng.integers(2, size=9)
    sums = Sums.zeros(4, 2).plus(rows, labels)
    nobody = np.full(9, UNLABELLED)
    same = sums.replaced(rows, nobody, drawn_rows(rng, 9, 4), nobody)
    assert plain(same) == plain(sums)
