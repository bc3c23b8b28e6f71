"""The methods that are compared, behind one interface: forget, and answer.

`Trained` methods start from one and the same GCN (`gcn.train`) and differ in what a request does to
it; `Erased` is a GraphEraser with some settings.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray

from grapheraser.aggregation import LearnedAggregator
from grapheraser.audit.attacks.answers import ask, state_of
from grapheraser.datasets import default_shards
from grapheraser.execution import LocalExecutor
from grapheraser.graph import UNLABELLED, Edges, Graph, Nodes
from grapheraser.nodes import GraphEraser
from grapheraser.partition import BekmPartitioner
from grapheraser.partition.kmeans import pretrained_gnn
from grapheraser.seeding import derive, generator
from grapheraser_lab.rivals.gcn import View, Weights, logits, posteriors, train
from grapheraser_lab.rivals.gif import GifSettings, updated
from grapheraser_lab.rivals.gnndelete import (
    DeleteSettings,
    Operators,
    deleted_logits,
    edges_of,
    trained,
)
from grapheraser_lab.rivals.linear import (
    Certified,
    GraphEditor,
    LinearSettings,
    Projector,
    ScaleGun,
)
from grapheraser_lab.rivals.megu import MutualSettings, evolved, smoothed_answers

Ids = NDArray[np.int64]
Posteriors = NDArray[np.float32]
Request = Nodes | Edges


class Peer(Protocol):
    """A fitted model that can be asked to forget."""

    @property
    def graph(self) -> Graph:
        """The graph that is left."""
        ...

    def forget(self, request: Request) -> Peer:
        """The model after the request; this one stays as it is."""
        ...

    def retrained(self) -> Peer:
        """Train from the same seed on what is left."""
        ...

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        """Posteriors of nodes that are asked about on a graph of the asker's."""
        ...

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        """All that was learned."""
        ...


@dataclass(frozen=True, eq=False)
class Trained(ABC):
    """A GCN, and what a request does to it.

    Attributes:
        graph: what is left.
        view: the same, as it is served.
        learned_from: the training graph that is left.
        weights: of the GCN.
        seed: it was trained from.
        everybody: ids of all nodes that it was first trained on.
    """

    graph: Graph
    view: View
    learned_from: View
    weights: Weights
    seed: int
    everybody: Ids

    @classmethod
    def fit(cls, graph: Graph, seed: int, **settings: Any) -> Trained:
        """Train on the training graph."""
        everybody = np.array(graph.training_graph.ids)
        view, learned_from = View(graph), View(graph.training_graph)
        weights = train(learned_from.inputs, graph.num_classes, seed, everybody)
        return cls(graph, view, learned_from, weights, seed, everybody, **settings)

    def forget(self, request: Request) -> Trained:
        rest = self.graph.without(request)
        view, learned_from = View(rest), View(rest.training_graph)
        return self.changed(request, view, learned_from)

    @abstractmethod
    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        """This model with what is left in place of what it has."""

    def moved(self, view: View, learned_from: View, **more: Any) -> Self:
        """This model where so much is left."""
        return replace(self, graph=view.graph, view=view, learned_from=learned_from, **more)

    def retrained(self) -> Trained:
        inputs, classes = self.learned_from.inputs, self.graph.num_classes
        weights = train(inputs, classes, self.seed, self.everybody)
        here = self.graph, self.view, self.learned_from
        return Retrained(*here, weights, self.seed, self.everybody)

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        return posteriors(logits(self.weights, view.inputs), view.inputs, nodes)

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        return {f"weights/{at}": weight.numpy() for at, weight in enumerate(self.weights)}


class Retrained(Trained):
    """Trained from scratch on what is left."""

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        return self.moved(view, learned_from).retrained()


class Unchanged(Trained):
    """The data leave the graph, and nothing happens to what was learned from them."""

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        return self.moved(view, learned_from)


@dataclass(frozen=True, eq=False)
class Influence(Trained):
    """GIF: see `gif`."""

    settings: GifSettings = field(default_factory=GifSettings)

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        before, after = self.learned_from.inputs, learned_from.inputs
        weights = updated(self.weights, before, after, self.settings)
        return self.moved(view, learned_from, weights=weights)


