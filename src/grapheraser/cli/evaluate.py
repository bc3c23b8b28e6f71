"""grapheraser evaluate: score a run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.arguments import read_pairs
from grapheraser.cli.output import JsonOption, print_json
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import GraphError, ParameterError
from grapheraser.reports.wording import duration

NAME = "evaluate"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    pairs: Annotated[
        str,
        typer.Option(
            help="Of a link run: file of pairs (- for stdin), one per line: 3,17,1 "
            "(1: a link, 0: none)."
        ),
    ] = "",
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Print the micro F1 on the remaining test nodes; of a link run, the AUC on given pairs."""
    from grapheraser.eraser import GraphEraser
    from grapheraser.links.loading import is_link_run

    if pairs:
        _evaluate_links(path, pairs, trust, as_json=json)
        return
    if is_link_run(path):
        raise ParameterError(
            f"{path}: a link run has no test edges of its own.",
            hint="bring pairs: --pairs FILE, one per line: 3,17,1 (1: a link, 0: none).",
        )
    eraser = GraphEraser.load(path, **own_parts(path, trust))
    nodes = eraser.graph_.labelled_test_nodes
    if len(nodes) == 0:
        raise GraphError(f"{path}: the run's graph has no test nodes with a label.")
    started = time.perf_counter()
    f1 = eraser.score(nodes)
    seconds = time.perf_counter() - started
    if json:
        print_json(
            {
                "run": str(path),
                "test_f1": f1,
                "test_nodes": len(nodes),
                "train_nodes": eraser.graph_.num_train,
                "context_nodes": eraser.graph_.num_sharded - eraser.graph_.num_train,
                "shards": len(eraser.shards_),
                "changes": len(eraser.receipts_),
                "seconds": seconds,
            }
        )
        return
    print(f"test F1   {f1:.4f} on {len(nodes):,} nodes, in {duration(seconds)}")


def _evaluate_links(path: Path, file: str, trust: Sequence[str] | None, *, as_json: bool) -> None:
    from grapheraser.links import LinkEraser

    eraser = LinkEraser.load(path, **own_parts(path, trust))
    pairs, labels = read_pairs(file, named=eraser.graph_.named)
    score = eraser.score(pairs, labels)
    if as_json:
        print_json({"run": str(path), **score.to_dict()})
        return
    hits = ", ".join(f"Hits@{k} {share:.4f}" for k, share in score.hits.items())
    print(f"AUC       {score.auc:.4f} on {score.edges:,} links and {score.others:,} other pairs")
    print(f"hits      {hits}")
    print(f"MRR       {score.mrr:.4f}")
