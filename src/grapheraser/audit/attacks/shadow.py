"""Observe one run before and after a request, and runs of the attacker's own.

The attacker knows a candidate's features, label and edges, and asks both versions of the model
about it by handing those over. So both versions are asked on the same graph, the one from before
the request, in which the candidates have no shard: what differs is what the versions have
learned, never what they are shown. (The service itself answers "unknown node" for a forgotten id;
that an id is gone is no secret that a model could keep.)

A candidate is *positive* if it was a training node of the run before and the request took it out,
and *negative* if it was a test node: never trained on, in neither version.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grapheraser.audit.attacks.answers import Answers, ask, state_of, without_edges
from grapheraser.audit.budget import UNLIMITED, Budget
from grapheraser.eraser.state import State, train
from grapheraser.errors import ParameterError
from grapheraser.execution import LocalExecutor
from grapheraser.graph import TEST, TRAIN, UNLABELLED, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.seeding import derive, generator

KEPT = "kept"
KEPT_RESEEDED = "kept, reseeded"
REFRESHED = "refreshed"
RECUT = "recut"
RECUT_RESEEDED = "recut, reseeded"
PLANTED = "planted"
SCENARIOS = {
    KEPT: "the partition is kept, the touched shards are retrained from their seeds",
    KEPT_RESEEDED: "the partition is kept, the touched shards are retrained from other seeds",
    REFRESHED: "the partition is kept, all shards are retrained from other seeds",
    RECUT: "everything is partitioned and retrained from the same seed",
    RECUT_RESEEDED: "everything is partitioned and retrained from another seed",
    PLANTED: "nothing is unlearned: a planted leak",
}


@dataclass(frozen=True, eq=False)
class Observations:
    """Answers that the attacker saw, candidate by candidate."""

    # before, after: posteriors of both versions ``[n, num_classes]``.
    before: NDArray[np.float32]
    after: NDArray[np.float32]
    # Which candidates were trained on before and are forgotten after ``[n]``.
    member: NDArray[np.bool_]
    labels: NDArray[np.int64]  # their true classes ``[n]``
    request: NDArray[np.int64]  # which request each candidate was looked at around ``[n]``
    # alone_before, alone_after: the same posteriors where no edges were handed over.
    alone_before: NDArray[np.float32]
    alone_after: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.member)

    @classmethod
    def joined(cls, parts: Sequence[Observations]) -> Observations:
        """Join observations of several runs; requests stay apart."""
        offsets = np.cumsum([0] + [int(part.request.max(initial=-1)) + 1 for part in parts[:-1]])
        parts = [
            replace(part, request=part.request + offset)
            for part, offset in zip(parts, offsets, strict=True)
        ]
        return cls(
            **{
                name: np.concatenate([getattr(part, name) for part in parts])
                for name in cls.__dataclass_fields__
            }
        )


def parameters(eraser: GraphEraser, **changes: Any) -> dict[str, Any]:
    """Return the constructor's arguments of a run like this one, for use inside a loop."""
    return {**eraser.get_params(), "executor": LocalExecutor(workers=1), **changes}


def fitted(params: Mapping[str, Any], graph: Graph, seed: int | None = None) -> GraphEraser:
    """Fit a run with these arguments; ``num_shards`` shrinks with too small a graph."""
    params = {**params, "seed": params["seed"] if seed is None else seed}
    params["num_shards"] = min(params["num_shards"], len(graph.train_nodes))
    return GraphEraser(**params).fit(graph)


