"""grapheraser fit: train a run of any task and save it."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from grapheraser.cli import options
from grapheraser.cli.output import answered, print_line, print_rows, print_table, say, say_notes
from grapheraser.cli.own import own_function, own_model
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration, listed, plural

if TYPE_CHECKING:
    from grapheraser.embeddings import Embedder
    from grapheraser.engines import Training
    from grapheraser.graph import Graph
    from grapheraser.graphs import Collection, CollectionEraser
    from grapheraser.links import LinkEraser
    from grapheraser.nodes import GraphEraser
    from grapheraser.recommendation import Recommender

# The options as they were given, by the names of the parameters of `run`.
Given = Mapping[str, Any]


def run(
    dataset: options.DatasetArgument,
    out: Path,
    model: Annotated[
        str | None, typer.Option(autocompletion=options.complete_models, show_default="gcn")
    ] = None,
    partition: Annotated[str, typer.Option(autocompletion=options.complete_partitions)] = "hash",
    shards: options.ShardsOption = None,
    aggregation: options.AggregationOption = "routed",
    sample: str = "auto",
    global_expert: bool | None = None,
    task: str = "nodes",
    members: str = "",
    sides: str = "",
    steps: int = 2,
    scale: float | None = None,
    now: str = "",
    half_life: float | None = None,
    width: Annotated[int | None, typer.Option(show_default="128")] = None,
    features: bool = True,
    readout: str = "sum",
    halo: bool = False,
    shards_asked: int = 8,
    epochs: Annotated[int | None, typer.Option(show_default="100")] = None,
    learning_rate: float | None = None,
    weight_decay: float | None = None,
    optimizer: str | None = None,
    loss: str | None = None,
    class_weights: str | None = None,
    early_stopping: int | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    dropout: float | None = None,
    residual: bool | None = None,
    norm: str | None = None,
    neighbours: str | None = None,
    batch_size: int | None = None,
    seed: options.SeedOption = 0,
    split: options.SplitOption = "auto",
    split_seed: options.SplitSeedOption = 0,
    context: options.ContextOption = "unlabelled",
    device: str = "cpu",
    executor: options.ExecutorOption = "local",
    engine: str = "auto",
    gamma: options.GammaOption = 0.0,
    delta: options.DeltaOption = None,
    replace: bool = False,
) -> None:
    """Partition a graph, train its shards and save the run.

    Options:
        out: Folder of the run.
        model: Model of the shards: gcn, sage, gat, gin, mlp, NAME:paper, or package.module:Class of
            your own. --task graphs has no shards without it.
        partition: Partition method, or auto.
        sample: Nodes to learn the aggregation from: a share, a count, all or auto.
        global_expert: Add a closed-form model of the whole training graph.
        task: What to fit: nodes (classes), links, graphs (labels of whole graphs), recommendation
            (items of users) or embeddings.
        members: Closed-form members, e.g. words,labels; default all. With --task links: closed-form
            (the default), shards or both.
        sides: With --task links on a bipartite graph: labels, or the smallest id of the second
            side.
        steps: With --task links on a typed graph: steps of a rule, 1, 2 or 3.
        scale: With --task recommendation: the weight of an interaction that counts as 1.
        now: With --task recommendation: the moment, a number or a date, from which popularity of
            late is seen, by the column time; with --half-life.
        half_life: After which an interaction counts half as much in it.
        width: With --task embeddings: columns of a row.
        features: With --task embeddings: let features have a part in rows.
        readout: With --task graphs: how nodes become a graph: sum, mean or max.
        halo: Shards see features of neighbours in other shards.
        shards_asked: Shards that are asked about a node, with routed.
        epochs: Training epochs per shard.
        learning_rate: Learning rate of the optimizer.
        weight_decay: Weight decay of the optimizer.
        optimizer: Optimizer: adam, adamw, sgd, or package.module:function of your own.
        loss: Loss: cross_entropy, nll, or package.module:function of your own.
        class_weights: Weights of the classes: balanced, one for each (1,2.5,1), or 0:2,3:0.5.
        early_stopping: Stop after so many epochs without a better loss on held-out nodes.
        layers: Layers of a built-in model.
        hidden: Width of its hidden layers.
        dropout: Dropout of its hidden units.
        residual: Whether layers of gcn and gat add a node's own row.
        norm: Norm of hidden layers: none, batch or layer.
        neighbours: Train on samples: neighbours of each node, hop by hop, e.g. 10,10.
        batch_size: With --neighbours: labelled nodes in a batch.
        device: Torch device.
        engine: Engine that trains the shards: auto, pyg, cpu or cuda.
        replace: Overwrite a run in that folder, its receipts included.
    """
    given = dict(locals())
    _check_options(task, given)
    _fit(task, given)


def _check_options(task: str, given: Given) -> None:
    """Refuse an unknown task, and options that have no part in a task."""
    if task not in _TASKS:
        raise ParameterError(f"--task must be {listed([*_TASKS], 'or')}. Got {task}.")
    usual = {name: part.default for name, part in inspect.signature(run).parameters.items()}
    taken = {*_EVERY_TASK, *_TASKS[task].options.split()}
    wrong = [name for name in given if name not in taken and given[name] != usual[name]]
    if wrong:
        homes = {n: [t for t, row in _TASKS.items() if n in row.options.split()] for n in wrong}
        verb = "has" if len(wrong) == 1 else "have"
        raise ParameterError(
            f"{listed([_spelled(name) for name in wrong])} {verb} no part in --task {task}.",
            hint="; ".join(f"{_spelled(n)} goes with {listed(homes[n])}" for n in wrong) + ".",
        )


def _spelled(name: str) -> str:
    return f"--{name.replace('_', '-')}"


# What is told of a fitted run: for ``--json``, and in rows for people.
_Told = tuple[dict[str, Any], dict[str, Any]]


class _Task(NamedTuple):
    """A task that can be fitted, and the options that it takes beside `_EVERY_TASK`."""

    eraser: str  # the name of its class, in the room of the task
    world: Callable[[Given], Any]
    told: Callable[[Given, Any, Any, str], _Told]
    options: str


def _fit(task: str, given: Given) -> None:
    """Fit and save a run of any task, and tell of it."""
    from grapheraser.kernels.compiled import compilations
    from grapheraser.store import check_target

    row = _TASKS[task]
    check_target(given["out"], replace=given["replace"])
    world = row.world(given)
    eraser = _eraser(task, given)
    warm, started = compilations(), time.perf_counter()
    eraser.fit(world)
    seconds = time.perf_counter() - started
    # Compiling is no part of training.
    seconds -= sum(done.seconds for done in compilations()[len(warm) :])
    _say_compiled()
    data, rows = row.told(given, world, eraser, f"in {duration(seconds)}")
    eraser.save(given["out"], replace=given["replace"])
    run, graph = str(given["out"]), eraser.graph_.fingerprint
    if answered({"run": run, "task": task, "seconds": seconds, "graph": graph, **data}):
        return
    if "dataset" in data:
        print_line(world)
    if data.get("weights"):
        weights = [(name, f"{weight:.3f}") for name, weight in data["weights"].items()]
        print_table("", ("column", "weight"), weights)
    print_rows({**rows, "run": given["out"]})


def _eraser(task: str, given: Given) -> Any:
    """Make the eraser of a task from the options that its constructor has arguments for."""
    row = _TASKS[task]
    made = getattr(import_module(f"grapheraser.{task}"), row.eraser)
    takes = inspect.signature(made).parameters
    arguments: dict[str, Any] = {}
    for name in row.options.split():
        argument, value = "num_shards" if name == "shards" else name, _read(given, name)
        if argument in takes and value not in (None, ""):
            arguments[argument] = value
    if "training" in takes:
        arguments["training"] = _training(given)
        arguments |= {"members": given["members"].split(",")} if given["members"] else {}
    if task == "nodes":
        from grapheraser.datasets import default_shards

        arguments = {"num_shards": default_shards(given["dataset"]), **arguments}
    return made(**arguments)


def _loaded(given: Given, **split: Any) -> Graph:
    """Load the data set and print its notes."""
    from grapheraser.datasets import load_dataset

    graph = load_dataset(given["dataset"], **split)
    say_notes(graph.notes)
    return graph


def _told_of_nodes(given: Given, graph: Graph, eraser: GraphEraser, took: str) -> _Told:
    tested = graph.labelled_test_nodes
    scores = eraser.evaluate(tested) if len(tested) else {"f1": None}
    partition, sizes = eraser.partition_, eraser.partition_.sizes
    if not partition.data_free:  # else balanced on average alone, as the sizes show
        say_notes(partition.notes)
    shown = {"f1": "test F1", "r2": "test R2"}
    data = {
        "graph": graph.fingerprint,
        "dataset": graph.name,
        "model": given["model"] or "gcn",
        "partition": partition.method,
        "aggregation": given["aggregation"],
        "engine": eraser.engine_,
        "shards": len(eraser.shards_),
        "shard_sizes": sizes.tolist(),
        "context": given["context"],
        "context_nodes": eraser.graph_.num_sharded - graph.num_train,
        "edge_cut": partition.edge_cut,
        **{f"test_{name}": value for name, value in scores.items()},
        "notes": [*graph.notes, *partition.notes],
    }
    return data, {
        "shards": f"{len(eraser.shards_)} of {sizes[sizes > 0].min()} to {sizes.max()} nodes",
        "trained": f"{took} (engine {eraser.engine_})",
        **{shown[n]: f"{v:.4f}" for n, v in scores.items() if n in shown and v is not None},
    }


def _told_of_links(_given: Given, graph: Graph, eraser: LinkEraser, took: str) -> _Told:
    data = {"dataset": graph.name, "members": eraser.members, "shards": len(eraser.shards_)}
    data |= {"weights": eraser.weights_, "notes": list(graph.notes)}
    return data, {"fitted": f"{took}, members: {eraser.members}"}


def _interactions(given: Given) -> Any:
    from grapheraser.recommendation.interactions import read_interactions

    return read_interactions(given["dataset"])


def _told_of_recommendation(_given: Given, _world: Any, eraser: Recommender, took: str) -> _Told:
    counts = {"users": eraser.num_users_, "items": eraser.num_items_}
    counts |= {"interactions": eraser.graph_.num_edges}
    data = {**counts, "weights": eraser.weights_, "statement": eraser.exactness_["statement"]}
    return data, {**{name: f"{count:,}" for name, count in counts.items()}, "fitted": took}


def _told_of_embeddings(_given: Given, graph: Graph, eraser: Embedder, took: str) -> _Told:
    data = {"dataset": graph.name, "width": eraser.width, "nodes": graph.num_nodes}
    rows = f"{plural(graph.num_nodes, 'row')} of {eraser.width} columns, {took}"
    return {**data, "notes": list(eraser.graph_.notes)}, {"embedded": rows}


def _collection(given: Given) -> Collection:
    from grapheraser.graphs.collection import read_collection

    return read_collection(given["dataset"])


def _told_of_graphs(_given: Given, world: Collection, eraser: CollectionEraser, took: str) -> _Told:
    data = {"dataset": world.graph.name, "graphs": len(world)}
    data |= {"training_graphs": world.graph.num_train, "shards": len(eraser.shards_)}
    return {**data, "weights": eraser.weights_}, {"fitted": took}


def _counts(text: str) -> Any:
    """Read ``10,10``; leave anything else to the library."""
    try:
        return [int(part) for part in text.split(",") if part]
    except ValueError:
        return text


def _class_weights(text: str) -> Any:
    """Read ``1,2.5,1`` and ``0:2,3:0.5``; leave words to the library."""
    try:
        if ":" in text:
            pairs = [part.split(":") for part in text.split(",")]
            return {int(label): float(weight) for label, weight in pairs}
        return [float(part) for part in text.split(",")]
    except ValueError:
        return text


def _number(text: str) -> float | int | str | None:
    """Read ``0.1`` as a share and ``500`` as a count; leave words but auto to the library."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return None if text == "auto" else text


