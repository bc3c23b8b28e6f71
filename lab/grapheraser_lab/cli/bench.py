"""grapheraser bench: measure speed or quality, both sides in one run."""

from __future__ import annotations

import inspect
import json as jsonlib
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from grapheraser.cli.options import JsonOption, completing
from grapheraser.cli.output import print_json, say
from grapheraser.errors import ParameterError

ALL = "all"
# By name: the module, its function, and what is measured.
_QUICK = {
    "partition": ("bench.partition", "run", "every partitioner at the paper's k, beside METIS"),
    "partition-scale": ("bench.partition", "scale", "BLPA and METIS on ever larger graphs"),
    "engines": ("bench.engines", "run", "training a shard: the CPU engine against the PyG loop"),
    "fidelity": ("bench.engines", "fidelity", "F1 of the CPU engine and the PyG loop, ten seeds"),
    "cost": ("bench.cost", "run", "every operation by part, against training from scratch"),
    "relearning": ("bench.relearning", "run", "relearning the aggregation after a request"),
    "modules": ("bench.engines", "modules", "a user's own module against one pass through PyG"),
    "attacks": ("bench.attacks", "run", "who was forgotten, in every configuration"),
    "attacks-recovery": ("bench.attacks", "recovery", "forgotten edges and features recovered"),
    "attacks-mitigations": ("bench.attacks", "mitigations", "the same where answers say less"),
    "attacks-partition": ("bench.attacks", "partition", "who was deleted, by the partition alone"),
    "leaks": ("bench.attacks", "leaks", "what each part of the ensemble gives away"),
    "refresh": ("bench.attacks", "refresh", "who was forgotten, with each policy of fresh seeds"),
    "adaptive": ("bench.adaptive", "run", "requests chosen by looking at the published model"),
    "public": ("bench.public", "run", "F1 on the published splits, with few labels, against PyG"),
    "utility": ("bench.utility", "run", "F1 of the defaults against scratch, ten graphs"),
    "utility-partitions": ("bench.utility", "partitions", "F1 of every partition and aggregation"),
    "asked": ("bench.asked", "run", "F1 by shards asked about a node, and with a halo"),
}
# What `all` leaves out: it needs a GPU, free cores or hours.
APART = {
    "scratch": ("bench.scratch", "run", "training from scratch: our engine, sparse PyTorch, PyG"),
    "changes": ("bench.cost", "changes", "additions and corrections, in one call and one by one"),
    "tuned": ("bench.tuned", "run", "the closed form beside tuned GNNs, ten graphs"),
    "tuned-public": ("bench.tuned", "public", "the same on public splits, 20 labels a class"),
    "targets": ("bench.targets", "run", "several labels and numbers against tuned GCN and SAGE"),
    "links": ("bench.links", "run", "AUC of closed-form links against tuned GNN encoders"),
    "links-cost": ("bench.links", "cost", "requests, predictions and rankings of links"),
    "facts": ("bench.facts", "run", "ranks of facts by kinds of rules, and forgetting them"),
    "graphs": ("bench.graphs", "run", "labels of whole graphs over ten folds, and their cost"),
    "graphs-rivals": ("bench.graph_rivals", "run", "whole graphs beside tuned GIN and GCN"),
    "recommend": ("rivals.recommend", "run", "the recommender beside ALS, kNN, EASE and others"),
    "recommend-features": ("rivals.recommend_more", "features", "features of users and items"),
    "recommend-members": ("rivals.recommend_more", "members", "what trained members would add"),
    "recommend-late": ("rivals.recommend", "late", "popularity of late, with times"),
    "recommend-scale": ("rivals.recommend", "scale", "the recommender on generated interactions"),
    "embeddings": ("bench.embeddings", "run", "rows beside DeepWalk, node2vec and FastRP"),
    "embeddings-cost": ("bench.embeddings", "cost", "requests of embeddings, and rows that move"),
    "typed": ("bench.typed", "run", "DBLP and WordNet beside R-GCN and an MLP on path means"),
    "typed-cost": ("bench.typed", "cost", "forgetting in a graph of four types, and of none"),
    "scale": ("bench.scale", "run", "every operation on graphs on the disk, 1e5 to 1e8 edges"),
    "service": ("bench.service", "run", "the service under load, up to receipts"),
    "peers": ("rivals.run", "run", "GraphEraser beside other methods of unlearning"),
    "members": ("bench.members", "run", "closed-form members: validation nodes, requests"),
    "member-sizes": ("bench.shard_labels", "member_sizes", "F1 by the size of `features`"),
    "member-sums": ("bench.member_sums", "run", "closed-form sums of 10^6 nodes, summed once more"),
    "shard-labels": ("bench.shard_labels", "run", "F1 of shards that see all but the labels"),
    "ray": ("bench.ray_speedup", "run", "shards trained by one Ray worker and by two"),
    "cuda": ("bench.cuda", "run", "the CUDA engine against the PyG loop on one GPU"),
}
BENCHMARKS = {**_QUICK, **APART}


