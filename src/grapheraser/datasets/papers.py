"""The larger embedded graph: papers that cite each other, grown from a seed.

Papers appear one after the other. Each belongs to a topic, which is its class, and within it to a
circle of authors. It first cites an earlier paper of its circle, of its topic or of any, or else
one that such a paper cites, so that papers that are cited often are cited more often. Further
references are as likely found among the references of the first. Of a paper's words some are
typical of its circle, some of its topic, and most of neither. One paper in ten is filed under any
topic.

Degrees, homophily and words are like those of Cora and Pubmed; a test compares them. Everything is
drawn as integers or compared with constants, so the bits are the same on every machine.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from grapheraser.arrays import Ints
from grapheraser.graph import Graph
from grapheraser.seeding import generator

PAPERS, WORDS = 24_000, 1_500
_TOPICS = (30, 16, 15, 13, 11, 8, 7)  # shares of a hundred
_ELSEWHERE = 0.1  # of the papers are filed under a topic drawn at random
_CIRCLE = 40  # papers of a circle on average
_FURTHER, _MAX_FURTHER = 0.54, 12  # how likely another reference follows one, and how often at most
_WITHIN_CIRCLE, _WITHIN_TOPIC = 0.80, 0.16
_COPIED, _CLOSED = 0.15, 0.50
_MIN_WORDS, _MAX_WORDS = 9, 33
_TOPIC_WORDS, _CIRCLE_WORDS = 40, 8
_FROM_CIRCLE, _FROM_TOPIC = 0.27, 0.12
_HEAD = 4  # the k-th most common word is as common as 1 / (k + _HEAD)


def papers_graph(*, seed: int = 0) -> Graph:
    """Generate the graph; the same seed gives the same graph on every machine."""
    rng = generator(seed, "papers")
    by_share = np.repeat(np.arange(len(_TOPICS)), _TOPICS)
    topic = by_share[rng.integers(100, size=PAPERS)]
    circles = PAPERS // _CIRCLE
    # A topic has circles in proportion to its papers.
    bounds = np.concatenate([[0], np.cumsum(_TOPICS)]) * circles // 100
    circle = bounds[topic] + rng.integers(np.diff(bounds)[topic])
    words, pairs = _words(topic, circle, circles, rng), _citations(topic, circle, rng)
    elsewhere = by_share[rng.integers(100, size=PAPERS)]
    return Graph.from_arrays(
        words,
        pairs,
        np.where(rng.random(PAPERS) < _ELSEWHERE, elsewhere, topic),
        num_classes=len(_TOPICS),
        each_edge_once=True,
        name="demo-large",
    )


def _citations(topic: Ints, circle: Ints, rng: np.random.Generator) -> Ints:
    """Pairs ``[2, m]`` of a paper and one that it cites, each pair once."""
    more = rng.random((PAPERS, _MAX_FURTHER)) < _FURTHER
    counts = 1 + np.cumprod(more, axis=1).sum(axis=1)
    chance = rng.random((PAPERS, _MAX_FURTHER + 1, 3)).tolist()
    draws = rng.integers(1 << 62, size=(PAPERS, _MAX_FURTHER + 1, 2)).tolist()
    of_circle: dict[int, list[int]] = {}
    of_topic: dict[int, list[int]] = {}
    cited: list[list[int]] = []
    for paper, (own, near) in enumerate(zip(topic.tolist(), circle.tolist(), strict=True)):
        friends, peers = of_circle.setdefault(near, []), of_topic.setdefault(own, [])
        found: list[int] = []
        for number in range(min(int(counts[paper]), paper)):
            (where, copy, close), (first, second) = chance[paper][number], draws[paper][number]
            if found and close < _CLOSED and cited[found[0]]:
                chosen = cited[found[0]][first % len(cited[found[0]])]
            else:
                if where < _WITHIN_CIRCLE and friends:
                    chosen = friends[first % len(friends)]
                elif where < _WITHIN_CIRCLE + _WITHIN_TOPIC and peers:
                    chosen = peers[first % len(peers)]
                else:
                    chosen = first % paper
                if copy < _COPIED and cited[chosen]:
                    chosen = cited[chosen][second % len(cited[chosen])]
            if chosen not in found:
                found.append(chosen)
        cited.append(found)
        friends.append(paper)
        peers.append(paper)
    later = np.repeat(np.arange(PAPERS), [len(found) for found in cited])
    return np.stack([later, np.array([paper for found in cited for paper in found])])


def _words(topic: Ints, circle: Ints, circles: int, rng: np.random.Generator) -> sp.csr_array:
    """Binary bag of words ``[PAPERS, WORDS]``."""
    popularity = np.cumsum(10**9 // np.arange(_HEAD, WORDS + _HEAD))
    of_topic = rng.integers(WORDS, size=(len(_TOPICS), _TOPIC_WORDS))
    of_circle = rng.integers(WORDS, size=(circles, _CIRCLE_WORDS))
    lengths = rng.integers(_MIN_WORDS, _MAX_WORDS, size=PAPERS)
    rows = np.repeat(np.arange(PAPERS), lengths)
    words = np.searchsorted(popularity, rng.integers(popularity[-1], size=len(rows)), side="right")
    source = rng.random(len(rows))
    typical = of_topic[topic[rows], rng.integers(_TOPIC_WORDS, size=len(rows))]
    words = np.where(source < _FROM_CIRCLE + _FROM_TOPIC, typical, words)
    typical = of_circle[circle[rows], rng.integers(_CIRCLE_WORDS, size=len(rows))]
    words = np.where(source < _FROM_CIRCLE, typical, words)
    counts = sp.csr_array((np.ones(len(rows)), (rows, words)), shape=(PAPERS, WORDS))
    counts.sum_duplicates()
    counts.data[:] = 1.0
    return counts
