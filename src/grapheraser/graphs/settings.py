"""From the arguments of `CollectionEraser` to the parts of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from grapheraser.aggregation import Aggregator, resolve_aggregator
from grapheraser.checks import one_of, whole
from grapheraser.engines import resolve_engine
from grapheraser.engines.training import configure
from grapheraser.eraser.missing import same_engine
from grapheraser.eraser.settings import Settings, closed_form
from grapheraser.errors import ParameterError
from grapheraser.execution import resolve_executor
from grapheraser.graph import Graph
from grapheraser.graphs.colours import COLUMNS, coloured
from grapheraser.graphs.learner import GraphPool
from grapheraser.graphs.local import MEMBERS
from grapheraser.graphs.networks import READOUTS, GraphModel
from grapheraser.models import resolve_model
from grapheraser.partition import Partitioner, resolve_partitioner
from grapheraser.partition.base import FEATURES, NODES, Assignment
from grapheraser.seeding import derive, keyed_hash

OWNER = "CollectionEraser"
CLOSED_FORM, SIMILAR = "closed-form", "similar"
# Arguments about shards, which the closed form has no use for, with their defaults.
OF_SHARDS: dict[str, Any] = {
    "partition": "hash",
    "num_shards": 10,
    "aggregation": "routed",
    "readout": "sum",
    "epochs": None,
    "training": None,
    "device": "cpu",
}


def resolve(arguments: Mapping[str, Any], fitted_as: Mapping[str, Any] | None) -> Settings:
    """The parts that arguments of `CollectionEraser` stand for; see `Task.resolve`."""
    members, sample = _members(arguments["members"]), arguments["sample"]
    references = whole("references", OWNER, arguments["references"], 1, 2**20)
    pool = GraphPool(members, sample=sample, references=references)
    seed = whole("seed", OWNER, arguments["seed"])
    if arguments["model"] == CLOSED_FORM:
        if not members:
            raise ParameterError.of("members", OWNER, "at least one without shards", members)
        for name, usual in OF_SHARDS.items():
            if type(arguments[name]) is not type(usual) or arguments[name] != usual:
                wanted = f"{usual!r} with model '{CLOSED_FORM}', which has no shards"
                raise ParameterError.of(name, OWNER, wanted, arguments[name])
        return closed_form(pool, seed=seed, executor=arguments["executor"])
    named, device = isinstance(arguments["model"], str), str(arguments["device"])
    model = resolve_model(arguments["model"])
    if model.closed_form:
        wanted = f"'{CLOSED_FORM}', the name of a GNN, a ModelSpec or a module factory"
        raise ParameterError.of("model", OWNER, wanted, arguments["model"])
    readout = one_of("readout", OWNER, arguments["readout"], READOUTS)
    training = configure(model, arguments["training"], arguments["epochs"], named=named)
    if training.neighbours is not None:
        raise ParameterError("'neighbours' of Training is for one large graph, not for many small.")
    training = replace(training, model=GraphModel.of(training.model, readout))
    if fitted_as is None:
        engine = resolve_engine("pyg", training, device)
    else:
        engine = same_engine(fitted_as, training, device)
    num_shards = whole("num_shards", OWNER, arguments["num_shards"], 1)
    return Settings(
        training=training,
        partitioner=partitioner_of(arguments["partition"]),
        aggregator=_aggregator(arguments, replace(pool, shards=True), num_shards),
        engine=engine,
        executor=resolve_executor(arguments["executor"], device),
        seed=seed,
        device=device,
    )


def _aggregator(arguments: Mapping[str, Any], pool: GraphPool, num_shards: int) -> Aggregator:
    """Routed shards join the members of the closed form, unless ``members`` are none."""
    method = arguments["aggregation"]
    if method == "routed" and pool.members and num_shards > 1:
        return pool
    return resolve_aggregator(
        method, num_shards=num_shards, sample=arguments["sample"], global_expert=False
    )


def _members(given: Any) -> tuple[str, ...]:
    if given is None:
        return tuple(MEMBERS)
    known = f"names among {', '.join(MEMBERS)}"
    if isinstance(given, str) or any(name not in MEMBERS for name in given):
        raise ParameterError.of("members", OWNER, known, given)
    return tuple(name for name in MEMBERS if name in given)


def partitioner_of(method: Any) -> Partitioner:
    """Return how graphs are dealt to shards; refuse what reads edges between them."""
    if method == SIMILAR:
        return SimilarGraphs()
    if isinstance(method, str):
        one_of("partition", OWNER, method, ("hash", "random", SIMILAR))
    return resolve_partitioner(method)


@dataclass(frozen=True)
class SimilarGraphs:
    """Puts each graph beside the one most like it of so many graphs, where there is room.

    These, one a shard, are those with the smallest keyed hashes. Graphs come in the order of
    theirs, so that nobody's place follows from a position.
    """

    name: str = SIMILAR
    inputs: frozenset[str] = frozenset({NODES, FEATURES})
    strict: bool = True

    def __call__(self, graph: Graph, num_shards: int, *, capacity: int, seed: int) -> Assignment:
        """See `Partitioner`."""
        order = np.argsort(keyed_hash(graph.ids, derive(seed, "partition", SIMILAR)))
        rows = coloured(graph, graph.places(graph.ids), seed)
        ends = np.append(rows.pointers[:, 0], len(rows.columns))
        matrix = sp.csr_array((rows.values, rows.columns, ends), shape=(len(rows), COLUMNS))
        alike: NDArray[np.float32] = (matrix @ matrix[order[:num_shards]].T).toarray()
        labels, room = np.empty(len(rows), dtype=np.int32), np.full(num_shards, capacity)
        for graph_at in order.tolist():
            shard = int(np.where(room > 0, alike[graph_at], -1.0).argmax())
            labels[graph_at], room[shard] = shard, room[shard] - 1
        return Assignment(labels)
