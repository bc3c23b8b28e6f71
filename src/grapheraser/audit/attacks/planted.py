"""Plant something in a copy of a run, have it forgotten, and look whether it is gone.

`plant_and_forget` plants a class that does not exist.

`challenge_edges` plants edges, after the description of PANDA (Wu and Wang, "Verification of
Incomplete Graph Unlearning through Adversarial Perturbations", KDD 2025). A client plants edges at
*token* nodes of their own that turn the answers about these to another class, so many that half of
them would do. Then they ask for all of them to be forgotten. A token whose answer is still the
planted one gives the provider away. An exact eraser with a data-free partition has to return to the
answers from before the edges were planted, bit for bit, and a client can ask for that too.

`PROVIDERS` answer a request, one honestly; the others only pretend. They are the positive controls
of an audit: what finds nothing against them finds nothing at all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser import checks
from grapheraser.audit.attacks.answers import ask, state_of
from grapheraser.audit.attacks.shadow import fitted, labelled, parameters
from grapheraser.audit.statistics import Result
from grapheraser.engines import digest_tensors
from grapheraser.errors import ParameterError
from grapheraser.graph import TRAIN, AddEdges, Edges, Graph, Nodes
from grapheraser.graph.edge_values import PLAIN
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import generator


@dataclass(frozen=True)
class PlantedResult(Result):
    """Predictions of the planted class, counted."""

    planted: int  # how many training nodes carried it
    # How many predictions were counted over: all other nodes of the graph, and the planted ones
    # handed back with their edges.
    nodes: int
    before: int  # predictions of it by the run that was trained on it
    after: int  # once exactly those nodes are forgotten
    never: int  # by a run that never saw them, with the same partition
    identical: bool  # whether the weights of the last two are the same, bit for bit

    @property
    def passed(self) -> bool:
        """True where forgetting gave what never having seen gives."""
        return self.identical and self.after == self.never

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "passed": self.passed}


def plant_and_forget(
    graph: Graph, params: Mapping[str, Any], *, share: float = 0.3, seed: int = 0
) -> PlantedResult:
    """Relabel a share of the training nodes with a class of their own, train, forget them.

    The graph is left as it is. ``share`` must be large enough that the class is learned, or
    forgetting it shows nothing.
    """
    checks.real("share", "plant_and_forget", share, above=0, below=1)
    train = labelled(graph, TRAIN)
    count = max(1, int(share * len(train)))
    # The stream keeps the name that it had when the figures of the guide were measured.
    chosen = np.sort(generator(seed, "audit", "replay").permutation(train)[:count])
    planted = graph.num_classes
    y = graph.y.copy()
    y[graph.positions(chosen)] = planted
    poisoned = graph.with_fields(y=y, num_classes=planted + 1)

    run = fitted(params, poisoned)
    before = _count(run, poisoned, chosen, planted)
    partition = run.partition_
    run.unlearn(Nodes(chosen.tolist()))
    after = _count(run, poisoned, chosen, planted)
    clean = poisoned.without(Nodes(chosen.tolist()))
    never = GraphEraser(**params).fit(clean, partition=partition)
    same = run.shards_.keys() == never.shards_.keys() and all(
        run.shards_[shard].digest == never.shards_[shard].digest for shard in run.shards_
    )
    same &= digest_tensors(run.aggregator_.tensors) == digest_tensors(never.aggregator_.tensors)
    return PlantedResult(
        planted=count,
        nodes=graph.num_nodes,
        before=before,
        after=after,
        never=_count(never, poisoned, chosen, planted),
        identical=bool(same),
    )


def _classes(run: GraphEraser, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the class of each node as a number, whatever classes are called."""
    return run.predict_proba(nodes).argmax(axis=1)


def _count(run: GraphEraser, graph: Graph, chosen: np.ndarray[Any, Any], planted: int) -> int:
    others = np.setdiff1d(graph.ids, chosen)
    handed_back = ask(state_of(run), graph, chosen).argmax(axis=1)
    return int((_classes(run, others) == planted).sum() + (handed_back == planted).sum())


Provider = Callable[[GraphEraser, Edges], GraphEraser]


