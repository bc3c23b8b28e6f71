"""grapheraser rank: the most likely new links of a node."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.arguments import parse_ids
from grapheraser.cli.output import JsonOption, print_json, print_table, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError

NAME = "rank"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a link run.")],
    node: Annotated[str, typer.Option(help="Id or name of the node.")],
    top: Annotated[int, typer.Option(help="How many links to show.")] = 10,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Print the most likely new links of a node, best first."""
    from grapheraser.links import LinkEraser

    eraser = LinkEraser.load(path, **own_parts(path, trust))
    asked = parse_ids(node, "--node", named=eraser.graph_.named)
    if len(asked) != 1:
        raise ParameterError.of("--node", "the command", "one node", node)
    ranked = eraser.rank(asked[0], top)
    if json:
        print_json({"run": str(path), **ranked.to_dict()})
        return
    if len(ranked.nodes) == 0:
        say(f"node {node} has no candidates: it is linked to all that may be linked to it")
    rows = zip(ranked.nodes.tolist(), (f"{p:.4f}" for p in ranked.probabilities), strict=True)
    print_table("", ("node", "probability"), list(rows))
