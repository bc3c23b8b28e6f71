"""grapheraser bench: measure speed or quality, both sides in one run."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from grapheraser.cli import completion
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.errors import ParameterError

NAME = "bench"
BENCHMARKS = {
    "partition": "every partitioner at the paper's k, relative to METIS",
    "partition-scale": "BLPA and METIS on generated graphs of increasing size",
    "engines": "training a shard: the CPU engine against the PyG loop",
    "fidelity": "F1 of the CPU engine and of the PyG loop, over ten seeds",
    "cost": "every operation by part, and against the size of generated graphs",
    "scale": "every operation on graphs on the disk, 1e5 to 1e8 edges, and on real ones",
    "unlearn": "a request, up to its receipt, against PyG from scratch",
    "relearning": "relearning the aggregation after a request",
    "modules": "predictions of a user's own module against one pass through PyG",
    "cuda": "the CUDA engine against the PyG loop on one GPU",
    "attacks": "who was forgotten, one version or both in sight, in every configuration",
    "attacks-recovery": "forgotten edges, and links and features of forgotten nodes, recovered",
    "attacks-mitigations": "who was forgotten, where answers say less",
    "attacks-partition": "deleted nodes and edges, by the partition alone",
    "leaks": "what each part of the ensemble gives away to four attacks",
    "refresh": "who was forgotten, both versions in sight, with each policy of fresh seeds",
    "links": "AUC of closed-form links against tuned GNN encoders from scratch, six graphs",
    "links-cost": "requests, predictions and rankings of closed-form links",
    "service": "the service under load: submits, predictions, requests until their receipts",
    "public": "F1 on the published splits, with few labels, against the PyG loop",
    "utility": "F1 of the defaults and their parts against training from scratch, ten graphs",
    "utility-partitions": "F1 of every partition and aggregation on the paper's graphs",
}


def run(
    name: Annotated[
        str,
        typer.Argument(
            help=f"One of: {', '.join(BENCHMARKS)}.", autocompletion=completion.benchmarks
        ),
    ],
    datasets: Annotated[str, typer.Option(help="Data sets, e.g. cora,physics.")] = "",
    models: Annotated[str, typer.Option(help="Models, e.g. gcn,gat.")] = "",
    device: Annotated[str, typer.Option(help="Torch device, for benchmarks that train.")] = "",
    keep: Annotated[
        Path | None,
        typer.Option(help="Folder for what is made and measured on the way; go on from there."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File for the JSON report.")] = None,
    json: JsonOption = False,
) -> None:
    """Run a benchmark and print a table. Use one core for comparable figures."""
    if name not in BENCHMARKS:
        raise ParameterError(f"unknown benchmark '{name}'. Choose from: {', '.join(BENCHMARKS)}.")
    from grapheraser.models import PRESETS

    module_name, _, variant = name.partition("-")
    module = import_module(f"grapheraser.bench.{module_name}")
    function = getattr(module, variant or "run")
    options: dict[str, Any] = {"progress": say}
    takes = inspect.signature(function).parameters
    lists = {"datasets": datasets, "models": models}
    asked = {option: text.split(",") for option, text in lists.items() if text}
    for option, value in {**asked, "device": device, "keep": keep}.items():
        if not value:
            continue
        if option not in takes:
            raise ParameterError(f"benchmark '{name}' has no option --{option}.")
        options[option] = value
    if models:
        known = dict.fromkeys([*PRESETS, *takes["models"].default])
        for model in options["models"]:
            if model not in known:
                raise ParameterError(f"unknown model '{model}'. Choose from: {', '.join(known)}.")
    report = function(**options)
    if out is not None:
        from grapheraser.canonical import canonical_json
        from grapheraser.store import write_text

        write_text(out, canonical_json(report) + "\n")
    if json:
        print_json(report)
    else:
        typer.echo(module.markdown(report))
