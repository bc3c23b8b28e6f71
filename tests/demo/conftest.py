"""The demonstration, small."""

from __future__ import annotations

import pytest

import grapheraser as ge
from grapheraser.demo.story import DemoResult, run_demo


@pytest.fixture(scope="session")
def graph(demo: ge.Graph) -> ge.Graph:
    return demo.subgraph(demo.ids[:600])


@pytest.fixture(scope="session")
def result(graph: ge.Graph) -> DemoResult:
    return run_demo(graph, ge.GraphEraser(partition="hash", num_shards=3, epochs=3), requests=2)