def honest(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Forgets, exactly; the run itself is left as it is."""
    after = copy.copy(eraser)
    after.unlearn(request)
    return after


def idle(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Does nothing."""
    del request
    return copy.copy(eraser)


def hiding(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Takes the edges out of the graph that it answers on, and keeps all that it has learned."""
    after = copy.copy(eraser)
    now = after._snapshot
    ensemble = replace(now.state.ensemble, graph=now.state.graph.without(request))
    after._fitted = replace(now, state=replace(now.state, ensemble=ensemble))
    return after


def halfway(eraser: GraphEraser, request: Edges) -> GraphEraser:
    """Forgets every other edge of the request."""
    return honest(eraser, Edges(request.pairs[::2]))


PROVIDERS: dict[str, Provider] = {
    "honest": honest,
    "does nothing": idle,
    "hides": hiding,
    "forgets half": halfway,
}


# Candidates for tokens, and the edges that are planted at each.
_CANDIDATES, _EDGES = 60, 16
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Answered:
    """Answers of one provider, as a client sees them."""

    planted: float  # share of the tokens whose answer is still the planted class
    returned: float  # share of the tokens whose answer is again the one from before
    same: bool  # whether all answers are those from before the edges were planted, bit for bit


@dataclass(frozen=True)
class ChallengeResult(Result):
    """Challenge edges against an honest provider, and against those who pretend."""

    tokens: int  # how many tokens there were
    edges: int  # how many edges were planted in all
    providers: dict[str, Answered]  # what was seen of each, by name
    data_free: bool  # whether an honest provider has to return bit for bit

    @property
    def caught(self) -> dict[str, bool]:
        """Say of each provider if a client can tell them from an honest one, by token or bits."""
        return {
            name: seen.planted > self.providers["honest"].planted
            or (self.data_free and not seen.same)
            for name, seen in self.providers.items()
            if name != "honest"
        }

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "caught": self.caught}


def challenge_edges(eraser: GraphEraser, graph: Graph, *, seed: int = 0) -> ChallengeResult:
    """Plant edges in a run like this one, and have them forgotten by every provider."""
    if graph.edge_kind != PLAIN:
        raise ParameterError("challenge edges carry no weights, features or directions.")
    params = parameters(eraser)
    planted = _planted(graph, _classes(eraser, labelled(graph, TRAIN)), seed)
    before, poisoned = fitted(params, graph), fitted(params, _with_edges(graph, planted.values()))
    half = {token: pairs[::2] for token, pairs in planted.items()}
    halfway = fitted(params, _with_edges(graph, half.values()))
    nodes = np.array(list(planted), dtype=np.int64)
    was, full, some = (_classes(version, nodes) for version in (before, poisoned, halfway))
    tokens = nodes[(was != full) & (full == some)]
    if len(tokens) == 0:
        raise ParameterError(
            f"none of {len(nodes)} nodes can be turned to another class by {_EDGES} edges: there "
            "are no tokens to challenge with."
        )
    pairs = np.concatenate([planted[int(token)] for token in tokens])
    turned = fitted(params, _with_edges(graph, [pairs]))
    request = Edges(pairs)
    providers = {
        name: _seen(answer(turned, request), before, turned, tokens)
        for name, answer in PROVIDERS.items()
    }
    return ChallengeResult(len(tokens), len(pairs), providers, before.partition_.data_free)


def _seen(version: GraphEraser, before: GraphEraser, turned: GraphEraser, tokens: Ids) -> Answered:
    now, was, full = (_classes(run, tokens) for run in (version, before, turned))
    ids = before.graph_.ids
    same = version.predict_proba(ids).tobytes() == before.predict_proba(ids).tobytes()
    return Answered(
        planted=float(((now == full) & (full != was)).mean()),
        returned=float((now == was).mean()),
        same=same,
    )


def _planted(graph: Graph, found: NDArray[np.int64], seed: int) -> dict[int, Ids]:
    """Draw candidates, and for each ``[m, 2]`` new edges to training nodes of one other class."""
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


def _with_edges(graph: Graph, planted: Iterable[Ids]) -> Graph:
    """Return the graph with more edges; two tokens may be joined from both sides."""
    pairs = np.sort(np.concatenate(list(planted)), axis=1)
    return graph.updated(AddEdges(np.unique(pairs, axis=0)))
