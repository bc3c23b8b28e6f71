"""How far a module looks is found by trying it, or said to be unknown."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from grapheraser.inference.module import MAX_HOPS, Reach, reach_of
from tests.inference.own_modules import DIVIDING, GLOBAL, LOCAL, Factory, TwoLayers


def found(factory: Factory) -> Reach:
    """The reach of a fresh module each time, so that none remembers a graph."""

    def run(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        scores: torch.Tensor = factory(7, 3).eval()(x, edge_index)
        return scores

    with torch.random.fork_rng(), torch.no_grad():
        return reach_of(run, 7)


@pytest.mark.parametrize(("factory", "hops"), LOCAL.items())
def test_the_hops_of_a_local_module_are_found(factory: Factory, hops: int) -> None:
    reach = found(factory)
    assert reach.hops == hops
    assert reach.degrees == (factory in DIVIDING)


@pytest.mark.parametrize("factory", GLOBAL)
def test_a_module_that_looks_elsewhere_needs_the_whole_graph(factory: Factory) -> None:
    reach = found(factory)
    assert reach.hops is None
    assert reach.why


def test_a_module_that_fails_needs_the_whole_graph() -> None:
    class Picky(nn.Module):
        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("not my graph")

    assert found(lambda i, o: Picky()) == Reach(
        None, why="it failed on a small graph (RuntimeError: not my graph)"
    )


def test_torch_geometrics_median_hides_how_far_it_looks() -> None:
    """A NaN is sorted to the end, where the median never looks: found out by comparing."""
    from torch_geometric.nn import SAGEConv

    def median(inputs: int, classes: int) -> nn.Module:
        first, second = (SAGEConv(i, o, aggr="median") for i, o in ((inputs, 8), (8, classes)))
        return TwoLayers(first, second, nn.Identity())

    assert found(median).hops is None


@pytest.mark.parametrize("hops", range(MAX_HOPS + 1))
def test_the_small_graph_is_larger_than_the_surroundings_in_it(hops: int) -> None:
    """Otherwise nothing would be tried."""
    sizes: list[int] = []

    def run(x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        sizes.append(len(x))
        for _ in range(hops):
            x = x.index_add(0, edge_index[0], x[edge_index[1]]) / 10
        return x

    assert reach_of(run, 3) == Reach(hops, degrees=False)
    assert sizes[-1] < 0.5 * sizes[-2]
