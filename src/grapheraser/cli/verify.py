"""grapheraser verify: retrain from the remaining data and compare bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.audit.residues.search import Search

NAME = "verify"


def run(
    path: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also search every file of the run for forgotten data."),
    ] = False,
    forgotten: Annotated[
        Path | None,
        typer.Option(help="With --deep: file of forgotten nodes, edges and feature rows."),
    ] = None,
    trust: TrustOption = None,
    json: JsonOption = False,
) -> None:
    """Retrain from the remaining data and compare bit for bit.

    Fails on stray files in the folder as well: they may hold forgotten data.
    """
    from grapheraser.links.loading import load_eraser
    from grapheraser.store import stray_files

    if forgotten is not None and not deep:
        raise ParameterError("--forgotten needs --deep.", hint="add --deep.")
    eraser = load_eraser(path, **own_parts(path, trust))
    strays = stray_files(path)
    result = eraser.verify()
    search = _searched(path, forgotten) if deep else None
    if json:
        found = {} if search is None else {"deep": search.to_dict()}
        print_json({"run": str(path), **result.to_dict(), "strays": strays, **found})
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
        elif strays:
            _print_strays(strays)
    if not result.identical or strays or (search is not None and not search.clean):
        raise typer.Exit(1)


def _print_strays(strays: list[str]) -> None:
    for name in strays:
        say(f"stray: {name} is no file of the run and may hold forgotten data")
    print(f"strays: {len(strays)} FILES")
    say("\nhint: delete them and verify again; the next change deletes leftovers of a crash.")


def _searched(path: Path, forgotten: Path | None) -> Search:
    from grapheraser.audit.residues.forgotten import Forgotten
    from grapheraser.audit.residues.search import search_run

    return search_run(path, None if forgotten is None else Forgotten.read(forgotten))


def _print_search(search: Search) -> None:
    for note in search.notes:
        say(f"note: {note}")
    for residue in search.residues:
        say(f"found: {residue.kind} in {residue.file}: {residue.what}")
    print(f"searched    {search.files} files, {search.size:,} bytes in {duration(search.seconds)}")
    print(f"deep: {'nothing left' if search.clean else f'{len(search.residues)} RESIDUES'}")