def run(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME...",
            help=f"Of: {', '.join(BENCHMARKS)}; or 'all' that need no GPU and no day.",
            autocompletion=completing(lambda: (ALL, *BENCHMARKS)),
        ),
    ],
    datasets: Annotated[str, typer.Option(help="Data sets, e.g. cora,physics.")] = "",
    models: Annotated[str, typer.Option(help="Models, e.g. gcn,gat.")] = "",
    device: Annotated[str, typer.Option(help="Torch device, for benchmarks that train.")] = "",
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder for what is made and measured on the way; go on from there."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another parameter of the benchmark, e.g. seeds=1."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File for the JSON report, or a folder: NAME.json in it."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Run benchmarks and print their tables. Use one core for comparable figures."""
    chosen = [name for name in BENCHMARKS if name not in APART] if names == [ALL] else names
    if len(chosen) > 1 and out is not None and not out.is_dir():
        raise ParameterError(f"'--out' must be a folder for several benchmarks. Got {out}.")
    asked: dict[str, Any] = {"device": device, "keep": keep, **_settings(settings or ())}
    asked |= {"datasets": datasets.split(","), "models": models.split(",")}
    given = {option: value for option, value in asked.items() if value not in ("", None, [""])}
    from grapheraser.environment import versions
    from grapheraser_lab.framework.cell import hardware

    prepared = {name: _prepared(name, given) for name in chosen}
    reports = {}
    for name, (module, measure) in prepared.items():
        here = {"benchmark": name, "versions": versions(), "hardware": hardware()}
        report = reports[name] = here | measure(**given, progress=say)
        if out is not None:
            from grapheraser.canonical import canonical_json
            from grapheraser.store import write_text

            file = out / f"{name}.json" if out.is_dir() else out
            write_text(file, canonical_json(report) + "\n")
        if not json:
            told = getattr(module, "markdown", lambda found: jsonlib.dumps(found, indent=2))
            typer.echo(told(report))
    if json:
        print_json(reports if len(reports) > 1 else reports[chosen[0]])


def _settings(words: list[str] | tuple[str, ...]) -> dict[str, Any]:
    """Read ``seeds=1`` as a number, and what is no number as a word."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise ParameterError(f"'--set' must be NAME=VALUE. Got '{word}'.")
        try:
            found[name] = jsonlib.loads(text)
        except ValueError:
            found[name] = text
    return found


def _prepared(
    name: str, given: Mapping[str, Any]
) -> tuple[ModuleType, Callable[..., dict[str, Any]]]:
    """Find a benchmark, and refuse what it does not take."""
    if name not in BENCHMARKS:
        known = ", ".join(BENCHMARKS)
        raise ParameterError(f"unknown benchmark '{name}'. Choose from: {known}.")
    from grapheraser.models import PRESETS

    place, function, _ = BENCHMARKS[name]
    module = import_module(f"grapheraser_lab.{place}")
    measure: Callable[..., dict[str, Any]] = getattr(module, function)
    takes = inspect.signature(measure).parameters
    for option in given:
        if option not in takes:
            raise ParameterError(f"benchmark '{name}' has no option --{option}.")
    if "models" in given:
        known = ", ".join(dict.fromkeys([*PRESETS, *takes["models"].default]))
        for model in given["models"]:
            if model not in known.split(", "):
                raise ParameterError(f"unknown model '{model}'. Choose from: {known}.")
    return module, measure
