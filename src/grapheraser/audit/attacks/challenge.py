"""Challenge edges: does a provider forget all that they are asked to, or only pretend?

After the description of PANDA (Wu and Wang, "Verification of Incomplete Graph Unlearning through
Adversarial Perturbations", KDD 2025). A client plants edges at *token* nodes of their own that turn
the answers about these to another class, so many that half of them would do. Then they ask for all
of them to be forgotten. A token whose answer is still the planted one gives the provider away.

An exact eraser with a data-free partition has to return to the answers from before the edges were
planted, bit for bit, and a client can ask for that too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.audit.attacks.cheats import PROVIDERS
from grapheraser.audit.attacks.shadow import labelled, parameters
from grapheraser.eraser import GraphEraser
from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, Edges, Graph
from grapheraser.graph.edge_values import PLAIN
from grapheraser.seeding import generator

# Candidates for tokens, and the edges that are planted at each.
_CANDIDATES, _EDGES = 60, 16
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Answered:
    """What a client sees of one provider.

    Attributes:
        planted: share of the tokens whose answer is still the planted class.
        returned: share of the tokens whose answer is again the one from before.
        same: whether all answers are those from before the edges were planted, bit for bit.
    """

    planted: float
    returned: float
    same: bool


@dataclass(frozen=True)
class ChallengeResult:
    """Challenge edges against an honest provider, and against those who pretend.

    Attributes:
        tokens: how many tokens there were.
        edges: how many edges were planted in all.
        providers: what was seen of each, by name.
        data_free: whether an honest provider has to return bit for bit.
    """

    tokens: int
    edges: int
    providers: dict[str, Answered]
    data_free: bool

    @property
    def caught(self) -> dict[str, bool]:
        """Whether a client can tell each provider from an honest one, by a token or by bits."""
        return {
            name: seen.planted > self.providers["honest"].planted
            or (self.data_free and not seen.same)
            for name, seen in self.providers.items()
            if name != "honest"
        }

    def to_dict(self) -> dict[str, Any]:
        providers = {name: seen.__dict__ for name, seen in self.providers.items()}
        return {**self.__dict__, "providers": providers, "caught": self.caught}


def challenge_edges(eraser: GraphEraser, graph: Graph, *, seed: int = 0) -> ChallengeResult:
    """Plant edges in a run like this one, and have them forgotten by every provider.

    Args:
        eraser: fitted on ``graph``; it is left as it is.
        graph: the run's graph.
        seed: of the client.
    """
    if graph.edge_kind != PLAIN:
        raise ParameterError("challenge edges carry no weights, features or directions.")
    params = parameters(eraser)
    planted = _planted(graph, eraser.predict(labelled(graph, TRAIN)), seed)
    before, poisoned = _fit(params, graph), _fit(params, _with_edges(graph, planted.values()))
    half = {token: pairs[::2] for token, pairs in planted.items()}
    halfway = _fit(params, _with_edges(graph, half.values()))
    nodes = np.array(list(planted), dtype=np.int64)
    was, full, some = (version.predict(nodes) for version in (before, poisoned, halfway))
    tokens = nodes[(was != full) & (full == some)]
    if len(tokens) == 0:
        raise ParameterError(
            f"none of {len(nodes)} nodes can be turned to another class by {_EDGES} edges: there "
            "are no tokens to challenge with."
        )
    pairs = np.concatenate([planted[int(token)] for token in tokens])
    turned = _fit(params, _with_edges(graph, [pairs]))
    request = Edges(pairs)
    providers = {
        name: _seen(answer(turned, request), before, turned, tokens)
        for name, answer in PROVIDERS.items()
    }
    return ChallengeResult(len(tokens), len(pairs), providers, before.partition_.data_free)


def _fit(params: Mapping[str, Any], graph: Graph) -> GraphEraser:
    return GraphEraser(**params).fit(graph)


def _seen(version: GraphEraser, before: GraphEraser, turned: GraphEraser, tokens: Ids) -> Answered:
    now, was, full = (run.predict(tokens) for run in (version, before, turned))
    ids = before.graph_.ids
    same = version.predict_proba(ids).tobytes() == before.predict_proba(ids).tobytes()
    return Answered(
        planted=float(((now == full) & (full != was)).mean()),
        returned=float((now == was).mean()),
        same=same,
    )


def _planted(graph: Graph, found: NDArray[np.int64], seed: int) -> dict[int, Ids]:
    """For each candidate ``[m, 2]`` new edges to training nodes of one other class."""
    rng, nodes = generator(seed, "audit", "challenge"), labelled(graph, TRAIN)
    chosen = rng.permutation(len(nodes))[:_CANDIDATES]
    out = {}
    for at in chosen.tolist():
        node = int(nodes[at])
        other = (int(found[at]) + 1 + int(rng.integers(graph.num_classes - 1))) % graph.num_classes
        known = np.append(graph.neighbours(node), node)
        mates = nodes[(graph.labels(nodes) == other) & ~np.isin(nodes, known)]
        mates = rng.permutation(mates)[:_EDGES]
        if len(mates) >= 2:
            out[node] = np.stack([np.full(len(mates), node), mates], axis=1)
    if not out:
        raise ParameterError("this attack needs training nodes of two classes.")
    return out


def _with_edges(graph: Graph, planted: Any) -> Graph:
    """The graph with more edges, both ways."""
    pairs = np.concatenate(list(planted))
    at = graph.positions(pairs.ravel()).reshape(-1, 2)
    n = graph.num_nodes
    rows, columns = np.concatenate([at, at[:, ::-1]]).T
    old = sp.csr_array(
        (np.ones(len(graph.indices), dtype=np.int8), graph.indices, graph.indptr), shape=(n, n)
    )
    new = sp.csr_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(n, n))
    both = sp.csr_array(old + new)
    both.sort_indices()
    return replace(
        graph, indptr=both.indptr.astype(np.int64), indices=both.indices.astype(np.int32)
    )
