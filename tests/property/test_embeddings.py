"""The promise for embeddings: random sequences against a fresh fit of the raw rest, elsewhere.

Another process builds the graph from the raw remaining input and embeds it; signs and rows must
have the same bits. A row that a receipt does not name must have kept its own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from tests.property.embedded import bits, graph_of

pytestmark = pytest.mark.slow
Ask = Callable[[dict[str, Any]], dict[str, str]]
ARGUMENTS: dict[str, dict[str, Any]] = {
    "few neighbours": {"width": 70, "steps": [0, 1, 1, 1], "neighbours": 2, "landmarks": 4},
    "many": {"width": 128, "steps": [0.5, 0, 1], "neighbours": 31, "landmarks": 1},
    "without features": {"features": False, "landmarks": 8, "neighbours": 3},
    "learned": {"steps": "learned", "width": 32, "landmarks": 2, "seed": 5},
}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Ask]:
    """Another process that embeds raw data and answers with digests."""
    command = [sys.executable, "-m", "tests.property.embedded"]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        reader, writer = process.stdout, process.stdin

        def ask(raw: dict[str, Any]) -> dict[str, str]:
            writer.write(json.dumps(raw) + "\n")
            writer.flush()
            answer: dict[str, str] = json.loads(reader.readline())
            return answer

        yield ask
        writer.close()


def raw_world(rng: np.random.Generator, arguments: dict[str, Any]) -> dict[str, Any]:
    """Sixty nodes with a hub, under ids with gaps."""
    ids = np.sort(rng.choice(400, 60, replace=False)).tolist()
    edges = {tuple(sorted((ids[0], other))) for other in ids[1:40]}
    for _ in range(120):
        u, v = rng.choice(ids, 2, replace=False).tolist()
        edges.add((min(u, v), max(u, v)))
    nodes = {str(node): rng.integers(0, 3, 5).tolist() for node in ids}
    return {"nodes": nodes, "edges": sorted(edges), "arguments": arguments}


def forget_or_change(rng: np.random.Generator, raw: dict[str, Any]) -> Any:
    """Draw a change, apply it to the raw data by itself, and return it as it is asked for."""
    ids, edges = [int(node) for node in raw["nodes"]], raw["edges"]
    kind = rng.choice(["node", "nodes", "edge", "features", "add", "link", "set"])
    if kind in ("node", "nodes"):
        gone = rng.choice(ids, 1 if kind == "node" else 3, replace=False).tolist()
        raw["nodes"] = {k: v for k, v in raw["nodes"].items() if int(k) not in gone}
        raw["edges"] = [edge for edge in edges if not set(edge) & set(gone)]
        return ge.Nodes(gone)
    if kind == "edge":
        edge = edges.pop(int(rng.integers(len(edges))))
        return ge.Edges([tuple(edge)])
    if kind in ("features", "set"):
        node = int(rng.choice(ids))
        x = [0] * 5 if kind == "features" else rng.integers(0, 9, 5).tolist()
        raw["nodes"][str(node)] = x
        return ge.Features([node]) if kind == "features" else ge.SetFeatures([node], [x])
    if kind == "add":
        node = int(rng.choice(np.setdiff1d(np.arange(500), ids)))
        x, near = rng.integers(0, 3, 5).tolist(), rng.choice(ids, 3, replace=False).tolist()
        raw["nodes"] = dict(sorted({**raw["nodes"], str(node): x}.items(), key=lambda p: int(p[0])))
        raw["edges"] = [*edges, *((node, other) for other in near)]
        return ge.AddNodes([node], [x], edges=[(node, other) for other in near])
    known = {tuple(sorted(edge)) for edge in edges}
    while True:
        u, v = sorted(rng.choice(ids, 2, replace=False).tolist())
        if (u, v) not in known:
            raw["edges"] = [*edges, (u, v)]
            return ge.AddEdges([(u, v)])


@pytest.mark.parametrize("name", ARGUMENTS)
@pytest.mark.parametrize("seed", range(3))
def test_sequences_end_in_the_bits_of_a_fresh_fit_elsewhere(
    name: str, seed: int, elsewhere: Ask
) -> None:
    rng = np.random.default_rng([seed, len(name)])
    raw = raw_world(rng, ARGUMENTS[name])
    embedder = ge.Embedder(**ARGUMENTS[name]).fit(graph_of(raw))
    for _ in range(6):
        known = embedder.graph_.ids
        before = dict(zip(known.tolist(), embedder.transform(known), strict=True))
        receipt = embedder.update([forget_or_change(rng, raw)])
        assert bits(embedder) == elsewhere(raw)
        for node, row in zip(
            embedder.graph_.ids.tolist(), embedder.transform(embedder.graph_.ids), strict=True
        ):
            if node not in receipt.changed:
                assert row.tobytes() == before[node].tobytes()
    assert embedder.verify().identical
