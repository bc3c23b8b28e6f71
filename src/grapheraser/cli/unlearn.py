"""grapheraser unlearn, update, reshard: change a run and print the receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import TypedRequests, read_lines
from grapheraser.cli.options import ExecutorOption, JsonOption, RunArgument, TrustOption
from grapheraser.cli.output import print_json, print_line, print_rows, print_table, say, say_notes
from grapheraser.cli.own import load
from grapheraser.errors import InputError, NothingToForgetError, ParameterError
from grapheraser.kinds import ADD, CHANGES, SET
from grapheraser.reports.wording import contents, duration, listed, plural
from grapheraser.untrusted import MAX_LINES, parse_json

if TYPE_CHECKING:
    from grapheraser.eraser import Eraser
    from grapheraser.eraser.plan import Plan
    from grapheraser.graph import GraphChange
    from grapheraser.receipts import Receipt

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan and change nothing.")]


def unlearn(
    path: RunArgument,
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 10,101.")] = "",
    cascade: Annotated[
        str,
        typer.Option(
            help="Types, e.g. payment: their nodes go too where they exist only through --nodes."
        ),
    ] = "",
    edges: Annotated[str, typer.Option(help="Edges, e.g. 3-17,4-8.")] = "",
    features: Annotated[str, typer.Option(help="Ids of the nodes whose features to forget.")] = "",
    labels: Annotated[str, typer.Option(help="Ids of the nodes whose labels to forget.")] = "",
    users: Annotated[str, typer.Option(help="Users of a recommender, e.g. 7,12.")] = "",
    items: Annotated[str, typer.Option(help="Items of a recommender, e.g. 3,4.")] = "",
    interactions: Annotated[
        str,
        typer.Option(help="Interactions of a recommender, a user and an item each, e.g. 7-3,12-4."),
    ] = "",
    graphs: Annotated[str, typer.Option(help="Graphs of a collection, e.g. 12,40.")] = "",
    graph_nodes: Annotated[
        str, typer.Option(help="Nodes of graphs of a collection, e.g. 12-4: node 4 of graph 12.")
    ] = "",
    graph_edges: Annotated[
        str, typer.Option(help="Edges of graphs of a collection, e.g. 12-1-4.")
    ] = "",
    file: Annotated[
        str, typer.Option(help='File of requests, one per line: {"nodes": [10]}, or ids of nodes.')
    ] = "",
    missing: Annotated[
        str,
        typer.Option(
            help="What to do about data that is not there: raise (an error that names all of it), "
            "or skip."
        ),
    ] = "raise",
    refresh: Annotated[
        str, typer.Option(help="Shards to train from fresh seeds: none, touched or all.")
    ] = "none",
    receipts: Annotated[
        Path | None,
        typer.Option(help="Folder for a receipt of each node, edge, feature row and label."),
    ] = None,
    dry_run: DryRunOption = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Forget nodes, edges, features, labels; users, items, interactions; graphs; in one batch.

    Every option takes - for stdin, and all but --file take @FILE: ids or edges, with commas or one
    a line.
    """
    from grapheraser.store import locked

    given = {"nodes": nodes, "edges": edges, "features": features, "labels": labels}
    given |= {"users": users, "items": items, "interactions": interactions}
    given |= {"graphs": graphs, "graph_nodes": graph_nodes, "graph_edges": graph_edges}
    asked = TypedRequests.of(file, cascade=cascade, **given)
    if not asked:
        names = [f"--{name.replace('_', '-')}" for name in (*given, "file")]
        options = listed(names, "or")
        raise NothingToForgetError("nothing to forget.", hint=f"use {options}.")
    if dry_run:
        _check_dry_run(receipts)
        if refresh != "none":
            raise ParameterError("--refresh has no part in the plan of --dry-run; leave it out.")
        eraser = load(path, trust, executor)
        requests = asked.requests(named=eraser.graph_.called_by_text)
        _print_plan(eraser.plan(requests, missing=missing), as_json=json)
        return
    with locked(path) as lock:
        eraser = load(path, trust, executor)
        requests = asked.requests(named=eraser.graph_.called_by_text)
        receipt = eraser.unlearn(requests, missing=missing, refresh=refresh)
        eraser.save(path, lock=lock)
    _print_receipt(receipt, eraser, receipts, as_json=json)
    if receipts is None and not json:
        say("note: no receipts were written; they can't be made later. Use --receipts FOLDER.")