@dataclass(frozen=True, eq=False)
class Noised(Influence):
    """IDEA: GIF's step, and noise on the weights that are published; the next step starts without.

    Attributes:
        noise: its deviation; the authors' code has 0.6 for a GCN on Cora and Citeseer.
        requests: how many were answered.
    """

    noise: float = 0.6
    requests: int = 0

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        after = cast(Noised, super().changed(request, view, learned_from))
        return replace(after, requests=self.requests + 1)

    @cached_property
    def published(self) -> Trained:
        """The weights with noise, once there was a request."""
        size = self.graph.num_nodes, self.graph.num_edges
        draws = torch.Generator().manual_seed(derive(self.seed, "peers", "idea", *size) >> 1)
        noise = self.noise if self.requests else 0.0
        noisy = tuple(w + noise * torch.randn(w.shape, generator=draws) for w in self.weights)
        return Unchanged(self.graph, self.view, self.learned_from, noisy, self.seed, self.everybody)

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        return self.published.answers(view, nodes)

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        return self.published.tensors()


@dataclass(frozen=True, eq=False)
class Deletion(Trained):
    """GNNDelete: see `gnndelete`."""

    settings: DeleteSettings = field(default_factory=DeleteSettings)
    operators: Operators | None = None

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        if isinstance(request, Nodes):
            gone = edges_of(self.graph, np.asarray(request.ids, dtype=np.int64))
        else:
            gone = np.asarray(request.pairs, dtype=np.int64).reshape(-1, 2)
        operators = trained(
            self.weights,
            self.operators or Operators.identity(self.weights),
            self.graph,
            gone,
            self.settings,
            generator(self.seed, "peers", "gnndelete", self.graph.num_nodes, self.graph.num_edges),
        )
        return self.moved(view, learned_from, operators=operators)

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        operators = self.operators or Operators.identity(self.weights)
        found = deleted_logits(self.weights, operators, view.inputs)
        return posteriors(found, view.inputs, nodes)


@dataclass(frozen=True, eq=False)
class Mutual(Trained):
    """MEGU: see `megu`. ``told`` holds ids, and what the GCN of before said of them."""

    settings: MutualSettings = field(default_factory=MutualSettings)
    told: tuple[Ids, Ids] | None = None

    def changed(self, request: Request, view: View, learned_from: View) -> Trained:
        before = self.learned_from
        known = logits(self.weights, before.inputs).argmax(dim=1).numpy()
        draws = torch.Generator().manual_seed(
            derive(self.seed, "peers", "megu", self.graph.num_nodes, self.graph.num_edges) >> 1
        )
        weights = evolved(self.weights, before.graph, request, self.settings, draws)
        return self.moved(view, learned_from, weights=weights, told=(before.inputs.ids, known))

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        if self.told is None:
            return super().answers(view, nodes)
        ids, known = self.told
        told = np.full(view.graph.num_nodes, UNLABELLED, dtype=np.int64)
        here = np.isin(ids, view.graph.ids) & np.isin(ids, self.learned_from.inputs.ids)
        told[view.graph.positions(ids[here])] = known[here]
        plain = super().answers(view, view.inputs.ids)
        found = smoothed_answers(plain, view.graph, told, self.settings)
        return found[view.graph.positions(nodes)]


@dataclass(frozen=True, eq=False)
class Erased:
    """A GraphEraser."""

    eraser: GraphEraser

    @classmethod
    def fit(cls, graph: Graph, seed: int, **arguments: Any) -> Erased:
        alone = LocalExecutor(workers=1)
        return cls(GraphEraser(**arguments, seed=seed, executor=alone).fit(graph))

    @property
    def graph(self) -> Graph:
        return self.eraser.graph_

    def forget(self, request: Request) -> Erased:
        after = copy.copy(self.eraser)
        after.unlearn(request)
        return Erased(after)

    def retrained(self) -> Erased:
        """A fresh fit. Only a partition that was computed from the data is kept."""
        part = self.eraser.partition_
        fresh = GraphEraser(**self.eraser.get_params())
        return Erased(fresh.fit(self.graph, partition=None if part.data_free else part))

    def answers(self, view: View, nodes: Ids) -> Posteriors:
        return ask(state_of(self.eraser), view.graph, nodes)

    def tensors(self) -> Mapping[str, NDArray[Any]]:
        return state_of(self.eraser).tensors()


