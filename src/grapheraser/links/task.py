"""The task of predicting links: its settings, its graph, and what its requests may be."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from grapheraser.aggregation.base import Aggregator
from grapheraser.checks import one_of, whole
from grapheraser.engines import Engine, TrainingConfig, resolve_engine
from grapheraser.engines.graph_checks import check_edges
from grapheraser.eraser.missing import MissingEngine, same_engine
from grapheraser.eraser.settings import Settings
from grapheraser.eraser.snapshot import Snapshot
from grapheraser.eraser.task import Question, Task
from grapheraser.eraser.warmup import compiling
from grapheraser.errors import (
    EmptyEnsembleError,
    GraphError,
    NothingToForgetError,
    ParameterError,
)
from grapheraser.execution import resolve_executor
from grapheraser.graph import (
    TRAIN,
    UNLABELLED,
    AddNodes,
    Edit,
    Graph,
    Labels,
    Removal,
    SetLabels,
)
from grapheraser.graph.changes.updates import with_classes
from grapheraser.graph.labels import LabelKind
from grapheraser.kinds import EDGES, FEATURES, NODES
from grapheraser.links.facts.model import FACTS, FactModel
from grapheraser.links.facts.rules import num_codes
from grapheraser.links.graph import (
    BY_LABEL,
    Sides,
    check_sides,
    check_weights,
    link_graph,
    sides_of,
)
from grapheraser.links.model import CLOSED_FORM, SHARDS, LinkModel
from grapheraser.links.shards import LinkEngine
from grapheraser.models import Model, ModelSpec, resolve_model
from grapheraser.partition import Partition, resolve_partitioner
from grapheraser.partition.partitioning import partition_for

MEMBERS: dict[str, tuple[str, ...]] = {
    CLOSED_FORM: (CLOSED_FORM,),
    SHARDS: (SHARDS,),
    "both": (CLOSED_FORM, SHARDS),
}
DEFAULT_SAMPLE = 1000
DEFAULT_STEPS, MAX_STEPS = 2, 3
# Beyond any use; more would keep a request busy for years.
_MAX_EPOCHS = 1_000_000
# Arguments about shards, which closed-form members have no use for, with their defaults.
OF_SHARDS: dict[str, Any] = {
    "model": "gcn",
    "partition": "hash",
    "num_shards": 20,
    "epochs": 100,
    "width": 32,
    "device": "cpu",
}


def fact_model(arguments: Mapping[str, Any]) -> FactModel:
    """Return what learns facts, from the arguments of `LinkEraser`."""
    usual = FactModel(steps=int(arguments["steps"]))
    if arguments["sample"] == "auto":
        return usual
    return replace(usual, sample=int(arguments["sample"]))


def fact_graph(graph: Graph, arguments: Mapping[str, Any]) -> Graph:
    """Return what a run of facts keeps of a typed graph; refuse what it can't be learned with.

    Labels and roles have no part in it: every node is a training node of class 0.
    """
    assert graph.types is not None
    for name, usual in (("members", CLOSED_FORM), ("sides", None)):
        if arguments[name] != usual:
            wanted = f"{usual!r} on a typed graph"
            raise ParameterError.of(name, "LinkEraser", wanted, arguments[name])
    if graph.num_edges == 0:
        raise GraphError(f"graph '{graph.name}' has no facts to learn from.")
    num_codes(2 * len(graph.types.relations), int(arguments["steps"]))
    role = np.full(graph.num_nodes, TRAIN, dtype=np.int8)
    y = np.zeros(graph.num_nodes, dtype=np.int64)
    inferred = tuple(item for item in graph.inferred if item != "classes")
    kind = LabelKind(count=1)
    return graph.with_fields(y=y, role=role, label_kind=kind, inferred=inferred)


def _refuse_shards(arguments: Mapping[str, Any]) -> None:
    for name, usual in OF_SHARDS.items():
        if type(arguments[name]) is not type(usual) or arguments[name] != usual:
            wanted = f"{usual!r} with members 'closed-form', which have no shards"
            raise ParameterError.of(name, "LinkEraser", wanted, arguments[name])


def _engine(config: TrainingConfig, device: str, fitted_as: Mapping[str, Any] | None) -> Engine:
    if config.model.closed_form:
        return resolve_engine("cpu", config, "cpu")
    if fitted_as is not None:
        engine = same_engine(fitted_as, config, device)
        return engine if isinstance(engine, MissingEngine) else LinkEngine.on(device)
    resolve_engine("pyg", config, device)  # refuses a device that is not there
    return LinkEngine.on(device)


class LinkTask(Task):
    """Links between nodes; labels and the split into training and test nodes have no part in it."""

    name = "links"
    owner = "LinkEraser"
    predicts = "links"
    kinds = (NODES.name, EDGES.name, FEATURES.name)
    takes_types = True
    added = MappingProxyType({"steps": DEFAULT_STEPS})
    predict = Question(
        "pairs",
        2,
        lambda eraser, pairs: eraser.predict_proba(pairs),
        lambda graph, values: {"probabilities": values},
    )

    def question(self, graph: Graph) -> Question | None:
        """See `Task`: of a typed graph facts are asked."""
        return self.predict if graph.types is None else _FACTS

    def resolve(
        self, arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None = None
    ) -> Settings:
        """See `Task`."""
        owner = self.owner
        members = MEMBERS[one_of("members", owner, arguments["members"], MEMBERS)]
        sample = DEFAULT_SAMPLE
        if arguments["sample"] != "auto":
            try:
                sample = whole("sample", owner, arguments["sample"], 1)
            except ParameterError:
                wanted = "a positive int or 'auto'"
                raise ParameterError.of("sample", owner, wanted, arguments["sample"]) from None
        sides = check_sides(arguments["sides"])
        whole("steps", owner, arguments["steps"], 1, MAX_STEPS)
        has_shards = SHARDS in members
        if has_shards:
            model = resolve_model(arguments["model"])
            if model.closed_form:
                wanted = "the name of a GNN, a ModelSpec or a module factory"
                raise ParameterError.of("model", owner, wanted, arguments["model"])
            whole("num_shards", owner, arguments["num_shards"], 2)
            whole("width", owner, arguments["width"], 2)
        else:
            _refuse_shards(arguments)
            model = ModelSpec(CLOSED_FORM)
        training = TrainingConfig(
            model, whole("epochs", owner, arguments["epochs"], 1, _MAX_EPOCHS)
        )
        learner: Aggregator = LinkModel(members, sample, sides is not None)
        if fitted_as is not None and fitted_as["aggregation"].get("name") == FACTS:
            learner = fact_model(arguments)
        return Settings(
            training=training,
            partitioner=resolve_partitioner(arguments["partition"]),
            aggregator=learner,
            engine=_engine(training, str(arguments["device"]), fitted_as),
            executor=resolve_executor(arguments["executor"], str(arguments["device"])),
            seed=whole("seed", owner, arguments["seed"]),
            device=str(arguments["device"]),
        )

    def graph_of(self, arguments: Mapping[str, Any], settings: Settings, world: Any) -> Graph:
        """See `Task`."""
        sides = arguments["sides"]
        graph = world if isinstance(world, Graph) else _from_pyg(world, sides)
        if graph.types is not None:
            return fact_graph(graph, arguments)
        _check_learnable(graph)
        has_shards = SHARDS in MEMBERS[arguments["members"]]
        graph = link_graph(graph, sides, arguments["width"] if has_shards else 1)
        if has_shards:
            _check_encoders(settings.training.model, graph)
        return graph

    def settings_for(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Settings:
        """Learn facts where edges have relations."""
        if graph.types is None:
            return settings
        return replace(settings, aggregator=fact_model(arguments))

    def partition_of(
        self, arguments: Mapping[str, Any], settings: Settings, graph: Graph
    ) -> Partition:
        """See `Task`."""
        if SHARDS not in MEMBERS[arguments["members"]]:
            return super().partition_of(arguments, settings, graph)
        with compiling():
            options = {name: arguments[name] for name in ("num_shards", "seed")}
            return partition_for(self.owner, graph, arguments["partition"], **options)

    def changes_of(self, now: Snapshot, changes: Sequence[Any]) -> Sequence[Any]:
        """Refuse labels, and give new nodes the labels that tell their sides."""
        if any(isinstance(part, Labels | SetLabels) for part in changes):
            raise NothingToForgetError(
                "a link run keeps no labels.", hint="forget the nodes, or their features or edges."
            )
        types = now.state.graph.types
        if types is not None:
            return [_known(part, types.target) for part in changes]
        names, sides = now.state.graph.class_names, now.arguments["sides"]
        parts = [with_classes(p, names) if isinstance(p, AddNodes) else p for p in changes]
        return [_sided(p, sides) if isinstance(p, AddNodes) else p for p in parts]

    def check_edit(self, now: Snapshot, edit: Edit) -> None:
        """Refuse weights that can't be counted, and edges within a side."""
        graph = now.state.graph
        if graph.types is not None:
            return
        check_weights(edit.entries.values, graph.edge_kind)
        if now.arguments["sides"] is None or not len(edit.pairs):
            return
        known = np.isin(edit.pairs, edit.nodes)
        side = np.empty(edit.pairs.shape, dtype=np.int64)
        side[~known] = graph.labels(edit.pairs[~known])
        side[known] = edit.y[np.searchsorted(edit.nodes, edit.pairs[known])]
        same = side[:, 0] == side[:, 1]
        if same.any():
            u, v = edit.pairs[same][0].tolist()
            raise GraphError(
                f"a new edge must join both sides of the bipartite graph: {u} and {v} are on "
                f"one side ({int(same.sum())} of {len(same)} new edges are of one side)."
            )

    def check_removal(self, graph: Graph, removal: Removal) -> None:
        """Refuse to take the last edge."""
        super().check_removal(graph, removal)
        self.check_edges_left(graph, removal)

    def check_left(self, before: Graph, after: Graph) -> None:
        """Refuse a graph after changes that has no edges."""
        if after.num_edges == 0:
            raise EmptyEnsembleError(
                f"the request takes the last {before.num_edges} edges: there would be nothing to "
                "learn links from.",
                hint="delete the run instead, or leave some edges in it.",
            )


