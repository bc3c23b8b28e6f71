"""grapheraser fit: train a run and save it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.fit_links import fit_links
from grapheraser.cli.options import ContextOption, ExecutorOption, SplitOption, SplitSeedOption
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import own_function, own_model
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration, plural

if TYPE_CHECKING:
    from grapheraser.kernels.compiled import Compilation
    from grapheraser.training import Training

NAME = "fit"


def run(
    dataset: Annotated[str, typer.Argument(help="Name of a data set, or path of an npz file.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the run.")],
    model: Annotated[
        str,
        typer.Option(
            help="gcn, sage, gat, gin, mlp, NAME:paper, or package.module:Class of your own."
        ),
    ] = "gcn",
    partition: Annotated[str, typer.Option(help="Partition method, or auto.")] = "hash",
    shards: Annotated[
        int | None, typer.Option(help="Number of shards; default: the paper's k, else 20.")
    ] = None,
    aggregation: Annotated[str, typer.Option(help="Aggregation of the shards.")] = "routed",
    sample: Annotated[
        str,
        typer.Option(help="Nodes to learn the aggregation from: a share, a count, all or auto."),
    ] = "auto",
    global_expert: Annotated[
        bool | None, typer.Option(help="Add a closed-form model of the whole training graph.")
    ] = None,
    task: Annotated[str, typer.Option(help="What to predict: nodes (classes) or links.")] = "nodes",
    members: Annotated[
        str,
        typer.Option(
            help="Closed-form members, e.g. words,labels; default all. "
            "With --task links: closed-form (the default), shards or both."
        ),
    ] = "",
    sides: Annotated[
        str,
        typer.Option(
            help="With --task links on a bipartite graph: labels, or the smallest id of the "
            "second side."
        ),
    ] = "",
    halo: Annotated[
        bool, typer.Option("--halo", help="Shards see features of neighbours in other shards.")
    ] = False,
    shards_asked: Annotated[
        int, typer.Option(help="Shards that are asked about a node, with routed.")
    ] = 8,
    epochs: Annotated[
        int | None, typer.Option(help="Training epochs per shard.", show_default="100")
    ] = None,
    learning_rate: Annotated[float | None, typer.Option(help="Of the optimizer.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Of the optimizer.")] = None,
    optimizer: Annotated[
        str | None,
        typer.Option(help="adam, adamw, sgd, or package.module:function of your own."),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(help="cross_entropy, nll, or package.module:function of your own."),
    ] = None,
    class_weights: Annotated[
        str | None, typer.Option(help="balanced, one weight per class (1,2.5,1), or 0:2,3:0.5.")
    ] = None,
    early_stopping: Annotated[
        int | None,
        typer.Option(help="Stop after so many epochs without a better loss on held-out nodes."),
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Layers of a built-in model.")] = None,
    hidden: Annotated[int | None, typer.Option(help="Width of its hidden layers.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Dropout of its hidden units.")] = None,
    neighbours: Annotated[
        str | None,
        typer.Option(help="Train on samples: neighbours of each node, hop by hop, e.g. 10,10."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="With --neighbours: labelled nodes in a batch.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    split: SplitOption = "auto",
    split_seed: SplitSeedOption = 0,
    context: ContextOption = "unlabelled",
    device: Annotated[str, typer.Option(help="Torch device.")] = "cpu",
    executor: ExecutorOption = "local",
    engine: Annotated[str, typer.Option(help="auto, pyg, cpu or cuda.")] = "auto",
    gamma: Annotated[float, typer.Option(help="Slack of the shard capacity, from 0 to 1.")] = 0.0,
    delta: Annotated[int | None, typer.Option(help="Shard capacity, instead of gamma.")] = None,
    replace: Annotated[
        bool,
        typer.Option("--replace", help="Overwrite a run in that folder, its receipts included."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Partition a graph, train its shards and save the run."""
    if task == "links":
        _refuse(locals(), _OF_NODES)
        options = {"model": own_model(model), "partition": partition, "device": device}
        options |= {} if shards is None else {"num_shards": shards}
        options |= {} if epochs is None else {"epochs": epochs}
        options |= {"members": members or "closed-form", "sample": _sample(sample)}
        options |= {"sides": _sides(sides), "seed": seed, "executor": executor}
        fit_links(dataset, out, options, replace=replace, as_json=json)
        return
    if task != "nodes" or sides:
        found = f"--task {task}" if task != "nodes" else f"--sides {sides}"
        raise ParameterError(
            f"--task must be nodes or links, and --sides goes with links. Got {found}."
        )
    from grapheraser.datasets import default_shards, load_dataset
    from grapheraser.eraser import GraphEraser
    from grapheraser.eraser.settings import resolve
    from grapheraser.eraser.warmup import warm_up_for
    from grapheraser.kernels.compiled import compilations
    from grapheraser.store import check_target

    check_target(out, replace=replace)
    graph = load_dataset(dataset, split_seed=split_seed, split=split)
    for note in graph.notes:
        say(f"note: {note}")
    eraser = GraphEraser(
        model=own_model(model),
        partition=partition,
        num_shards=default_shards(dataset) if shards is None else shards,
        aggregation=aggregation,
        epochs=epochs,
        seed=seed,
        device=device,
        executor=executor,
        engine=engine,
        gamma=gamma,
        delta=delta,
        sample=_sample(sample),
        global_expert=global_expert,
        members=members.split(",") if members else None,
        halo=halo,
        shards_asked=shards_asked,
        context=context,
        training=_training(
            learning_rate=learning_rate,
            weight_decay=weight_decay,
            optimizer=optimizer,
            loss=loss,
            class_weights=class_weights,
            early_stopping=early_stopping,
            layers=layers,
            hidden=hidden,
            dropout=dropout,
            neighbours=neighbours,
            batch_size=batch_size,
        ),
    )
    warm_up_for(resolve(eraser.get_params()), graph)
    warm, started = compilations(), time.perf_counter()
    eraser.fit(graph)
    seconds = time.perf_counter() - started
    # A method of partitioning may have kernels of its own: neither are they part of training.
    seconds -= sum(done.seconds for done in compilations()[len(warm) :])
    _report(compilations())
    tested = graph.labelled_test_nodes
    f1 = eraser.score(tested) if len(tested) else None
    eraser.save(out, replace=replace)
    sizes = eraser.partition_.sizes
    if json:
        print_json(
            {
                "run": str(out),
                "dataset": graph.name,
                "model": model,
                "partition": eraser.partition_.method,
                "aggregation": aggregation,
                "engine": eraser.engine_,
                "shards": len(eraser.shards_),
                "shard_sizes": sizes.tolist(),
                "context": context,
                "context_nodes": eraser.graph_.num_sharded - graph.num_train,
                "edge_cut": eraser.partition_.edge_cut,
                "test_f1": f1,
                "seconds": seconds,
                "graph": graph.fingerprint,
                "notes": [*graph.notes, *eraser.partition_.notes],
            }
        )
        return
    for note in eraser.partition_.notes:
        say(f"note: {note}")
    print(f"{graph}")
    print(f"shards    {len(eraser.shards_)} of {sizes[sizes > 0].min()} to {sizes.max()} nodes")
    print(f"trained   in {duration(seconds)} (engine {eraser.engine_})")
    if f1 is not None:
        print(f"test F1   {f1:.4f}")
    print(f"run       {out}")


