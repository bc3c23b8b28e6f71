"""The promise against the raw data: a fresh process builds the graph of what is left, and fits it.

Other properties compare with a fit on the eraser's own graph, which keeps what it has found.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.errors import GraphError
from tests.property.raw import Raw, bits, fitted, graph_of

pytestmark = pytest.mark.slow


@contextmanager
def another_process() -> Iterator[Any]:
    """A function from raw data to the bits of a fit, in a process that has seen nothing else."""
    command = [sys.executable, "-m", "tests.property.raw"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as opened:
        process: Any = opened

        def ask(raw: Raw) -> dict[str, str]:
            process.stdin.write(json.dumps(raw) + "\n")
            process.stdin.flush()
            answer: dict[str, str] = json.loads(process.stdout.readline())
            return answer

        yield ask
        process.stdin.close()


@pytest.fixture(scope="module")
def oracle() -> Iterator[Any]:
    with another_process() as ask:
        yield ask


def raw_data(seed: int, dense: float, model: str) -> Raw:
    """Rows of nodes by id, and pairs of ids; class 3 has a single member."""
    rng = np.random.Generator(np.random.PCG64(seed))
    ids = sorted(rng.choice(200, size=16, replace=False).tolist())
    y = [3, *rng.integers(3, size=15).tolist()]
    x = rng.normal(size=(16, 5)) * (rng.random((16, 5)) < dense)
    pairs = {tuple(sorted(rng.choice(ids, size=2, replace=False).tolist())) for _ in range(30)}
    return {
        "nodes": {str(node): [y[at], x[at].tolist()] for at, node in enumerate(ids)},
        "edges": [list(pair) for pair in sorted(pairs)],
        "model": model,
        "num_classes": None,
    }


def forget_node(raw: Raw, node: int) -> Raw:
    nodes = {key: row for key, row in raw["nodes"].items() if key != str(node)}
    return {**raw, "nodes": nodes, "edges": [e for e in raw["edges"] if node not in e]}


@pytest.mark.parametrize("model", ["gcn", "closed-form"])
@settings(max_examples=8)
@given(seed=st.integers(0, 50), dense=st.sampled_from([0.2, 0.5, 1.0]), data=st.data())
def test_exact_is_what_the_raw_rest_gives(
    oracle: Any, model: str, seed: int, dense: float, data: st.DataObject
) -> None:
    raw = raw_data(seed, dense, model)
    raw["num_classes"] = data.draw(st.sampled_from([None, 4]))
    eraser = fitted(raw)
    only = next(int(node) for node, (label, _) in raw["nodes"].items() if label == 3)
    others = data.draw(st.permutations([int(node) for node in raw["nodes"] if int(node) != only]))
    order = [*others[:3], only] if data.draw(st.booleans()) else [only, *others[:3]]
    for node in order:
        edges = [pair for pair in raw["edges"] if node not in pair]
        if data.draw(st.booleans()) and edges:
            pair = edges[data.draw(st.integers(0, len(edges) - 1))]
            eraser.unlearn(ge.Edges([tuple(pair)]))
            raw = {**raw, "edges": [one for one in raw["edges"] if one != pair]}
        receipt = eraser.unlearn(ge.Nodes([node]))
        raw = forget_node(raw, node)
        same = oracle(raw) == bits(eraser)
        if raw["num_classes"] is None:
            assert receipt.statement == "exact given schema"
            assert same == (str(only) in raw["nodes"])
        else:
            assert receipt.statement == "exact"
            assert same


def test_the_schema_that_a_receipt_names_makes_the_raw_rest_give_the_same(oracle: Any) -> None:
    raw = raw_data(1, 0.5, "gcn")
    eraser = fitted(raw)
    only = next(int(node) for node, (label, _) in raw["nodes"].items() if label == 3)
    receipt = eraser.unlearn(ge.Nodes([only]))
    assert receipt.exactness["schema"] == ["classes"]
    rest = forget_node(raw, only)
    assert oracle(rest) != bits(eraser)
    assert oracle({**rest, "num_classes": eraser.graph_.num_classes}) == bits(eraser)
    with pytest.raises(GraphError, match="labels must be in"):
        graph_of({**raw, "num_classes": 3})
