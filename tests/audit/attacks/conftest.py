"""Runs of the pool to be attacked: the default configuration, and its members without shards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.audit.attacks.shadow import fitted, parameters, resplit

CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "default": {"num_shards": 4, "epochs": 30},
    "closed-form": {"model": "closed-form"},
}
SEEDS = 3


@dataclass(frozen=True)
class Attacked:
    """A run under attack, and one of the attacker's own, on other training nodes."""

    seed: int
    target: ge.GraphEraser
    own: ge.GraphEraser


def part_of(demo: ge.Graph, seed: int, *, random_labels: bool = False) -> ge.Graph:
    """Some of the demo graph's nodes, half of them trained on."""
    rng = np.random.default_rng(seed)
    keep = np.sort(rng.choice(demo.ids, 600, replace=False))
    small = demo.subgraph(keep).with_split(test_share=0.5, seed=seed + 1)
    y = rng.integers(small.num_classes, size=small.num_nodes) if random_labels else small.y
    return ge.Graph.from_arrays(
        small.x,
        small.edges.T,
        y,
        ids=small.ids,
        test=small.test_nodes,
        num_classes=small.num_classes,
        each_edge_once=True,
    )


@pytest.fixture(scope="package", params=CONFIGURATIONS)
def pool(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Arguments of a run, by configuration."""
    return parameters(ge.GraphEraser(**CONFIGURATIONS[request.param]))


@pytest.fixture(scope="package")
def attacked(demo: ge.Graph, pool: dict[str, Any]) -> list[Attacked]:
    """The configuration on several graphs with labels that can be learned."""
    graphs = [part_of(demo, seed) for seed in range(SEEDS)]
    return [
        Attacked(
            seed,
            target=fitted(pool, graph, 10 * seed + 1),
            own=fitted(pool, resplit(graph, seed + 3), 10 * seed + 2),
        )
        for seed, graph in enumerate(graphs)
    ]
