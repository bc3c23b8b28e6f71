"""grapheraser unlearn: carry out a request and print its receipt."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.arguments import Asked
from grapheraser.cli.output import JsonOption, print_json, print_table
from grapheraser.errors import NothingToForgetError
from grapheraser.reports.wording import contents, duration, plural

if TYPE_CHECKING:
    from grapheraser.eraser.plan import Plan

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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan and change nothing.")
    ] = False,
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
        eraser = load_eraser(path)
        requests = asked.requests(named=eraser.graph_.named)
        _print_plan(eraser.plan(requests), as_json=json)
        return
    with locked(path) as lock:
        eraser = load_eraser(path)
        receipt = eraser.unlearn(asked.requests(named=eraser.graph_.named))
        eraser.save(path, lock=lock)
    if json:
        print_json({"receipt": receipt.to_dict(), "digest": receipt.digest})
        return
    untrained = receipt.counts["untrained"]
    outside = f", {untrained} of them in no shard" if untrained else ""
    if receipt.counts["context"]:
        outside += f" ({plural(receipt.counts['context'], 'context node')} among them)"
    retrained = ", ".join(map(str, receipt.retrained)) or "none"
    print(f"forgotten   {contents(receipt.counts)}{outside}")
    print(f"retrained   shards: {retrained} (of {len(eraser.shards_)})")
    print(f"took        {duration(receipt.timings['total'])}")
    print(f"statement   {receipt.statement}")
    print(f"            {receipt.exactness['reason']}")
    print(f"receipt     {receipt.sequence}, {receipt.digest}")


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