def update(
    path: RunArgument,
    file: Annotated[
        Path,
        typer.Option(
            help='File of changes, one per line: {"set_labels": {"nodes": [4], "y": [1]}}; '
            "- reads stdin."
        ),
    ],
    receipts: Annotated[
        Path | None, typer.Option(help="Folder for a receipt of each thing that is named.")
    ] = None,
    dry_run: DryRunOption = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Add nodes and edges, set features and labels, and forget, all in one batch."""
    from grapheraser.store import locked

    if dry_run:
        _check_dry_run(receipts)
        eraser = load(path, trust, executor)
        _print_plan(eraser.plan(_read_changes(file, eraser.graph_.num_features)), as_json=json)
        return
    with locked(path) as lock:
        eraser = load(path, trust, executor)
        receipt = eraser.update(_read_changes(file, eraser.graph_.num_features))
        eraser.save(path, lock=lock)
    _print_receipt(receipt, eraser, receipts, as_json=json)


def reshard(
    path: RunArgument,
    shards: Annotated[int, typer.Option(help="The new number of shards.")],
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Partition what is left of a run anew and train all shards; the receipts go on."""
    from grapheraser.eraser.task import NODES
    from grapheraser.store import locked

    with locked(path) as lock:
        eraser = load(path, trust, executor, task=NODES)
        receipt = eraser.reshard(shards)
        eraser.save(path, lock=lock)
    if json:
        print_json({"receipt": receipt.to_dict(), "digest": receipt.digest})
        return
    rows = {
        "shards": len(eraser.shards_),
        "took": duration(receipt.timings["total"]),
        "statement": receipt.statement,
        "receipt": f"{receipt.sequence}, {receipt.digest}",
    }
    print_rows(rows, 12)


def _check_dry_run(receipts: Path | None) -> None:
    if receipts is not None:
        raise ParameterError("--receipts and --dry-run exclude each other.")


def _read_changes(path: Path, num_features: int) -> list[GraphChange]:
    """Read a file of changes, ``-`` for stdin; see `docs/changes.md` for what a line looks like."""
    from grapheraser.graph.changes.kinds import changes_of

    changes: list[GraphChange] = []
    for place, line in read_lines(path, "changes"):
        try:
            changes += changes_of(parse_json(line, MAX_LINES), num_features)
        except InputError as error:
            raise type(error)(f"{place}: {error.message}", hint=error.hint) from error
        except ValueError as error:
            raise ParameterError(f"{place}: not a JSON object ({error}).") from error
    return changes


def _print_receipt(receipt: Receipt, eraser: Eraser, folder: Path | None, *, as_json: bool) -> None:
    """Print what was done and what was skipped; write the parts of the receipt, if anywhere."""
    from grapheraser.graph.changes.requests import canonical_form

    files = _handed_out(receipt, folder)
    if as_json:
        shown = {"receipt": receipt.to_dict(), "digest": receipt.digest, "receipts": [*files]}
        skipped = _by_name(canonical_form(receipt.skipped)) if receipt.skipped else {}
        print_json(shown | ({"skipped": skipped} if skipped else {}))
        return
    _print_done(receipt)
    for request in receipt.skipped:
        pairs = request.kind.ends > 1
        words = ["-".join(map(str, ids)) if pairs else str(ids) for ids in request.named]
        print_line(f"skipped     {request.kind.name}: {', '.join(words)}")
    retrained = ", ".join(map(str, receipt.retrained)) or "none"
    rows = {
        "retrained": f"shards: {retrained} (of {len(eraser.shards_)})",
        "took": duration(receipt.timings["total"]),
        "statement": receipt.statement,
        "": receipt.exactness["reason"],
        "receipt": f"{receipt.sequence}, {receipt.digest}",
        "signed by": ", ".join(s.key for s in receipt.signatures) or "nobody: unsigned",
    }
    print_rows(rows, 12)
    for handed in files:
        print_line(f"handed out  {handed['file']}")


def _handed_out(receipt: Receipt, folder: Path | None) -> list[dict[str, Any]]:
    """Write a receipt for each part of a change, if anywhere; return what is in which file."""
    from grapheraser.store import write_text

    files: list[dict[str, Any]] = []
    if folder is None:
        return files
    for number, part in enumerate(receipt.parts, start=1):
        file = folder / f"receipt-{receipt.sequence:06}-{number:04}.json"
        write_text(file, part.to_json() + "\n")
        files.append({"file": str(file), "about": dict(part.about)})
    return files


def _by_name(form: Any) -> Any:
    """Put names in the place of ids that were given by name."""
    if isinstance(form, dict):
        return {kind: _by_name(part) for kind, part in form.items()}
    return (
        [_by_name(part) for part in form] if isinstance(form, list) else getattr(form, "name", form)
    )


def _print_done(receipt: Receipt) -> None:
    """Print what was forgotten, added and set."""
    details = receipt.details
    outside = f", {details.untrained} of them in no shard" if details.untrained else ""
    if details.context:
        outside += f" ({plural(details.context, 'context node')} among them)"
    done = {"forgotten": contents(receipt.forgotten)}
    for verb, past in ((ADD, "added"), (SET, "set")):
        kinds = [kind for kind in CHANGES.values() if kind.verb == verb]
        done[past] = contents({kind.changes: receipt.counts.get(kind.count, 0) for kind in kinds})
    done = {verb: what for verb, what in done.items() if what} or {"changed": "nothing"}
    for verb, what in done.items():
        print_line(f"{verb:<12}{what}{outside if verb == list(done)[-1] else ''}")


def _print_plan(plan: Plan, *, as_json: bool) -> None:
    """Print which shards a change would retrain, and why."""
    if as_json:
        print_json({"plan": plan.to_dict()})
        return
    rows = [
        (s.shard, "retrain" if s.shard in plan.retrain else "empty", s.why) for s in plan.shards
    ]
    print_table("", ("shard", "action", "why"), rows)
    print_line(
        f"{plan.cut_edges} edges and {plan.untrained_nodes} nodes, feature rows or labels "
        "are in no shard"
    )
    verb = "lose" if plan.edit is None else "change"
    print_line(f"{len(plan.touched)} other nodes {verb} neighbours, features or labels")
    if plan.removal.skipped:
        print_line(f"{plan.removal.num_skipped} of what is named is not there, and skipped")
    say_notes(plan.notes)
