"""Colours: the same for the same graph in any order, and what is counted is what there is."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from grapheraser.graphs.colours import BLOCKS, SIZE, SparseRows, coloured
from tests.graphs.collections import Parts, collection_of, random_parts


def rows_of(parts: Parts, **options: Any) -> SparseRows:
    graph = collection_of(parts, **options).graph
    return coloured(graph, graph.places(graph.ids), 0)


def block(rows: SparseRows, row: int, name: str) -> Counter[int]:
    """The entries of one block, by column."""
    part = slice(rows.pointers[row, 0], rows.pointers[row, -1])
    first = BLOCKS.index(name) * SIZE
    inside = (rows.columns[part] >= first) & (rows.columns[part] < first + SIZE)
    return Counter(dict(zip(rows.columns[part][inside], rows.values[part][inside], strict=True)))


def test_the_order_of_nodes_has_no_part() -> None:
    rng = np.random.default_rng(1)
    for labels, edges, y in random_parts(30, seed=1):
        order = rng.permutation(len(labels))
        shuffled = np.empty_like(labels)
        shuffled[order] = labels
        rows = rows_of([(labels, edges, y), (shuffled, order[edges], y)])
        half = len(rows.columns) // 2
        assert np.array_equal(rows.columns[:half], rows.columns[half:])
        assert np.array_equal(rows.values[:half], rows.values[half:])


def test_every_block_has_length_one() -> None:
    rows = rows_of(random_parts(20, seed=2))
    for row in range(len(rows)):
        for name in BLOCKS:
            values = np.array(list(block(rows, row, name).values()), dtype=np.float64)
            assert np.isclose((values**2).sum(), 1.0, atol=1e-5)


def test_counts_of_labels_degrees_and_edges() -> None:
    """Against counts by hand: the entries of a block are log(1 + count), up to its length."""
    labels, edges = np.array([5, 5, 7, 5]), np.array([(0, 1), (1, 2), (2, 3)])
    rows = rows_of([(labels, edges, 0)])
    counts = [1, 3, 1, 2, 2, 3]  # a constant; labels 5, 7; degrees 1, 2; edges without a label
    wanted = np.log1p(counts) / np.linalg.norm(np.log1p(counts))
    found = sorted(block(rows, 0, "atoms").values())
    assert np.allclose(found, sorted(wanted), atol=1e-6)


def test_a_ring_is_not_a_path() -> None:
    """Six nodes of one label and degree 2: two triangles and one ring of six differ in rings."""
    labels = np.zeros(6, dtype=np.int64)
    ring = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5)])
    triangles = np.array([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5)])
    rows = rows_of([(labels, ring, 0), (labels, triangles, 1)])
    assert block(rows, 0, "near") == block(rows, 1, "near")
    assert block(rows, 0, "rings") != block(rows, 1, "rings")
    assert block(rows, 0, "paths") != block(rows, 1, "paths")


@pytest.mark.parametrize("what", ["edge_label", "directed", "x"])
def test_whatever_edges_and_nodes_carry_has_a_part(what: str) -> None:
    labels, edges = np.zeros(3, dtype=np.int64), np.array([(0, 1), (1, 2)])
    of_each: dict[str, dict[str, Any]] = {
        "edge_label": {"edge_label": np.array([1, 2])},
        "directed": {"directed": True},
        "x": {"x": np.array([[0.5], [0.25], [0.0]])},
    }
    parts = [(labels, edges, 0)]
    plain, other = rows_of(parts), rows_of(parts, **of_each[what])
    assert block(plain, 0, "near") != block(other, 0, "near")


def test_another_seed_gives_other_columns() -> None:
    graph = collection_of(random_parts(3)).graph
    places = graph.places(graph.ids)
    first, second = (coloured(graph, places, seed).columns for seed in (0, 1))
    assert not np.array_equal(first, second)
