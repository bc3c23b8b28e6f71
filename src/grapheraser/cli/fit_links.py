"""grapheraser fit --task links: learn links and save the run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from grapheraser.cli.output import print_json, print_table, say
from grapheraser.reports.wording import duration


def fit_links(
    dataset: str, out: Path, options: Mapping[str, Any], *, replace: bool, as_json: bool
) -> None:
    """Fit a `LinkEraser` with these arguments, and print what it has learned."""
    from grapheraser.datasets import load_dataset
    from grapheraser.links import LinkEraser
    from grapheraser.store import check_target

    check_target(out, replace=replace)
    graph = load_dataset(dataset)
    for note in graph.notes:
        say(f"note: {note}")
    eraser = LinkEraser(**options)
    started = time.perf_counter()
    eraser.fit(graph)
    seconds = time.perf_counter() - started
    eraser.save(out, replace=replace)
    if as_json:
        print_json(
            {
                "run": str(out),
                "task": "links",
                "dataset": graph.name,
                "members": eraser.members,
                "shards": len(eraser.shards_),
                "weights": eraser.weights_,
                "seconds": seconds,
                "graph": eraser.graph_.fingerprint,
                "notes": list(graph.notes),
            }
        )
        return
    print(f"{graph}")
    rows = [(name, f"{weight:.3f}") for name, weight in eraser.weights_.items()]
    print_table("", ("column", "weight"), rows)
    print(f"fitted    in {duration(seconds)}, members: {eraser.members}")
    print(f"run       {out}")