_EVERY_TASK = ("dataset", "out", "task", "replace")
_TRAINING = (
    "learning_rate weight_decay optimizer loss class_weights early_stopping layers hidden dropout "
    "residual norm neighbours batch_size"
)
_SHARDS = "model shards partition aggregation epochs sample members seed device executor"
# Options that are read before they are an argument.
_READERS: dict[str, Callable[[Any], Any]] = {
    "model": own_model,
    "sample": _number,
    "sides": _number,
    "optimizer": partial(own_function, option="--optimizer"),
    "loss": partial(own_function, option="--loss"),
    "class_weights": _class_weights,
    "neighbours": _counts,
}
_TASKS = {
    "nodes": _Task(
        "GraphEraser",
        lambda given: _loaded(given, split_seed=given["split_seed"], split=given["split"]),
        _told_of_nodes,
        f"{_SHARDS} {_TRAINING} engine gamma delta global_expert halo shards_asked context split "
        "split_seed",
    ),
    "links": _Task(
        "LinkEraser",
        _loaded,
        _told_of_links,
        "model partition shards epochs members sample sides steps seed device executor",
    ),
    "recommendation": _Task(
        "Recommender",
        _interactions,
        _told_of_recommendation,
        "sample scale now half_life seed executor",
    ),
    "graphs": _Task(
        "CollectionEraser", _collection, _told_of_graphs, f"{_SHARDS} {_TRAINING} readout"
    ),
    "embeddings": _Task("Embedder", _loaded, _told_of_embeddings, "width features seed"),
}


def _say_compiled() -> None:
    from grapheraser.kernels.compiled import compilations

    done = compilations()
    if done:
        took = duration(sum(one.seconds for one in done))
        say(f"note: compiled {plural(len(done), 'kernel')} in {took}, once per machine")
    if any(one.folder is None for one in done):
        say("note: no folder takes the result; set NUMBA_CACHE_DIR to one that can be written to")


def _training(given: Given) -> Training | None:
    """Return what was said about training; None where nothing was."""
    from grapheraser.engines import Training

    said = {name: _read(given, name) for name in _TRAINING.split() if given[name] is not None}
    return Training(**said) if said else None


def _read(given: Given, name: str) -> Any:
    read = _READERS.get(name)
    return given[name] if read is None or given[name] is None else read(given[name])
