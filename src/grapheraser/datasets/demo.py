"""The embedded graph: a citation network, generated from a seed.

Papers belong to topics, and within a topic to circles of authors who mostly cite each other.
Degrees are heavy-tailed. Of a paper's words some are typical of its circle, some of its topic, and
most of neither, so that neither words nor citations alone predict the topic well.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from grapheraser.arrays import Ints
from grapheraser.graph import Graph
from grapheraser.seeding import generator

NODES, EDGES, CLASSES, WORDS, CIRCLES = 2_700, 5_900, 7, 1_400, 12
_WORDS_PER_PAPER, _TOPIC_WORDS, _CIRCLE_WORDS = 18, 60, 12
_FROM_CIRCLE, _FROM_TOPIC = 0.05, 0.11
_WITHIN_CIRCLE, _WITHIN_TOPIC = 0.50, 0.25


def demo_graph(*, seed: int = 0) -> Graph:
    """Generate the graph; the same seed gives the same graph on every machine."""
    rng = generator(seed, "demo")
    sizes = rng.dirichlet(np.full(CLASSES, 8.0))
    topic = rng.choice(CLASSES, size=NODES, p=sizes)
    circle = topic * CIRCLES + rng.integers(CIRCLES, size=NODES)
    return Graph.from_arrays(
        _words(topic, circle, rng),
        _citations(topic, circle, rng),
        topic,
        num_classes=CLASSES,
        each_edge_once=True,
        name="demo",
    )


def _words(topic: Ints, circle: Ints, rng: np.random.Generator) -> sp.csr_array:
    """Binary bag of words ``[NODES, WORDS]``."""
    popularity = 1.0 / np.arange(3, WORDS + 3)
    popularity /= popularity.sum()
    of_topic = rng.integers(WORDS, size=(CLASSES, _TOPIC_WORDS))
    of_circle = rng.integers(WORDS, size=(CLASSES * CIRCLES, _CIRCLE_WORDS))
    shape = (NODES, _WORDS_PER_PAPER)
    words = rng.choice(WORDS, size=shape, p=popularity)
    source = rng.random(shape)
    column = rng.integers(_TOPIC_WORDS, size=shape)
    from_topic = source < _FROM_TOPIC + _FROM_CIRCLE
    words = np.where(from_topic, of_topic[topic[:, None], column], words)
    column = rng.integers(_CIRCLE_WORDS, size=shape)
    words = np.where(source < _FROM_CIRCLE, of_circle[circle[:, None], column], words)
    rows = np.repeat(np.arange(NODES), _WORDS_PER_PAPER)
    counts = sp.csr_array((np.ones(rows.size), (rows, words.ravel())), shape=(NODES, WORDS))
    counts.sum_duplicates()
    counts.data[:] = 1.0
    return counts


def _citations(topic: Ints, circle: Ints, rng: np.random.Generator) -> Ints:
    """About ``EDGES`` pairs: half within a circle, a quarter within a topic, the rest anywhere."""
    fame = rng.pareto(2.2, size=NODES) + 0.4
    first = rng.choice(NODES, size=EDGES, p=fame / fame.sum())
    # Half of the papers cite at least once.
    first[: NODES // 2] = rng.permutation(NODES)[: NODES // 2]
    where = rng.random(EDGES)
    second = rng.choice(NODES, size=EDGES, p=fame / fame.sum())
    for groups, chosen in (
        (circle, where < _WITHIN_CIRCLE),
        (topic, (where >= _WITHIN_CIRCLE) & (where < _WITHIN_CIRCLE + _WITHIN_TOPIC)),
    ):
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            asking = np.flatnonzero(chosen & (groups[first] == group))
            weight = fame[members] / fame[members].sum()
            second[asking] = rng.choice(members, size=len(asking), p=weight)
    pairs = np.stack([np.minimum(first, second), np.maximum(first, second)])
    return np.unique(pairs[:, first != second], axis=1)
