"""Features of a page: as they lie there, or those that are not 0."""

from __future__ import annotations

import numpy as np
import pytest

from grapheraser.kernels.compiled import compiled
from grapheraser.kernels.paged import (
    Table,
    copy_columns,
    copy_features,
    dense_features,
    prefetch_features,
    size_at,
)
from tests.aggregation.members.oracle import GRAPHS


@compiled
def dense_sum(table: Table, place: int) -> float:
    total = 0.0
    for value in dense_features(table, place):
        total += value
    return total


@pytest.mark.parametrize("kind", ["sparse", "dense", "far ids", "dense, in pages"])
def test_columns_and_values_are_those_of_the_row(kind: str) -> None:
    graph = GRAPHS[kind]
    table, x = graph.table, graph.x.toarray()
    for row, place in zip(x, graph.places(graph.ids).tolist(), strict=True):
        prefetch_features(table, place)
        columns, values = np.empty(len(row), np.int32), np.empty(len(row), np.float32)
        expected = np.flatnonzero(row).tolist()
        count = copy_features(table, place, columns, values, 0)
        assert count <= size_at(table, place)
        assert columns[:count].tolist() == expected
        assert values[:count].tolist() == row[row != 0].tolist()
        columns[:] = -1
        assert copy_columns(table, place, columns) == count
        assert columns[:count].tolist() == expected
        if table.width >= 0:
            assert dense_sum(table, place) == pytest.approx(float(row.sum()), rel=1e-5, abs=1e-4)


def test_some_of_these_graphs_keep_their_features_dense() -> None:
    assert {GRAPHS[kind].table.width >= 0 for kind in GRAPHS} == {False, True}
