"""Several labels and numbers: unlearned equals retrained from the raw input that is left."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import grapheraser as ge
from grapheraser.aggregation.members import all_columns

KINDS = ("several", "partial", "numbers", "one number", "partial numbers")
# Of so many features that `words` takes each column for itself; the last has many targets.
WIDE = ("wide partial", "wide one number", "wide partial numbers", "wide many")


@dataclass
class World:
    """A world as its owner keeps it: rows by id, edges as pairs, nothing of the package's."""

    kind: str
    x: dict[int, Any]
    y: dict[int, Any]
    edges: set[tuple[int, int]]
    test: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, kind: str, seed: int, nodes: int = 60) -> World:
        rng = np.random.default_rng(seed)
        blocks = rng.integers(0, 3, nodes)
        width, labels = 200 if "wide" in kind else 8, 6 if "many" in kind else 3
        hints = np.arange(width) % 3 == blocks[:, None]
        x = (rng.random((nodes, width)) < (0.2 + 0.5 * hints) * 8 / width) * 1.0
        if "number" in kind:
            y = blocks[:, None] * 10.0 + rng.normal(size=(nodes, 1 if "one" in kind else 2)) + 100
            y[rng.random(y.shape) < 0.3 * ("partial" in kind)] = np.nan
        else:
            shares = 0.1 + 0.7 * (np.arange(labels) % 3 == blocks[:, None])
            y = (rng.random((nodes, labels)) < shares) * 1.0
            y[rng.random(y.shape) < 0.3 * ("partial" in kind)] = np.nan
        y[0] = 100.0 if "number" in kind else 1.0  # a node that is fully labelled stays
        pairs = {(int(min(p)), int(max(p))) for p in rng.integers(0, nodes, (3 * nodes, 2))}
        world = cls(kind, dict(enumerate(x)), dict(enumerate(y)), {p for p in pairs if p[0] < p[1]})
        world.test = set(range(1, nodes, 6))
        return world

    def graph(self) -> ge.Graph:
        ids = sorted(self.x)
        y = np.array([self.y[node] for node in ids])
        numbers = "number" in self.kind
        known = ~np.isnan(y).all(axis=1)
        train = [n for n, there in zip(ids, known, strict=True) if there and n not in self.test]
        return ge.Graph.from_arrays(
            np.array([self.x[node] for node in ids]),
            np.array(sorted(self.edges)).T if self.edges else np.zeros((2, 0), dtype=np.int64),
            y if numbers else np.where(np.isnan(y), -1, y).astype(int),
            ids=ids,
            train=train,
            test=sorted(self.test & set(ids)),
            labels="numbers" if numbers else "several",
            label_range=1000.0 if numbers else None,
            each_edge_once=True,
        )


def fitted(world: World, **arguments: Any) -> ge.GraphEraser:
    return ge.GraphEraser(**{"model": "closed-form"} | arguments).fit(world.graph())


def bits(eraser: ge.GraphEraser) -> dict[str, bytes]:
    found = {name: t.tobytes() for name, t in eraser.aggregator_.tensors.items()}
    found["answers"] = eraser.answers(eraser.graph_.ids).tobytes()
    for shard, weights in eraser.shards_.items():
        found |= {f"{shard}/{name}": t.tobytes() for name, t in weights.arrays.items()}
    return found | {"fingerprint": eraser.graph_.fingerprint.encode()}


def random_change(world: World, rng: np.random.Generator) -> Any:  # noqa: PLR0911
    """Change the world, and return the request or change that says the same."""
    ids = sorted(world.x)
    node = int(rng.choice([n for n in ids if n]))
    known = np.flatnonzero(~np.isnan(world.y[node]))
    what = rng.integers(0, 8)
    if what == 0:
        del world.x[node], world.y[node]
        world.edges = {pair for pair in world.edges if node not in pair}
        return ge.Nodes([node])
    if what == 1 and world.edges:
        pair = sorted(world.edges)[rng.integers(len(world.edges))]
        world.edges.discard(pair)
        return ge.Edges([pair])
    if what == 2 and world.x[node].any():
        world.x[node] = np.zeros_like(world.x[node])
        return ge.Features([node])
    if what == 3 and len(known):
        world.y[node] = np.full(len(world.y[node]), np.nan)
        return ge.Labels([node])
    if what == 4 and len(known):
        target = int(rng.choice(known))
        world.y[node] = world.y[node].copy()
        world.y[node][target] = np.nan
        return ge.Labels([node], target=target)
    if what == 5:
        target = int(rng.integers(len(world.y[node])))
        world.y[node] = world.y[node].copy()
        world.y[node][target] = value = float(rng.integers(0, 2))
        return ge.SetLabels([node], [value], target=target)
    if what == 6:
        new, other = max(ids) + 1, int(rng.choice(ids))
        world.x[new] = np.ones_like(world.x[node])
        world.y[new] = np.ones(len(world.y[node]))
        world.edges.add((other, new))
        return ge.AddNodes([new], world.x[new][None], world.y[new][None], edges=[(new, other)])
    world.x[node] = (rng.random(len(world.x[node])) < 0.5) * 1.0
    return ge.SetFeatures([node], world.x[node][None])


@pytest.mark.parametrize("kind", [*KINDS, *WIDE])
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6))
def test_a_sequence_of_changes_ends_where_a_fit_on_the_raw_rest_does(kind: str, seed: int) -> None:
    world, rng = World.of(kind, seed), np.random.default_rng(seed + 1)
    eraser = fitted(world)
    for _ in range(6):
        eraser.update([random_change(world, rng)])
    assert bits(eraser) == bits(fitted(world))


@pytest.mark.parametrize("least", [20, 48])
def test_a_graph_that_is_large_and_then_is_not_ends_there_too(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"NODES": least, "MOST_NODES": 12}.items():
        monkeypatch.setattr(all_columns, name, value)
    world = World.of("wide partial numbers", 4)
    eraser = fitted(world)
    for node in sorted(world.x)[2:]:
        if eraser.graph_.num_train < least - 2:
            break
        del world.x[node], world.y[node]
        world.edges = {pair for pair in world.edges if node not in pair}
        eraser.unlearn(ge.Nodes([node]))
        if eraser.graph_.num_train % 4 == 0:
            assert bits(eraser) == bits(fitted(world))
    assert bits(eraser) == bits(fitted(world))


@pytest.mark.parametrize("kind", [*KINDS, *WIDE])
def test_a_run_forgets_after_it_was_loaded(kind: str, tmp_path: Any) -> None:
    world = World.of(kind, 3)
    fitted(world).save(tmp_path / "run")
    eraser = ge.GraphEraser.load(tmp_path / "run")
    assert bits(eraser) == bits(fitted(world))
    receipt = eraser.unlearn([ge.Nodes([5]), ge.Labels([7, (8, 0)])], missing="skip")
    for node in (5,):
        del world.x[node], world.y[node]
        world.edges = {pair for pair in world.edges if node not in pair}
    world.y[7], world.y[8] = np.full(len(world.y[7]), np.nan), world.y[8].copy()
    world.y[8][0] = np.nan
    assert bits(eraser) == bits(fitted(world))
    eraser.save(tmp_path / "run")
    assert ge.GraphEraser.load(tmp_path / "run").verify().identical
    assert receipt.statement == "exact"