_FACTS = replace(LinkTask.predict, asks="facts", ends=3, by_text=True)


def _known(part: Any, target: str) -> Any:
    """Return new nodes of the target type as training nodes, as all are; the rest as it is."""
    if not isinstance(part, AddNodes) or part.type not in (None, target):
        return part
    return part.labelled(np.zeros(len(part.ids), dtype=np.int64))


def _sided(new: AddNodes, sides: Sides) -> AddNodes:
    """Return new nodes with the labels that tell their sides."""
    given = new.y != UNLABELLED
    if sides == BY_LABEL:
        wrong = new.ids[~np.isin(new.y, (0, 1))]
        if len(wrong):
            raise GraphError(
                f"'y' of AddNodes must tell the side of each new node, 0 or 1 (node {wrong[0]} "
                "has another)."
            )
        return new
    if given.any():
        raise GraphError(
            f"'y' of AddNodes has no part in a run whose sides are not told by labels "
            f"(node {new.ids[given][0]} has one)."
        )
    return new.labelled(sides_of(new.ids, sides))


def _from_pyg(data: Any, sides: Sides) -> Graph:
    """Read a PyG ``Data`` without its labels and masks; labels may tell the sides."""
    if sides == BY_LABEL or getattr(data, "x", None) is None:
        return Graph.from_pyg(data)
    bare = copy.copy(data)
    bare.y = np.full(len(data.x), UNLABELLED)
    bare.train_mask = bare.val_mask = bare.test_mask = None
    return Graph.from_pyg(bare, num_classes=1)


def _check_encoders(model: Model, graph: Graph) -> None:
    """Refuse a graph whose edges encoders can't use."""
    if graph.directed:
        raise GraphError(
            f"encoders tell whether two nodes are linked, not which way (graph '{graph.name}' is "
            "directed).",
            hint="use members='closed-form', or graph.undirected().",
        )
    check_edges(model, graph)


def _check_learnable(graph: Graph) -> None:
    if graph.num_nodes == 0:
        raise GraphError(f"graph '{graph.name}' has no nodes.")
    if graph.num_edges == 0:
        raise GraphError(f"graph '{graph.name}' has no edges to learn links from.")
    if graph.num_features == 0:
        raise GraphError(f"graph '{graph.name}' has no feature columns.")
