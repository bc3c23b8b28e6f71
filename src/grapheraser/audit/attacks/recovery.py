"""Recover forgotten edges from the current version, and a forgotten node from both.

`inversion_attack` follows the description of TrendAttack (Zhang et al., "Unlearning Inversion
Attacks for Graph Neural Networks", arXiv 2506.00808). The attacker knows the graph that is left and
asks the current version by node id. Besides how alike the answers about two nodes are, they look
for a dent: where an approximate method has forgotten an edge, it is less sure of the ends than of
what is around them. An attack model learns from forgotten edges of the attacker's own run what to
make of both. Forgotten edges join nodes that are alike, so the same attack on a run that was fitted
without them says how much of its success is forgetting's fault.

`reconstruction_attack` follows the question of GraphToxin (Song and Palanisamy, "GraphToxin:
Reconstructing Full Unlearned Graphs from Graph Unlearning", arXiv 2511.10936): links and features,
for nodes at random and for those of the highest degree. There, gradients are matched to what two
models differ in. An exact eraser makes that needless: nothing else differs, so answers are compared
as they are.

- Links: nodes about which the versions differ most, asked by id, were its neighbours.
- Features: nodes with one feature and no edge are handed over, one for each column. Where the
  answers differ most, the forgotten node had the feature.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.audit.attacks.answers import ask, logarithms, state_of
from grapheraser.audit.attacks.edges import candidate_edges
from grapheraser.audit.attacks.membership import trained
from grapheraser.audit.attacks.planted import hiding, honest, idle
from grapheraser.audit.attacks.shadow import fitted, labelled, parameters, resplit
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.audit.statistics import Interval, Rates, Result, auc, mean_interval, rates
from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, Edges, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator

_MODEL = "random forest"


@dataclass(frozen=True)
class InversionResult(Result):
    """Forgotten edges told from pairs that never had one."""

    candidates: int  # how many edges were forgotten at once
    after: Rates  # by the answers of this run once it has forgotten them
    never: Rates  # by those of a run that was fitted without them, on the same partition
    same: bool  # whether both gave every node the same answer, bit for bit
    cheats: dict[str, Rates]  # by those of providers who only pretend


def inversion_attack(
    eraser: GraphEraser, graph: Graph, *, candidates: int = 150, seed: int = 0
) -> InversionResult:
    """Forget edges, and try to recover them; the run itself is left as it is."""
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
    """Pairs that the attacker judges, on the graph that is left."""

    request: Edges  # the forgotten edges
    rest: Graph  # the graph without them
    # ``[m, 2]`` ids: the forgotten edges, then pairs of training nodes that never had one.
    pairs: NDArray[np.int64]
    member: NDArray[np.bool_]  # which of them were edges

    @classmethod
    def of(cls, graph: Graph, count: int, seed: int) -> _Judged:
        edges = candidate_edges(graph, count, seed)
        others = _strangers(graph, len(edges), seed)
        request = Edges(edges)
        pairs = np.concatenate([edges, others])
        return cls(request, graph.without(request), pairs, np.arange(len(pairs)) < len(edges))

    def features(self, version: GraphEraser) -> NDArray[np.float64]:
        """Describe each pair by the answers of a version ``[m, .]``: likeness, and trends."""
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
    """Average over each node's neighbours; take its own value where it has none."""
    sums = np.bincount(graph.sources, weights=values[graph.indices], minlength=graph.num_nodes)
    return np.where(graph.degree > 0, sums / np.maximum(graph.degree, 1), values)


def _strangers(graph: Graph, count: int, seed: int) -> NDArray[np.int64]:
    """Draw pairs of labelled training nodes without an edge."""
    rng, nodes = generator(seed, "audit", "strangers"), labelled(graph, TRAIN)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < count:
        u, v = sorted(rng.choice(nodes, size=2, replace=False).tolist())
        if v not in graph.neighbours(u):
            pairs.add((u, v))
    return np.array(sorted(pairs), dtype=np.int64)


RANDOM, HIGHEST_DEGREE = "at random", "of the highest degree"
_MAX_COLUMNS = 2000  # that are asked about


@dataclass(frozen=True)
class ReconstructionResult(Result):
    """Links and features of forgotten nodes, told."""

    # How many nodes were forgotten, one at a time, by how they were chosen.
    requests: dict[str, int]
    links: dict[str, Interval]  # mean AUC of telling neighbours from other nodes, likewise
    # Mean AUC of telling columns that the node had from other ones, likewise.
    features: dict[str, Interval]


def reconstruction_attack(
    eraser: GraphEraser,
    graph: Graph,
    *,
    requests: int = 20,
    seed: int = 0,
    budget: Budget = UNLIMITED,
) -> ReconstructionResult:
    """Forget nodes one at a time, each from the run as it is, and reconstruct them."""
    nodes = labelled(graph, TRAIN)
    degree = graph.degree[graph.positions(nodes)]
    if not (degree > 0).any():
        raise ParameterError("this attack needs training nodes with edges (found none).")
    linked = nodes[degree > 0]
    rng = generator(seed, "audit", "reconstruction")
    groups = {
        RANDOM: rng.permutation(linked)[:requests],
        HIGHEST_DEGREE: nodes[np.argsort(-degree, kind="stable")[:requests]],
    }
    probes, columns = _probes(graph, rng)
    known = logarithms(ask(state_of(eraser), probes, probes.ids))
    before = logarithms(eraser.predict_proba(graph.ids))
    links: dict[str, Interval] = {}
    features: dict[str, Interval] = {}
    done: dict[str, int] = {}
    for number, (name, chosen) in enumerate(groups.items()):
        share = budget.share(1 / (len(groups) - number))
        found: list[tuple[float, float]] = []
        for at in share.rounds(len(chosen), least=min(5, len(chosen))):
            node = int(chosen[at])
            after = copy.copy(eraser)
            after.unlearn(Nodes([node]))
            others = graph.ids != node
            moved = np.abs(before[others] - logarithms(after.predict_proba(graph.ids[others])))
            neighbour = np.isin(graph.ids[others], graph.neighbours(node))
            shifted = np.abs(known - logarithms(ask(state_of(after), probes, probes.ids)))
            had = np.isin(columns, _columns_of(graph, node))
            found.append((auc(moved.sum(axis=1), neighbour), auc(shifted.sum(axis=1), had)))
        told = np.array(found)
        done[name] = len(told)
        links[name] = mean_interval(told[:, 0], seed=seed)
        features[name] = mean_interval(told[:, 1], seed=seed)
    return ReconstructionResult(done, links, features)


def _probes(graph: Graph, rng: np.random.Generator) -> tuple[Graph, NDArray[np.int64]]:
    """Make nodes with one feature each and no edges; return them and their columns."""
    columns = np.sort(rng.permutation(graph.num_features)[:_MAX_COLUMNS])
    count = len(columns)
    ones = np.ones(count, dtype=np.float32)
    x = sp.csr_array((ones, (np.arange(count), columns)), shape=(count, graph.num_features))
    none = np.zeros((2, 0), dtype=np.int64)
    labels = np.zeros(count, dtype=np.int64)
    probes = Graph.from_arrays(
        x if not graph.pages.dense else x.toarray(),
        none,
        labels,
        test=np.arange(count),
        num_classes=graph.num_classes,
    )
    return probes.with_context(graph.context), columns


def _columns_of(graph: Graph, node: int) -> NDArray[np.int64]:
    row = graph.x[graph.positions([node])]
    dense = row.toarray() if sp.issparse(row) else np.asarray(row)
    return np.flatnonzero(dense[0])
