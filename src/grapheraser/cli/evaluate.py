"""grapheraser evaluate: score a run."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json
from grapheraser.errors import GraphError
from grapheraser.reports.wording import duration

NAME = "evaluate"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    json: JsonOption = False,
) -> None:
    """Print the micro F1 on the remaining test nodes."""
    from grapheraser.eraser import GraphEraser

    eraser = GraphEraser.load(path)
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
