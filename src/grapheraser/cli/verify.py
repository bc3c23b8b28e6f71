"""grapheraser verify: train again from what is left, and compare bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.output import JsonOption, duration, print_json, say
from grapheraser.errors import ParameterError

if TYPE_CHECKING:
    from grapheraser.audit.residue import Search

NAME = "verify"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also search every file of the run for what should be gone."),
    ] = False,
    forgotten: Annotated[
        Path | None,
        typer.Option(help="With --deep: file of forgotten ids, ties and rows to search for."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Replay the run from its remaining data and compare every tensor bit for bit."""
    from grapheraser.eraser import GraphEraser

    if forgotten is not None and not deep:
        raise ParameterError("--forgotten says what --deep searches for.", hint="add --deep.")
    result = GraphEraser.load(path).verify()
    search = _searched(path, forgotten) if deep else None
    if json:
        found = {} if search is None else {"deep": search.to_dict()}
        print_json({"run": str(path), **result.to_dict(), **found})
    else:
        for note in result.notes:
            say(f"note: {note}")
        for difference in result.differences:
            say(f"differs: {difference}")
        print(
            f"compared    {result.tensors} tensors, {result.values:,} values, "
            f"{result.receipts} receipts in {duration(result.seconds)}"
        )
        print(f"verified: {'bit-identical' if result.identical else 'NOT identical'}")
        if search is not None:
            _print_search(search)
    if not result.identical or (search is not None and not search.clean):
        raise typer.Exit(1)


def _searched(path: Path, forgotten: Path | None) -> Search:
    from grapheraser.audit.forgotten import Forgotten
    from grapheraser.audit.residue import search_run

    return search_run(path, None if forgotten is None else Forgotten.read(forgotten))


def _print_search(search: Search) -> None:
    for note in search.notes:
        say(f"note: {note}")
    for residue in search.residues:
        say(f"found: {residue.kind} in {residue.file}: {residue.what}")
    print(f"searched    {search.files} files, {search.size:,} bytes in {duration(search.seconds)}")
    print(f"deep: {'nothing left' if search.clean else f'{len(search.residues)} RESIDUES'}")