# Options that a link run has no use for, with their defaults.
_OF_NODES = {
    "aggregation": "routed",
    "global_expert": None,
    "halo": False,
    "shards_asked": 8,
    "engine": "auto",
    "gamma": 0.0,
    "delta": None,
    "split_seed": 0,
    "learning_rate": None,
    "weight_decay": None,
    "optimizer": None,
    "loss": None,
    "class_weights": None,
    "early_stopping": None,
    "layers": None,
    "hidden": None,
    "dropout": None,
    "neighbours": None,
    "batch_size": None,
}


def _refuse(given: Mapping[str, Any], usual: Mapping[str, Any]) -> None:
    for name, value in usual.items():
        if given[name] != value:
            raise ParameterError(f"--{name.replace('_', '-')} has no part in --task links.")


def _training(**given: Any) -> Training | None:
    """What was said about training; None where nothing was."""
    from grapheraser.training import Training

    said = {name: value for name, value in given.items() if value is not None}
    for name in ("optimizer", "loss"):
        if name in said:
            said[name] = own_function(said[name], f"--{name}")
    if "class_weights" in said:
        said["class_weights"] = _class_weights(said["class_weights"])
    if "neighbours" in said:
        said["neighbours"] = _counts(said["neighbours"])
    return Training(**said) if said else None


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


def _sides(text: str) -> str | int | None:
    """Read a number as the smallest id of the second side; leave words to the library."""
    try:
        return int(text)
    except ValueError:
        return text or None


def _report(done: list[Compilation]) -> None:
    if not done:
        return
    took = duration(sum(one.seconds for one in done))
    say(f"note: compiled {plural(len(done), 'kernel')} in {took}, once per machine")
    if any(one.folder is None for one in done):
        say("note: no folder takes the result; set NUMBA_CACHE_DIR to one that can be written to")


def _sample(text: str) -> float | int | str:
    """Read ``0.1`` as a share and ``500`` as a count; leave words to the library."""
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
