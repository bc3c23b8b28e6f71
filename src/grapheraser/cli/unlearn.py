"""grapheraser unlearn: carry out a request and print its receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import requests_from
from grapheraser.cli.output import JsonOption, print_json, print_table, say
from grapheraser.errors import NothingToForgetError, ParameterError
from grapheraser.reports.wording import contents, duration, plural

if TYPE_CHECKING:
    from grapheraser.eraser.plan import Plan
    from grapheraser.receipts import Receipt

NAME = "unlearn"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    nodes: Annotated[str, typer.Option(help="Node ids, e.g. 10,101.")] = "",
    edges: Annotated[str, typer.Option(help="Edges, e.g. 3-17,4-8.")] = "",
    features: Annotated[str, typer.Option(help="Ids of the nodes whose features to forget.")] = "",
    labels: Annotated[str, typer.Option(help="Ids of the nodes whose labels to forget.")] = "",
    file: Annotated[
        Path | None, typer.Option(help='File of requests, one per line: {"nodes": [10]}.')
    ] = None,
    receipts: Annotated[
        Path | None,
        typer.Option(help="Folder for a receipt of each node, edge, feature row and label."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and change nothing.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Forget nodes, edges, features or labels, all in one batch."""
    from grapheraser.links.loading import load_eraser
    from grapheraser.store import locked

    requests = requests_from(nodes, edges, features, labels, file)
    if not requests:
        raise NothingToForgetError(
            "nothing to forget.", hint="use --nodes, --edges, --features, --labels or --file."
        )
    if dry_run:
        if receipts is not None:
            raise ParameterError("--receipts and --dry-run exclude each other.")
        _print_plan(load_eraser(path).plan(requests), as_json=json)
        return
    with locked(path) as lock:
        eraser = load_eraser(path)
        receipt = eraser.unlearn(requests)
        eraser.save(path, lock=lock)
    files = [] if receipts is None else _handed_out(receipt, receipts)
    if json:
        print_json({"receipt": receipt.to_dict(), "digest": receipt.digest, "receipts": files})
        return
    details = receipt.details
    outside = f", {details.untrained} of them in no shard" if details.untrained else ""
    if details.context:
        outside += f" ({plural(details.context, 'context node')} among them)"
    retrained = ", ".join(map(str, receipt.retrained)) or "none"
    print(f"forgotten   {contents(receipt.counts)}{outside}")
    print(f"retrained   shards: {retrained} (of {len(eraser.shards_)})")
    print(f"took        {duration(receipt.timings['total'])}")
    print(f"statement   {receipt.statement}")
    print(f"            {receipt.exactness['reason']}")
    print(f"receipt     {receipt.sequence}, {receipt.digest}")
    print(f"signed by   {', '.join(s.key for s in receipt.signatures) or 'nobody: unsigned'}")
    if receipts is None:
        say("note: nobody was handed a receipt; later nobody can be. Use --receipts FOLDER.")
    for handed in files:
        print(f"handed out  {handed['file']}")


def _handed_out(receipt: Receipt, folder: Path) -> list[dict[str, Any]]:
    """Write a receipt for each part of a request; says what is in which file."""
    from grapheraser.store import write_text

    files = []
    for number, part in enumerate(receipt.parts, start=1):
        file = folder / f"receipt-{receipt.sequence:06}-{number:04}.json"
        write_text(file, part.to_json() + "\n")
        files.append({"file": str(file), "about": dict(part.about)})
    return files


def _print_plan(plan: Plan, *, as_json: bool) -> None:
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
    print(f"{len(plan.touched)} other nodes lose neighbours, features or labels")
