"""grapheraser unlearn, update, reshard: change a run and print the receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import TypedRequests, read_lines
from grapheraser.cli.options import ExecutorOption, RunArgument, TrustOption
from grapheraser.cli.output import (
    answered,
    print_found,
    print_line,
    print_rows,
    print_table,
    say,
    say_notes,
    wants_json,
)
from grapheraser.cli.own import load
from grapheraser.errors import InputError, NothingToForgetError, ParameterError
from grapheraser.kinds import ADD, CHANGES, KINDS, SET
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
    nodes: str = "",
    cascade: str = "",
    edges: str = "",
    features: str = "",
    labels: str = "",
    users: str = "",
    items: str = "",
    interactions: str = "",
    graphs: str = "",
    graph_nodes: str = "",
    graph_edges: str = "",
    file: str = "",
    missing: str = "raise",
    refresh: str = "none",
    receipts: Path | None = None,
    dry_run: DryRunOption = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
) -> None:
    """Forget nodes, edges, features, labels; users, items, interactions; graphs; in one batch.

    Every option takes - for stdin, and all but --file take @FILE: ids or edges, with commas or one
    a line.

    Options:
        nodes: Node ids, e.g. 10,101.
        cascade: Types, e.g. payment: their nodes go too where they exist only through --nodes.
        edges: Edges, e.g. 3-17,4-8.
        features: Ids of the nodes whose features to forget.
        labels: Ids of the nodes whose labels to forget; 12-art: one of several.
        users: Users of a recommender, e.g. 7,12.
        items: Items of a recommender, e.g. 3,4.
        interactions: Interactions of a recommender, a user and an item each, e.g. 7-3,12-4.
        graphs: Graphs of a collection, e.g. 12,40.
        graph_nodes: Nodes of graphs of a collection, e.g. 12-4: node 4 of graph 12.
        graph_edges: Edges of graphs of a collection, e.g. 12-1-4.
        file: File of requests, one per line: {"nodes": [10]}, or ids of nodes.
        missing: What to do about data that is not there: raise (an error that names all of it), or
            skip.
        refresh: Shards to train from fresh seeds: none, touched or all.
        receipts: Folder for a receipt of each node, edge, feature row and label.
    """
    from grapheraser.store import locked

    given = {name: text for name, text in locals().items() if name in KINDS}
    asked = TypedRequests.of(file, cascade=cascade, **given)
    if not asked:
        names = [f"--{name.replace('_', '-')}" for name in (*given, "file")]
        raise NothingToForgetError("nothing to forget.", hint=f"use {listed(names, 'or')}.")
    if dry_run:
        _check_dry_run(receipts)
        if refresh != "none":
            raise ParameterError("--refresh has no part in the plan of --dry-run; leave it out.")
        eraser = load(path, trust, executor)
        requests = asked.requests(named=eraser.graph_.called_by_text)
        _print_plan(eraser.plan(requests, missing=missing))
        return
    with locked(path) as lock:
        eraser = load(path, trust, executor)
        requests = asked.requests(named=eraser.graph_.called_by_text)
        receipt = eraser.unlearn(requests, missing=missing, refresh=refresh)
        eraser.save(path, lock=lock)
    _print_receipt(receipt, eraser, receipts)
    if receipts is None and not wants_json():
        say("note: no receipts were written; they can't be made later. Use --receipts FOLDER.")


def update(
    path: RunArgument,
    file: Path,
    receipts: Path | None = None,
    dry_run: DryRunOption = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
) -> None:
    """Add nodes and edges, set features and labels, and forget, all in one batch.

    Options:
        file: File of changes, one per line: {"set_labels": {"nodes": [4], "y": [1]}}; - reads
            stdin.
        receipts: Folder for a receipt of each thing that is named.
    """
    from grapheraser.store import locked

    if dry_run:
        _check_dry_run(receipts)
        eraser = load(path, trust, executor)
        _print_plan(eraser.plan(_read_changes(file, eraser.graph_.num_features)))
        return
    with locked(path) as lock:
        eraser = load(path, trust, executor)
        receipt = eraser.update(_read_changes(file, eraser.graph_.num_features))
        eraser.save(path, lock=lock)
    _print_receipt(receipt, eraser, receipts)


def reshard(
    path: RunArgument,
    shards: int,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
) -> None:
    """Partition what is left of a run anew and train all shards; the receipts go on.

    Options:
        shards: The new number of shards.
    """
    from grapheraser.eraser.task import NODES
    from grapheraser.store import locked

    with locked(path) as lock:
        eraser = load(path, trust, executor, task=NODES)
        receipt = eraser.reshard(shards)
        eraser.save(path, lock=lock)
    rows = {
        "shards": len(eraser.shards_),
        "took": duration(receipt.timings["total"]),
        "statement": receipt.statement,
        "receipt": f"{receipt.sequence}, {receipt.digest}",
    }
    print_found({"receipt": receipt.to_dict(), "digest": receipt.digest}, rows, 12)


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


def _print_receipt(receipt: Receipt, eraser: Eraser, folder: Path | None) -> None:
    """Print what was done and what was skipped; write the parts of the receipt, if anywhere."""
    from grapheraser.graph.changes.requests import canonical_form

    files = _handed_out(receipt, folder)
    shown = {"receipt": receipt.to_dict(), "digest": receipt.digest, "receipts": [*files]}
    if receipt.skipped:
        shown["skipped"] = _by_name(canonical_form(receipt.skipped))
    if answered(shown):
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


def _print_plan(plan: Plan) -> None:
    """Print which shards a change would retrain, and why."""
    if answered({"plan": plan.to_dict()}):
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
