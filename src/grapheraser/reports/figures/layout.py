"""A seeded place in the plane for every node of a graph."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from grapheraser.arrays import Floats, Ints
from grapheraser.graph import Graph
from grapheraser.reports.figures.springs import settle, without_loops
from grapheraser.seeding import derive


def layout(graph: Graph, seed: int = 0) -> Floats:
    """Coordinates ``[n, 2]`` by position, centred, within the unit disc.

    Every connected component is laid out by itself and given an area that grows with its number
    of nodes; the largest is in the middle, the others lie in rings around it, so isolated nodes
    form the rim instead of squeezing the rest together. A function of the graph and the seed.
    """
    n = graph.num_nodes
    places = np.zeros((n, 2))
    if n == 0:
        return places
    ones = np.ones(len(graph.indices))
    edges = csr_array((ones, graph.indices, graph.indptr), shape=(n, n))
    count, components = connected_components(edges, directed=False)
    edges = without_loops(edges)
    sizes = np.bincount(components, minlength=count)
    largest_first = np.argsort(-sizes, kind="stable")
    ends = np.cumsum(sizes[largest_first])
    order = np.argsort(np.argsort(largest_first)[components], kind="stable")
    for centre, nodes in zip(
        _rings(np.sqrt(sizes[largest_first])), np.split(order, ends[:-1]), strict=True
    ):
        inner = _component_layout(edges, nodes, graph.ids[nodes], seed)
        places[nodes] = centre + inner * np.sqrt(len(nodes))
    radius = np.hypot(*places.T).max()
    return places / radius if radius else places


def _component_layout(edges: csr_array, nodes: Ints, ids: Ints, seed: int) -> Floats:
    """One connected component in the unit disc, communities pulled apart."""
    if len(nodes) == 1:
        return np.zeros((1, 2))
    if len(nodes) == 2:
        return np.array([[-0.5, 0.0], [0.5, 0.0]])
    return _into_disc(settle(edges[nodes][:, nodes], ids, derive(seed, "layout")))


def _into_disc(places: Floats) -> Floats:
    """Centre and scale to the unit disc; far outliers are drawn in, directions are kept."""
    places = places - np.median(places, axis=0)
    radius = np.hypot(*places.T)
    typical = np.quantile(radius, 0.97) or 1.0
    beyond = np.maximum(radius / typical, 1.0)
    shrunk = np.where(beyond > 1, typical * (1 + np.log(beyond)), radius)
    places = places * (shrunk / np.where(radius > 0, radius, 1.0))[:, None]
    largest = np.hypot(*places.T).max()
    return places / largest if largest > 0 else places


def _rings(radii: Floats) -> Floats:
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
