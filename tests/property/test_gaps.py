"""Gaps against the raw tables: a fresh process encodes and fills what is left, and fits it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from tests.property.raw import Raw, bits, fitted
from tests.property.test_raw import another_process

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    with another_process() as ask:
        yield ask


def raw_tables(seed: int, model: str, rule: str) -> Raw:
    """Rows by id: a number, a boolean and a category, each of which may be missing."""
    rng = np.random.Generator(np.random.PCG64(seed))
    ids = sorted(rng.choice(200, size=14, replace=False).tolist())

    def cells() -> list[Any]:
        there = rng.random(3) < 0.7
        row = [float(rng.normal()), bool(rng.integers(2)), "abc"[rng.integers(3)]]
        return [cell if known else None for cell, known in zip(row, there, strict=True)]

    pairs = {tuple(sorted(rng.choice(ids, size=2, replace=False).tolist())) for _ in range(25)}
    return {
        "nodes": {str(node): [int(rng.integers(3)), cells()] for node in ids},
        "edges": [list(pair) for pair in sorted(pairs)],
        "model": model,
        "num_classes": 3,
        "missing": dict.fromkeys(["number", "flag", "word"], rule),
        "categories": {"word": ["a", "b", "c"]},
    }


@pytest.mark.parametrize("rule", ["mean", "zero", "indicator"])
@pytest.mark.parametrize("model", ["gcn", "closed-form"])
@settings(max_examples=3)
@given(seed=st.integers(0, 200), data=st.data())
def test_a_run_with_gaps_is_what_the_raw_rest_gives(
    oracle: Any, model: str, rule: str, seed: int, data: st.DataObject
) -> None:
    raw = raw_tables(seed, model, rule)
    eraser = fitted(raw)
    for _ in range(3):
        node = data.draw(st.sampled_from(sorted(raw["nodes"])))
        kind = data.draw(st.sampled_from(["node", "edge", "set"]))
        edges, label = raw["edges"], raw["nodes"][node][0]
        if kind == "edge" and edges:
            pair = data.draw(st.sampled_from(edges))
            receipt = eraser.unlearn(ge.Edges([tuple(pair)]))
            raw = {**raw, "edges": [one for one in edges if one != pair]}
        elif kind == "set":
            cells = [data.draw(st.sampled_from([None, 0.1, 3.0])), None, "b"]
            table = {name: [cell] for name, cell in zip(raw["missing"], cells, strict=True)}
            receipt = eraser.update(ge.SetFeatures([int(node)], table))
            raw = {**raw, "nodes": {**raw["nodes"], node: [label, cells]}}
        else:
            receipt = eraser.unlearn(ge.Nodes([int(node)]))
            nodes = {key: row for key, row in raw["nodes"].items() if key != node}
            raw = {**raw, "nodes": nodes, "edges": [e for e in edges if int(node) not in e]}
        assert receipt.statement == "exact"
        assert bits(eraser) == oracle(raw)
