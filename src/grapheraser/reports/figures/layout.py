"""A seeded place in the plane for every node of a graph."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from grapheraser.errors import MissingExtraError
from grapheraser.graph import Graph
from grapheraser.seeding import derive, generator

_UMAP_BUDGET = 4e7  # an epoch of igraph's UMAP looks at about n^1.5 pairs


def layout(graph: Graph, seed: int = 0) -> NDArray[np.float64]:
    """Coordinates ``[n, 2]`` by position, centred, within the unit disc.

    Every connected component is laid out by itself and given an area that grows with its number
    of nodes; the largest is in the middle, the others lie in rings around it, so isolated nodes
    form the rim instead of squeezing the rest together. A function of the graph and the seed.
    """
    n = graph.num_nodes
    if n == 0:
        return np.zeros((0, 2))
    components, sizes = _components(graph)
    order = np.argsort(-sizes, kind="stable")
    centres = _rings(np.sqrt(sizes[order].astype(np.float64)))
    places = np.zeros((n, 2))
    by_component = np.argsort(components, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for rank, component in enumerate(order.tolist()):
        nodes = by_component[starts[component] : starts[component + 1]]
        inner = _component_layout(graph, nodes, derive(seed, "layout", rank))
        places[nodes] = centres[rank] + inner * np.sqrt(len(nodes))
    radius = np.hypot(*places.T).max()
    return places / radius if radius else places


def _components(graph: Graph) -> tuple[NDArray[np.integer], NDArray[np.int64]]:
    from scipy.sparse import csr_array

    shape = (graph.num_nodes, graph.num_nodes)
    ones = np.ones(len(graph.indices), dtype=np.int8)
    adjacency = csr_array((ones, graph.indices, graph.indptr), shape=shape)
    count, labels = connected_components(adjacency, directed=False)
    return labels, np.bincount(labels, minlength=count)


def _component_layout(graph: Graph, nodes: NDArray[np.int64], seed: int) -> NDArray[np.float64]:
    """One connected component in the unit disc, communities pulled apart."""
    if len(nodes) == 1:
        return np.zeros((1, 2))
    if len(nodes) == 2:
        return np.array([[-0.5, 0.0], [0.5, 0.0]])
    local = np.full(graph.num_nodes, -1, dtype=np.int64)
    local[nodes] = np.arange(len(nodes))
    inside = (local[graph.sources] >= 0) & (graph.sources < graph.indices)
    edges = np.stack([local[graph.sources[inside]], local[graph.indices[inside]]], axis=1)
    # One node per unit square to start with: a denser start costs the springs n^2 instead of n.
    start = generator(seed).uniform(-0.5, 0.5, size=(len(nodes), 2)) * np.sqrt(len(nodes))
    with _igraph_seeded(seed) as igraph:
        drawn = igraph.Graph(n=len(nodes), edges=edges)
        places = drawn.layout_fruchterman_reingold(niter=300, seed=start)
        if len(nodes) > 100:
            # The springs find the large form; UMAP's attraction then separates the communities.
            epochs = int(np.clip(_UMAP_BUDGET / len(nodes) ** 1.5, 60, 300))
            places = drawn.layout_umap(min_dist=0.5, epochs=epochs, seed=places)
    return _into_disc(np.array(places.coords))


def _into_disc(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centre and scale to the unit disc; far outliers are drawn in, directions are kept."""
    places = places - np.median(places, axis=0)
    radius = np.hypot(*places.T)
    typical = np.quantile(radius, 0.95) or 1.0
    shrunk = np.where(
        radius > typical, typical * (1 + 0.25 * np.tanh(radius / typical - 1)), radius
    )
    places = places * (shrunk / np.where(radius > 0, radius, 1.0))[:, None]
    largest = np.hypot(*places.T).max()
    return places / largest if largest > 0 else places


def _rings(radii: NDArray[np.float64]) -> NDArray[np.float64]:
    """Centres of discs of the given falling radii: the first in the middle, the rest in rings."""
    gap = 0.6
    centres = np.zeros((len(radii), 2))
    at, outer = 1, radii[0]
    while at < len(radii):
        ring = outer + gap + radii[at]
        angles: list[float] = []
        angle = 0.0
        while at + len(angles) < len(radii):
            step = 2 * np.arcsin(min((radii[at + len(angles)] + gap / 2) / ring, 1.0))
            if angles and angle + step > 2 * np.pi:
                break
            angles.append(angle + step / 2)
            angle += step
        # A last ring that isn't full is spread out, unless that would scatter a few discs widely.
        stretch = 2 * np.pi / angle if angle > np.pi else 1.0
        turned = np.array(angles) * stretch
        centres[at : at + len(angles)] = ring * np.stack([np.cos(turned), np.sin(turned)], axis=1)
        outer = ring + radii[at]
        at += len(angles)
    return centres


@contextmanager
def _igraph_seeded(seed: int) -> Iterator[Any]:
    try:
        import igraph
    except ImportError:
        raise MissingExtraError.of("igraph", "plots", "a 2-D layout") from None
    igraph.set_random_number_generator(random.Random(seed))
    try:
        yield igraph
    finally:
        igraph.set_random_number_generator(random)
