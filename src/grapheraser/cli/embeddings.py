"""grapheraser changes, and what other verbs do with an embedding run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.arguments import parse_ids, typed
from grapheraser.cli.output import answered, print_found, print_table, say
from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.embeddings import Embedder

EMBEDDINGS = "embeddings"
_SHOWN = 4


def changes(
    path: Annotated[Path, typer.Argument(metavar="RUN")],
    since: int | None = None,
    log: str = "",
    out: Path | None = None,
    acknowledge: int | None = None,
) -> None:
    """List the rows that moved after a version, for an index or a feature store to take over.

    Options:
        path: Folder of an embedding run.
        since: Version that the index has; without it, all rows.
        log: Log that the version is of; another is refused.
        out: Write the rows to this .parquet or .jsonl file.
        acknowledge: Let go of what moved up to this version; every index has it.
    """
    from grapheraser.embeddings import Embedder
    from grapheraser.store import locked

    if acknowledge is not None:
        with locked(path) as lock:
            embedder = Embedder.load(path)
            embedder.acknowledge(acknowledge)
            embedder.save(path, lock=lock)
    else:
        embedder = Embedder.load(path)
    found = embedder.changes(since, log=log or None)
    if out is not None:
        writers = {".parquet": found.to_parquet, ".jsonl": found.to_jsonl}
        if out.suffix not in writers:
            raise ParameterError(f"--out must end in .parquet or .jsonl. Got {out}.")
        if out.resolve().is_relative_to(path.resolve()):
            raise ParameterError(f"{out} is inside the run, where rows would be a stray file.")
        writers[out.suffix](out)
    told = {"since": since, "version": found.version, "log": found.log, "rows": len(found)}
    ids = {} if out is not None else {"ids": found.ids.tolist()}
    file = None if out is None else str(out)
    moved = "all" if since is None else f"moved since version {since}"
    rows = {"rows": f"{len(found):,} ({moved})", "version": found.version, "log": found.log}
    print_found({"run": str(path), **told, **ids, "file": file}, rows | {"file": file or ""})


def show_rows(embedder: Embedder, path: Path, nodes: str) -> None:
    """Print the rows of nodes."""
    ids = parse_ids(typed(nodes), "--nodes", named=embedder.graph_.named)
    rows = embedder.transform(ids)
    found = [{"node": n, "row": r.tolist()} for n, r in zip(ids, rows, strict=True)]
    if answered({"run": str(path), "embeddings": found}):
        return
    say(f"the first {_SHOWN} of {rows.shape[1]} columns; --json prints all")
    numbers = [[f"{value:.4f}" for value in row[:_SHOWN].tolist()] for row in rows]
    heads = ("node", *(str(column) for column in range(min(_SHOWN, rows.shape[1]))))
    print_table("", heads, [(n, *row) for n, row in zip(ids, numbers, strict=True)])
