"""Are forgotten edges recovered from the answers of the current version alone?

After the description of TrendAttack (Zhang et al., "Unlearning Inversion Attacks for Graph Neural
Networks", arXiv 2506.00808). The attacker knows the graph that is left and asks by node id. Besides
how alike the answers about two nodes are, they look for a dent: where an approximate method has
forgotten an edge, it is less sure of the ends than of what is around them. An attack model learns
from forgotten edges of the attacker's own run what to make of both.

Forgotten edges join nodes that are alike, so the same attack on a run that was fitted without them
says how much of its success is forgetting's fault.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.attacks.cheats import hiding, honest, idle
from grapheraser.audit.attacks.edges import candidate_edges
from grapheraser.audit.attacks.membership import trained
from grapheraser.audit.attacks.posterior_features import logarithms
from grapheraser.audit.attacks.shadow import fitted, labelled, parameters, resplit
from grapheraser.audit.statistics import Rates, rates
from grapheraser.eraser import GraphEraser
from grapheraser.graph import TRAIN, Edges, Graph
from grapheraser.seeding import derive, generator

_MODEL = "random forest"


@dataclass(frozen=True)
class InversionResult:
    """How well forgotten edges are told from pairs that never had one.

    Attributes:
        candidates: how many edges were forgotten at once.
        after: by the answers of this run once it has forgotten them.
        never: by those of a run that was fitted without them, on the same partition.
        same: whether both gave every node the same answer, bit for bit.
        cheats: by those of providers who only pretend.
    """

    candidates: int
    after: Rates
    never: Rates
    same: bool
    cheats: dict[str, Rates]

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.__dict__,
            "after": self.after.to_dict(),
            "never": self.never.to_dict(),
            "cheats": {name: found.to_dict() for name, found in self.cheats.items()},
        }


def inversion_attack(
    eraser: GraphEraser, graph: Graph, *, candidates: int = 150, seed: int = 0
) -> InversionResult:
    """Forget edges, and try to recover them; the run itself is left as it is.

    Args:
        eraser: fitted on ``graph``.
        graph: the run's graph.
        candidates: edges between training nodes to forget at once.
        seed: of the attacker.
    """
    own_graph = resplit(graph, derive(seed, "audit", "inversion"))
    own = fitted(parameters(eraser), own_graph, derive(seed, "audit", "inversion", "run") >> 1)
    theirs = _Judged.of(own_graph, candidates, derive(seed, "audit", "inversion", "own"))
    shown = theirs.features(honest(own, theirs.request))
    judged = _Judged.of(graph, candidates, derive(seed, "audit", "inversion", "target"))
    never = GraphEraser(**parameters(eraser)).fit(judged.rest, partition=eraser.partition_)
    versions = {
        "after": honest(eraser, judged.request),
        "never": never,
        "does nothing": idle(eraser, judged.request),
        "hides": hiding(eraser, judged.request),
    }
    found: dict[str, Rates] = {}
    for name, version in versions.items():
        belief = trained(_MODEL, shown, theirs.member, judged.features(version), seed)
        found[name] = rates(belief, judged.member, seed=seed)
    answers = [versions[name].predict_proba(graph.ids).tobytes() for name in ("after", "never")]
    return InversionResult(
        candidates=len(judged.request.pairs),
        after=found.pop("after"),
        never=found.pop("never"),
        same=answers[0] == answers[1],
        cheats=found,
    )


@dataclass(frozen=True, eq=False)
class _Judged:
    """Pairs that the attacker judges, on the graph that is left.

    Attributes:
        request: the forgotten edges.
        rest: the graph without them.
        pairs: ``[m, 2]`` ids: the forgotten edges, then pairs of training nodes that never had one.
        member: which of them were edges.
    """

    request: Edges
    rest: Graph
    pairs: NDArray[np.int64]
    member: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: Graph, count: int, seed: int) -> _Judged:
        edges = candidate_edges(graph, count, seed)
        others = _strangers(graph, len(edges), seed)
        request = Edges(edges)
        pairs = np.concatenate([edges, others])
        return cls(request, graph.without(request), pairs, np.arange(len(pairs)) < len(edges))

    def features(self, version: GraphEraser) -> NDArray[np.float64]:
        """What the answers of a version say of each pair ``[m, .]``: likeness, and trends."""
        rest = self.rest
        answers = version.predict_proba(rest.ids).astype(np.float64)
        sure = logarithms(answers.max(axis=1))
        around = _mean_around(rest, sure)
        trends = np.stack([sure, around - sure, _mean_around(rest, around) - sure], axis=1)
        at = rest.positions(self.pairs.ravel()).reshape(-1, 2)
        one, two = answers[at[:, 0]], answers[at[:, 1]]
        logs = logarithms(one), logarithms(two)
        likeness = [
            (one * two).sum(axis=1),
            np.abs(one - two).sum(axis=1),
            np.linalg.norm(one - two, axis=1),
            np.abs(logs[0] - logs[1]).sum(axis=1),
            ((one - two) * (logs[0] - logs[1])).sum(axis=1),
            (one.argmax(axis=1) == two.argmax(axis=1)).astype(np.float64),
        ]
        ends = np.sort(trends[at], axis=1).reshape(len(at), -1)
        return np.hstack([np.stack(likeness, axis=1), ends])


def _mean_around(graph: Graph, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over each node's neighbours; its own value where it has none."""
    sums = np.bincount(graph.sources, weights=values[graph.indices], minlength=graph.num_nodes)
    return np.where(graph.degree > 0, sums / np.maximum(graph.degree, 1), values)


def _strangers(graph: Graph, count: int, seed: int) -> NDArray[np.int64]:
    """Pairs of labelled training nodes without an edge."""
    rng, nodes = generator(seed, "audit", "strangers"), labelled(graph, TRAIN)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < count:
        u, v = sorted(rng.choice(nodes, size=2, replace=False).tolist())
        if v not in graph.neighbours(u):
            pairs.add((u, v))
    return np.array(sorted(pairs), dtype=np.int64)
