"""grapheraser unlearn: carry out a request and print its receipt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import Asked
from grapheraser.cli.options import ExecutorOption
from grapheraser.cli.output import JsonOption, print_json, print_table, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import NothingToForgetError, ParameterError
from grapheraser.reports.wording import contents, duration, plural

if TYPE_CHECKING:
    from grapheraser.eraser import GraphEraser
    from grapheraser.eraser.plan import Plan
    from grapheraser.links import LinkEraser
    from grapheraser.receipts import Receipt

NAME = "unlearn"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 10,101.")] = "",
    edges: Annotated[str, typer.Option(help="Edges, e.g. 3-17,4-8.")] = "",
    features: Annotated[str, typer.Option(help="Ids of the nodes whose features to forget.")] = "",
    labels: Annotated[str, typer.Option(help="Ids of the nodes whose labels to forget.")] = "",
    file: Annotated[
        str,
        typer.Option(help='File of requests, one per line: {"nodes": [10]}, or ids of nodes.'),
    ] = "",
    missing: Annotated[
        str,
        typer.Option(
            help="What to do about data that is not there: raise (an error that names all of it), "
            "or skip."
        ),
    ] = "raise",
    refresh: Annotated[
        str,
        typer.Option(help="Shards to train from fresh seeds: none, touched or all."),
    ] = "none",
    receipts: Annotated[
        Path | None,
        typer.Option(help="Folder for a receipt of each node, edge, feature row and label."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and change nothing.")
    ] = False,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Forget nodes, edges, features or labels, all in one batch.

    Every option takes - for stdin, and all but --file take @FILE: ids or edges, with commas or one
    a line.
    """
    from grapheraser.links.loading import load_eraser
    from grapheraser.store import locked

    asked = Asked.of(file, nodes=nodes, edges=edges, features=features, labels=labels)
    if not asked:
        raise NothingToForgetError(
            "nothing to forget.", hint="use --nodes, --edges, --features, --labels or --file."
        )
    if dry_run:
        if receipts is not None:
            raise ParameterError("--receipts and --dry-run exclude each other.")
        if refresh != "none":
            raise ParameterError("--refresh has no part in the plan of --dry-run; leave it out.")
        eraser = load_eraser(path, executor=executor, **own_parts(path, trust))
        requests = asked.requests(named=eraser.graph_.named)
        print_plan(eraser.plan(requests, missing=missing), as_json=json)
        return
    with locked(path) as lock:
        eraser = load_eraser(path, executor=executor, **own_parts(path, trust))
        requests = asked.requests(named=eraser.graph_.named)
        receipt = eraser.unlearn(requests, missing=missing, refresh=refresh)
        eraser.save(path, lock=lock)
    print_receipt(receipt, eraser, handed_out(receipt, receipts), as_json=json)
    if receipts is None and not json:
        say("note: nobody was handed a receipt; later nobody can be. Use --receipts FOLDER.")


def print_receipt(
    receipt: Receipt,
    eraser: GraphEraser | LinkEraser,
    files: Sequence[Mapping[str, Any]] = (),
    *,
    as_json: bool,
) -> None:
    """Print what was done, what was skipped, and which files were handed out."""
    from grapheraser.graph.requests import canonical_form

    if as_json:
        shown = {"receipt": receipt.to_dict(), "digest": receipt.digest, "receipts": [*files]}
        skipped = _by_name(canonical_form(receipt.skipped)) if receipt.skipped else {}
        print_json(shown | ({"skipped": skipped} if skipped else {}))
        return
    _print_done(receipt)
    for request in receipt.skipped:
        kind = type(request).__name__.lower()
        parts = request.pairs if kind == "edges" else request.ids
        words = [f"{p[0]}-{p[1]}" if kind == "edges" else str(p) for p in parts]
        print(f"skipped     {kind}: {', '.join(words)}")
    retrained = ", ".join(map(str, receipt.retrained)) or "none"
    print(f"retrained   shards: {retrained} (of {len(eraser.shards_)})")
    print(f"took        {duration(receipt.timings['total'])}")
    print(f"statement   {receipt.statement}")
    print(f"            {receipt.exactness['reason']}")
    print(f"receipt     {receipt.sequence}, {receipt.digest}")
    print(f"signed by   {', '.join(s.key for s in receipt.signatures) or 'nobody: unsigned'}")
    for handed in files:
        print(f"handed out  {handed['file']}")


def handed_out(receipt: Receipt, folder: Path | None) -> list[dict[str, Any]]:
    """Write a receipt for each part of a change, if anywhere; says what is in which file."""
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
    """The same with names in the place of ids that were given by name."""
    if isinstance(form, dict):
        return {kind: _by_name(part) for kind, part in form.items()}
    return (
        [_by_name(part) for part in form] if isinstance(form, list) else getattr(form, "name", form)
    )


def _print_done(receipt: Receipt) -> None:
    """What was forgotten, added and set."""
    gone = receipt.forgotten
    new = {name: receipt.counts[name] - count for name, count in gone.items()}
    details = receipt.details
    outside = f", {details.untrained} of them in no shard" if details.untrained else ""
    if details.context:
        outside += f" ({plural(details.context, 'context node')} among them)"
    added = {name: new[name] for name in ("nodes", "edges")}
    corrected = {name: new[name] for name in ("features", "labels")}
    done = {"forgotten": contents(gone), "added": contents(added), "set": contents(corrected)}
    done = {verb: what for verb, what in done.items() if what} or {"changed": "nothing"}
    for verb, what in done.items():
        print(f"{verb:<12}{what}{outside if verb == list(done)[-1] else ''}")


def print_plan(plan: Plan, *, as_json: bool) -> None:
    """Print which shards a change would retrain, and why."""
    if as_json:
        print_json({"plan": plan.to_dict()})
        return
    rows = [
        (s.shard, "retrain" if s.shard in plan.retrain else "empty", s.why) for s in plan.shards
    ]
    print_table("", ("shard", "action", "why"), rows)
    print(
        f"{plan.cut_edges} edges and {plan.untrained_nodes} nodes, feature rows or labels "
        "are in no shard"
    )
    verb = "lose" if plan.edit is None else "change"
    print(f"{len(plan.touched)} other nodes {verb} neighbours, features or labels")
    if plan.removal.skipped:
        print(f"{plan.removal.num_skipped} of what is named is not there, and skipped")
