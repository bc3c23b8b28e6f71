"""Random sequences on collections against a fresh fit from the raw remaining input."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import torch

import grapheraser as ge
from grapheraser.store import aggregator_digest

ARGUMENTS: dict[str, Any] = {"sample": 40, "references": 50}
_FEW: dict[str, Any] = {"epochs": 2, "num_shards": 3, "training": ge.Training(hidden=8)}


class OwnNetwork(torch.nn.Module):
    """A user's own: nodes and what edges carry, added up over each graph."""

    def __init__(self, columns: int, outputs: int) -> None:
        super().__init__()
        self.nodes = torch.nn.Linear(columns, 8)
        self.ends = torch.nn.Linear(8, 8)
        self.head = torch.nn.Linear(8, outputs)

    def forward(
        self,
        x: torch.Tensor,
        edge_index: torch.Tensor,
        batch: torch.Tensor,
        edge_attr: torch.Tensor,
    ) -> torch.Tensor:
        heard = self.nodes(x)[edge_index[0]] + self.ends(edge_attr)
        near = torch.zeros(len(x), 8).index_add(0, edge_index[1], heard)
        read = torch.zeros(int(batch[-1]) + 1, 8).index_add(0, batch, near + self.nodes(x))
        said: torch.Tensor = self.head(torch.relu(read))
        return said


# Shards, by name: what the eraser is made with, beside `ARGUMENTS`.
SHARDED: dict[str, dict[str, Any]] = {
    "pooled gin": {**_FEW, "model": "gin"},
    "mean of gcn": {**_FEW, "model": "gcn", "aggregation": "mean", "readout": "mean"},
    "learned sage": {**_FEW, "model": "sage", "aggregation": "learned", "readout": "max"},
    "majority of similar": {
        **_FEW,
        "model": "gin",
        "aggregation": "majority",
        "partition": "similar",
        "training": ge.Training(hidden=8, early_stopping=1, class_weights="balanced"),
    },
    "routed own": {"epochs": 2, "num_shards": 3, "model": OwnNetwork, "members": ()},
}


@dataclass(frozen=True)
class Raw:
    """One graph as somebody has it: labels by node, labels by edge, and its own label."""

    nodes: dict[int, int]
    edges: dict[tuple[int, int], int]
    y: Any

    @property
    def given(self) -> dict[str, Any]:
        """As `predict_new` takes it."""
        at = {node: i for i, node in enumerate(sorted(self.nodes))}
        return {
            "node_id": sorted(self.nodes),
            "node_label": [self.nodes[node] for node in sorted(self.nodes)],
            "edges": [(at[u], at[v]) for u, v in sorted(self.edges)],
            "edge_label": [self.edges[pair] for pair in sorted(self.edges)],
        }


World = dict[int, Raw]
CLASSES, SEVERAL, NUMBERS = "classes", "several", "numbers"


def drawn(draw: np.random.Generator, kind: str) -> Raw:
    n = int(draw.integers(1, 9))
    nodes = {node: int(draw.integers(0, 3)) for node in range(n)}
    pairs = {(i, int(draw.integers(i + 1, n))) for i in range(n - 1)}
    edges = {pair: int(draw.integers(0, 2)) for pair in pairs}
    return Raw(nodes, edges, label(draw, kind))


def label(draw: np.random.Generator, kind: str) -> Any:
    if kind == CLASSES:
        return int(draw.integers(0, 3))
    if kind == NUMBERS:
        return float(draw.integers(-8, 9)) / 4
    return [int(v) for v in draw.integers(-1, 2, 2)]


def collection_of(world: World, kind: str, tested: list[int]) -> ge.Collection:
    """Build the collection through the public constructor, from raw values alone."""
    ids = sorted(world)
    parts = [world[name].given for name in ids]
    offset = np.append(0, np.cumsum([len(part["node_label"]) for part in parts]))
    flat: dict[str, Any] = {
        key: [one for part in parts for one in part[key]]
        for key in ("node_id", "node_label", "edge_label")
    }
    edges = [
        (u + first, v + first)
        for part, first in zip(parts, offset.tolist(), strict=False)
        for u, v in part["edges"]
    ]
    unknown: Any = {CLASSES: -1, SEVERAL: [-1, -1], NUMBERS: np.nan}[kind]
    y = np.array([unknown if world[name].y is None else world[name].y for name in ids])
    options: dict[str, Any] = {"labels": kind, "test": [i for i in tested if i in world]}
    if kind == CLASSES:
        options["num_classes"] = 3
    if kind == NUMBERS:
        options["label_range"] = 4.0
    return ge.Collection.from_arrays(
        offset, np.array(edges, np.int64).reshape(-1, 2), y, ids=ids, **flat, **options
    )


def digests(run: ge.CollectionEraser, asked: list[int]) -> tuple[str, str, bytes]:
    state = run._snapshot.state
    tensors = [aggregator_digest(state.aggregator.tensors)]
    tensors += [f"{shard} {weights.digest}" for shard, weights in run.shards_.items()]
    return run.graph_.fingerprint, " ".join(tensors), run.answers(asked).tobytes()


def afresh(
    world: World,
    kind: str,
    tested: list[int],
    asked: list[int],
    shards: dict[str, Any],
    partition: Any = None,
) -> tuple[str, str, bytes]:
    """Fit the raw input in this process; a partition that has read it is given."""
    run = ge.CollectionEraser(**{**ARGUMENTS, **shards})
    run._fit(collection_of(world, kind, tested), partition)
    return digests(run, asked)