@dataclass(frozen=True)
class Method:
    """One row of the comparison.

    Attributes:
        label: its name in tables.
        guarantee: what is known of a model that forgot, in words.
        fit: from a graph and a seed, with the settings, to a peer.
        settings: names and values; those of approximate methods are tuned.
        exact: whether the model that forgot is claimed to be the retrained one.
        tunes: what settings that are tuned are made into.
    """

    label: str
    guarantee: str
    fit: Callable[..., Peer]
    settings: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    tunes: Callable[..., Any] | None = None

    def fitted(self, dataset: str, graph: Graph, seed: int, tuned: Mapping[str, Any]) -> Peer:
        """A peer on a graph of that data set."""
        settings: dict[str, Any] = dict(self.settings)
        if self.fit == Erased.fit and settings.get("model") not in ("sgc", "closed-form"):
            settings["num_shards"] = min(default_shards(dataset), len(graph.train_nodes))
        if self.tunes is not None:
            settings["settings"] = self.tunes(**tuned)
        return self.fit(graph, seed, **settings)


_PAPER = {"model": "gcn:paper", "aggregation": "learned"}
_LITERAL = {"model": "gcn:paper", "aggregation": LearnedAggregator(solver="paper")}
_GIVEN = "exact given the partition, which was computed from what is gone"
_EXACT = "exact: the bits of a fresh fit on the rest"
_CERTIFIED = "certified: each class is told from retraining by (1, 0.0001) at most, thanks to noise"
RETRAINING, UNCHANGED, GIF, GNNDELETE = "retraining", "weights kept", "gif", "gnndelete"
DEFAULT, CLOSED, SGC = "default", "closed-form", "sgc"
EDITOR, PROJECTOR, OWN_EPOCHS = "graph-editor", "projector", "gnndelete-3000"
MEGU = "megu"
IDEA = "idea"
CGU, CGU_TUNED, SCALEGUN = "cgu", "cgu-tuned", "scalegun"
METHODS: dict[str, Method] = {
    RETRAINING: Method("retraining, sparse PyTorch", "exact, by definition", Retrained.fit),
    UNCHANGED: Method("weights kept", "none: only the graph forgets", Unchanged.fit, exact=False),
    GIF: Method(
        "GIF",
        "none: one Newton step towards retraining",
        Influence.fit,
        exact=False,
        tunes=GifSettings,
    ),
    IDEA: Method(
        "IDEA, noise of its code",
        "certified, if the loss were as convex as its code assumes",
        Noised.fit,
        exact=False,
    ),
    GNNDELETE: Method(
        "GNNDelete",
        "none: the old weights stay, behind operators",
        Deletion.fit,
        exact=False,
        tunes=DeleteSettings,
    ),
    OWN_EPOCHS: Method(
        "GNNDelete, its own 3,000 epochs",
        "none: the old weights stay, behind operators",
        Deletion.fit,
        {"settings": DeleteSettings(steps=3000)},
        exact=False,
    ),
    MEGU: Method(
        "MEGU",
        "none: trained away from what it said of the forgotten",
        Mutual.fit,
        exact=False,
        tunes=MutualSettings,
    ),
    EDITOR: Method(
        "GraphEditor",
        "the value of a fresh fit, but for rounding",
        GraphEditor.fit,
        exact=False,
        tunes=LinearSettings,
    ),
    PROJECTOR: Method(
        "Projector",
        "none of what went is in the span of the weights",
        Projector.fit,
        exact=False,
        tunes=LinearSettings,
    ),
    CGU: Method("CGU, settings of its code", _CERTIFIED, Certified.fit, exact=False),
    CGU_TUNED: Method("CGU, tuned", _CERTIFIED, Certified.fit, exact=False, tunes=LinearSettings),
    SCALEGUN: Method("ScaleGUN, settings of its code", _CERTIFIED, ScaleGun.fit, exact=False),
    "paper-blpa": Method(
        "BLPA, convex LBAggr", _GIVEN, Erased.fit, {**_PAPER, "partition": "blpa"}
    ),
    "paper-bekm": Method(
        "BEKM without labels, convex LBAggr", _GIVEN, Erased.fit, {**_PAPER, "partition": "bekm"}
    ),
    "literal-blpa": Method(
        "BLPA, LBAggr as written", _GIVEN, Erased.fit, {**_LITERAL, "partition": "blpa"}
    ),
    "literal-bekm": Method(
        "BEKM with labels, LBAggr as written",
        _GIVEN,
        Erased.fit,
        {**_LITERAL, "partition": BekmPartitioner(embedding=pretrained_gnn)},
    ),
    SGC: Method("closed-form SGC", _EXACT, Erased.fit, {"model": "sgc"}),
    CLOSED: Method("GraphEraser `closed-form`", _EXACT, Erased.fit, {"model": "closed-form"}),
    DEFAULT: Method("GraphEraser, default", _EXACT, Erased.fit),
}