def unlearned(eraser: GraphEraser, graph: Graph, nodes: NDArray[np.int64], how: str) -> State:
    """Return the state after a request for these nodes, in one of the `SCENARIOS`."""
    request = Nodes(nodes.tolist())
    other_seed = derive(int(eraser.seed), "audit", "reseeded", int(nodes[0])) >> 1
    match how:
        case "kept" | "kept, reseeded" | "refreshed":
            after = copy.copy(eraser)
            touched = after.unlearn(request).retrained
            if how == KEPT:
                return state_of(after)
            again = touched if how == KEPT_RESEEDED else tuple(after.shards_)
            return _reseeded(after, again, other_seed)
        case "recut" | "recut, reseeded":
            seed = None if how == RECUT else other_seed
            return state_of(fitted(eraser.get_params(), graph.without(request), seed))
        case "planted":
            return state_of(eraser)
    raise ParameterError(f"unknown scenario '{how}'. Choose from: {', '.join(SCENARIOS)}.")


def _reseeded(after: GraphEraser, touched: Sequence[int], seed: int) -> State:
    """Retrain some shards from other seeds, all of which follow from one."""
    state, graph = state_of(after), after.graph_
    if not touched:
        return state
    fresh = train(replace(after._snapshot.settings, seed=seed), graph, state.partition, touched)
    ensemble = replace(state.ensemble, shards={**state.shards, **fresh})
    return State(ensemble, after._snapshot.settings.aggregator.fit(ensemble))


def observe(
    eraser: GraphEraser,
    graph: Graph,
    how: str,
    *,
    requests: int = 20,
    nodes_per_request: int = 10,
    least: int = 3,
    seed: int = 0,
    budget: Budget = UNLIMITED,
    known: Answers | None = None,
) -> Observations:
    """Carry out requests one at a time, each on the run as it is, and look at both versions.

    No node is in two requests, while the training nodes last. ``least`` requests are carried out
    whatever they take; ``known`` are answers of this very run, where it was observed before.
    """
    rng = generator(seed, "audit", "requests")
    train, test = labelled(graph, TRAIN), labelled(graph, TEST)
    if len(train) < 2 * nodes_per_request or not len(test):
        raise ParameterError(
            f"an attack needs {2 * nodes_per_request} training nodes and a test node with labels "
            f"(found {len(train)} and {len(test)})."
        )
    requests = min(requests, len(train) // (2 * nodes_per_request))
    taken = rng.permutation(train)[: requests * nodes_per_request].reshape(requests, -1)
    others = np.resize(rng.permutation(test), taken.shape)
    now = state_of(eraser) if known is None else known.state
    known = Answers(now, graph) if known is None else known
    looks = known, Answers(now, without_edges(graph))
    for answers in looks:
        answers.expect(np.concatenate([taken, others], axis=None))
    parts = []
    for number in budget.rounds(requests, least=min(least, requests)):
        after = unlearned(eraser, graph, np.sort(taken[number]), how)
        asked = np.concatenate([taken[number], others[number]])
        (old, alone_old), (new, alone_new) = (
            [ask(state, answers.graph, asked, answers) for answers in looks]
            for state in (now, after)
        )
        parts.append(
            Observations(
                before=old,
                after=new,
                member=np.arange(len(asked)) < nodes_per_request,
                labels=graph.y[graph.positions(asked)],
                request=np.zeros(len(asked), dtype=np.int64),
                alone_before=alone_old,
                alone_after=alone_new,
            )
        )
    return Observations.joined(parts)


def labelled(graph: Graph, role: int) -> NDArray[np.int64]:
    """Return the ids of the nodes of that role whose class is known."""
    return graph.ids[(graph.role == role) & (graph.y != UNLABELLED)]


def resplit(graph: Graph, seed: int) -> Graph:
    """Return the graph with other training nodes, as many as now on average.

    The attacker's worst case for the defender: they know the whole graph, only not who was
    trained on.
    """
    train, test = len(labelled(graph, TRAIN)), len(labelled(graph, TEST))
    share = train / max(train + test, 1)
    known = np.flatnonzero(np.isin(graph.role, (TRAIN, TEST)) & (graph.y != UNLABELLED))
    drawn = generator(seed, "audit", "resplit").random(len(known)) < share
    role = graph.role.copy()
    role[known] = np.where(drawn, TRAIN, TEST)
    return graph.with_fields(role=role)