def step(  # noqa: PLR0911
    draw: np.random.Generator, world: World, kind: str
) -> tuple[Any, World]:
    """Draw a request or a change; return it, and the raw input after it."""
    after, ids = dict(world), sorted(world)
    name = ids[int(draw.integers(len(ids)))]
    raw, choice = world[name], int(draw.integers(0, 8))
    if choice == 0:
        del after[name]
        return ge.Graphs([name]), after
    if choice in (1, 2) and raw.nodes:
        node = sorted(raw.nodes)[int(draw.integers(len(raw.nodes)))]
        nodes = {key: value for key, value in raw.nodes.items() if key != node}
        edges = {pair: value for pair, value in raw.edges.items() if node not in pair}
        after[name] = replace(raw, nodes=nodes, edges=edges)
        return ge.Nodes([node], graph=name), after
    if choice in (3, 4) and raw.edges:
        pair = sorted(raw.edges)[int(draw.integers(len(raw.edges)))]
        edges = {key: value for key, value in raw.edges.items() if key != pair}
        after[name] = replace(raw, edges=edges)
        return ge.Edges([pair[::-1]], graph=name), after
    if choice == 5:
        new = drawn(draw, kind)
        added = max(ids) + 1 + int(draw.integers(5))
        after[added] = new
        return ge.AddGraphs([added], [new.given], [new.y]), after
    if choice == 6:
        new = replace(drawn(draw, kind), y=raw.y)
        after[name] = new
        return ge.SetGraphs([name], [new.given]), after
    if kind != SEVERAL and raw.y is not None:
        after[name] = replace(raw, y=None)
        return ge.Labels([name]), after
    return None, world


@pytest.fixture(scope="module")
def other() -> Iterator[ProcessPoolExecutor]:
    """Another process, for fresh fits."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("kind", [CLASSES, SEVERAL, NUMBERS])
@pytest.mark.parametrize("seed", [0, 1])
def test_sequences_end_in_the_bits_of_a_fresh_fit(
    kind: str, seed: int, other: ProcessPoolExecutor
) -> None:
    draw = np.random.default_rng([seed, len(kind)])
    world = {name: drawn(draw, kind) for name in range(70)}
    tested = list(range(0, 70, 7))
    run = ge.CollectionEraser(**ARGUMENTS).fit(collection_of(world, kind, tested))
    for turn in range(24):
        change, world = step(draw, world, kind)
        if change is None:
            continue
        is_request = isinstance(change, ge.Graphs | ge.GraphNodes | ge.GraphEdges | ge.Labels)
        receipt = run.unlearn(change) if is_request else run.update(change)
        assert receipt.parts
        if turn % 3 == 0:
            asked = sorted(world)[:20]
            wanted = other.submit(afresh, world, kind, tested, asked, {}).result()
            assert digests(run, asked) == wanted


@pytest.mark.parametrize(
    ("shards", "kind"),
    [*((name, CLASSES) for name in SHARDED), ("pooled gin", SEVERAL), ("pooled gin", NUMBERS)],
)
def test_sequences_on_shards_end_in_the_bits_of_a_fresh_fit(
    shards: str, kind: str, other: ProcessPoolExecutor
) -> None:
    draw, options = np.random.default_rng([3, len(shards)]), SHARDED[shards]
    world = {name: drawn(draw, kind) for name in range(40)}
    tested = list(range(0, 40, 7))
    run = ge.CollectionEraser(**{**ARGUMENTS, **options}).fit(collection_of(world, kind, tested))
    for _ in range(6):
        change, world = step(draw, world, kind)
        if change is None:
            continue
        is_request = isinstance(change, ge.Graphs | ge.GraphNodes | ge.GraphEdges | ge.Labels)
        _ = run.unlearn(change) if is_request else run.update(change)
    asked = sorted(world)[:20]
    given = run.partition_ if "partition" in options else None
    wanted = other.submit(afresh, world, kind, tested, asked, options, given).result()
    assert digests(run, asked) == wanted
    assert run.verify().identical


def test_one_batch_is_what_its_parts_are_one_by_one() -> None:
    draw = np.random.default_rng(5)
    world = {name: drawn(draw, CLASSES) for name in range(40)}
    once, stepwise = (
        ge.CollectionEraser(**ARGUMENTS).fit(collection_of(world, CLASSES, [])) for _ in range(2)
    )
    name = next(n for n in world if len(world[n].edges) > 3)
    pair = sorted(world[name].edges)[0]
    node = next(n for n in world[name].nodes if n not in pair)
    parts: list[Any] = [
        ge.Nodes([node], graph=name),
        ge.Edges([pair], graph=name),
        ge.Graphs([39 if name != 39 else 38]),
    ]
    receipt = once.unlearn(parts)
    for part in parts:
        stepwise.unlearn(part)
    asked = once.collection_.ids[:10].tolist()
    assert digests(once, asked) == digests(stepwise, asked)
    assert receipt.counts["graphs"] == receipt.counts["graph_nodes"] == 1
    assert {part.in_words for part in receipt.parts} == {
        f"forget graph node {name}-{node}",
        f"forget graph edge {name}-{pair[0]}-{pair[1]}",
        f"forget graph {39 if name != 39 else 38}",
    }
    assert once.verify().identical
