"""grapheraser info, explain, export, upgrade: say what a run or an error is; carry a run elsewhere.

`info` imports nothing that a run was fitted with.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.options import RunArgument, TrustOption
from grapheraser.cli.output import answered, print_line, print_rows, say
from grapheraser.cli.own import load, own_names, parts_named
from grapheraser.errors import ParameterError, explained
from grapheraser.reports.wording import listed, plural

if TYPE_CHECKING:
    from grapheraser.store import StoredRun


def explain(
    code: Annotated[str, typer.Argument()] = "all",
) -> None:
    """Say what an error means, with an example and the way out.

    Options:
        code: Code or name of an error, e.g. GE-011; 'all' lists them.
    """
    known = explained()
    names = {error.__name__.upper(): number for number, (error, _) in known.items()}
    wanted = list(known) if code == "all" else [names.get(code.upper(), code.upper())]
    if unknown := [name for name in wanted if name not in known]:
        hint = "grapheraser explain all lists every code."
        raise ParameterError(f"there is no error with the code '{unknown[0]}'.", hint=hint)
    found = {name: {"error": known[name][0].__name__, "text": known[name][1]} for name in wanted}
    if answered(found):
        return
    for name, said in found.items():
        text = said["text"].split("\n")[0] if code == "all" else said["text"]
        for line in f"{name} {said['error']}: {text}".split("\n"):
            print_line(line)


def upgrade(
    path: RunArgument,
    out: Path,
    trust: TrustOption = None,
) -> None:
    """Fit the data and settings of a run of an earlier version anew, in a new folder.

    Options:
        out: Folder of the new run.
    """
    from grapheraser.eraser.load import upgrade as upgraded

    upgraded(path, lambda configuration: parts_named(path, configuration, trust)).save(out)
    kept = "the old folder keeps its log and receipts: keep it for whoever checks them"
    if not answered({"run": str(out), "from": str(path), "note": kept}):
        print_line(f"{out}: fitted anew on the data of {path}, with a new log; {kept}.")


def info(path: RunArgument) -> None:
    """Say what a run is: its data, model, shards, receipts, versions and size."""
    from grapheraser.store import load_receipts, load_run, named_files, read_manifest

    manifest = read_manifest(path)
    names = ("run.json", *named_files(path, manifest))
    described = {
        "run": str(path),
        "format": manifest["version"],
        "bytes": sum((path / name).stat().st_size for name in names),
        **_described(load_run(path)),
        "receipts": _receipts(*load_receipts(path)),
    }
    if not answered(described):
        _print(described)


def _described(run: StoredRun) -> dict[str, Any]:
    from grapheraser.eraser.replay import REPLAY, known_replay
    from grapheraser.eraser.task import NODES, TASK
    from grapheraser.receipts.claim import exactness

    arguments = run.configuration["arguments"]
    resolved = run.configuration["resolved"]
    partition, sizes = run.partition, run.partition.sizes
    own = own_names(run.configuration)
    replay = resolved.get(REPLAY) or known_replay(own, resolved)
    claim = exactness(partition.method, partition.inputs, run.graph.inferred, replay)
    return {
        "task": run.configuration.get(TASK, NODES),
        "graph": _graph(run),
        "model": resolved["model"],
        "own_code": own,
        "training": resolved.get("training"),
        "engine": resolved["engine"],
        "device": resolved["device"],
        "seed": arguments["seed"],
        "aggregation": arguments.get("aggregation"),
        "members": arguments.get("members"),
        "partition": partition.method,
        "shards": len(run.shards),
        "shard_sizes": sizes.tolist(),
        "statement": claim["statement"],
        "reason": claim["reason"],
        "versions": dict(run.state["versions"]),
    }


def _graph(run: StoredRun) -> dict[str, Any]:
    graph = run.graph
    return {
        "name": graph.name,
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": list(graph.class_names) or graph.num_classes,
        "training_nodes": graph.num_train,
        "validation_nodes": len(graph.validation_nodes),
        "test_nodes": len(graph.test_nodes),
        "labels": graph.label_kind.name,
        "context": graph.context,
        "named": graph.named,
        "directed": graph.directed,
        "weighted": graph.edge_kind.weighted,
        "notes": list(graph.notes),
        "fingerprint": graph.fingerprint,
    }


def _receipts(receipts: Any, ends: Any) -> dict[str, Any]:
    last = receipts[-1] if len(receipts) else None
    return {
        "count": len(receipts),
        "log": ends.run,
        "signed": ends.checkpoint is not None,
        "last": last
        and {"action": last.action, "completed": last.completed_at, "digest": last.digest},
    }


def _print(found: Mapping[str, Any]) -> None:
    graph, receipts, last = found["graph"], found["receipts"], found["receipts"]["last"]
    others = {"links": "links", "recommendation": "items for users", "embeddings": "embeddings"}
    predicts = others.get(found["task"])
    sizes, versions = found["shard_sizes"], found["versions"]
    kind = [word for word in ("directed", "weighted") if graph[word]]
    size = (
        f"{plural(graph['nodes'], 'node')}, "
        f"{plural(graph['edges'], 'edge')}{' (' + listed(kind) + ')' if kind else ''}, "
        f"{plural(graph['features'], 'feature column')}"
    )
    noun = "graph" if found["task"] == "graphs" else "node"
    if noun == "graph":
        size = plural(graph["nodes"], noun)
    if found["task"] == "recommendation":
        size = f"{graph['nodes']:,} users and items, {graph['edges']:,} between them"
    rows = {
        "run": f"{found['run']} ({found['bytes'] / 1e6:,.1f} MB, format {found['format']})",
        "predicts": predicts or _labels(graph, noun),
        "graph": f"{graph['name']}: {size}",
        "split": ""
        if predicts
        else f"{graph['training_nodes']:,} training, {graph['validation_nodes']:,} validation, "
        f"{graph['test_nodes']:,} test {noun}s; context {graph['context']}",
        "model": _model(found["model"]),
        "own code": ", ".join(found["own_code"]),
        "shards": f"{found['shards']} of {min(filter(None, sizes), default=0)} to {max(sizes)} "
        f"{noun}s, partition {found['partition']}"
        if found["shards"]
        else "none",
        "engine": f"{found['engine']} on {found['device']}, seed {found['seed']}",
        "receipts": f"{receipts['count']}"
        + (f", the last on {last['completed']} ({last['action']})" if last else "")
        + ("" if receipts["signed"] or not last else ", unsigned"),
        "log": receipts["log"],
        "statement": f"{found['statement']}: {found['reason']}",
        "made with": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }
    print_rows(rows, 12)


def _labels(graph: Mapping[str, Any], noun: str) -> str:
    classes, kind = graph["classes"], graph["labels"]
    if isinstance(classes, int):
        one = {"classes": "class", "several": "label"}.get(kind, "number")
        return f"{plural(classes, one)} of {noun}s"
    words = "labels" if kind == "several" else kind
    return f"{words} of {noun}s: {', '.join(classes)}"


def _model(described: Mapping[str, Any]) -> str:
    options = described.get("options") or {}
    name = options.get("kind") or options.get("factory", {}).get("name") or described.get("name")
    name = name or "rgcn"  # the only part that needs no options
    plain = {k: v for k, v in options.items() if isinstance(v, int | float | str)}
    named = ("kind", "factory", "name")
    others = ", ".join(f"{key} {value}" for key, value in plain.items() if key not in named)
    return f"{name} ({others})" if others else str(name)


def export(
    path: RunArgument,
    out: Path,
    onnx: bool = False,
    trust: TrustOption = None,
) -> None:
    """Write a run's weights, arrays and model card, for use without this package.

    Options:
        out: Folder to make.
        onnx: Write shards as ONNX files too; needs the extra onnx.
    """
    from grapheraser.eraser.load import task_of

    eraser = load(path, trust, task="graphs" if task_of(path) == "graphs" else "nodes")
    eraser.export(out, onnx=onnx)
    if answered({"run": str(path), "export": str(out), "shards": list(eraser.shards_)}):
        return
    say("note: an export can't forget; after a request, export again and delete the old one")
    print_rows({"exported": out, "card": out / "README.md"})
