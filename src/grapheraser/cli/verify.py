"""grapheraser verify: retrain from the remaining data and compare bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from grapheraser.cli.arguments import read_file
from grapheraser.cli.options import ExecutorOption
from grapheraser.cli.output import JsonOption, print_json, say
from grapheraser.cli.own import TrustOption, own_parts
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration

if TYPE_CHECKING:
    from grapheraser.audit.residues.search import Search
    from grapheraser.receipts import Receipt

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
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="A checkpoint that was kept elsewhere: was the log rewritten since?"),
    ] = None,
    key: Annotated[
        Path | None,
        typer.Option(help="With --checkpoint: its public key; default: those of this machine."),
    ] = None,
    executor: ExecutorOption = "local",
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
    if key is not None and checkpoint is None:
        raise ParameterError("--key needs --checkpoint.", hint="add --checkpoint FILE.")
    eraser = load_eraser(path, executor=executor, **own_parts(path, trust))
    begins = None if checkpoint is None else _begins(eraser.receipts_, checkpoint, key)
    strays = stray_files(path)
    result = eraser.verify()
    search = _searched(path, forgotten) if deep else None
    if json:
        found = {} if search is None else {"deep": search.to_dict()}
        found |= {} if begins is None else {"checkpoint": begins}
        print_json({"run": str(path), **result.to_dict(), "strays": strays, **found})
    else:
        for note in result.notes:
            say(f"note: {note}")
        for difference in result.differences:
            say(f"differs: {difference}")
        print(
            f"compared    {result.tensors} tensors, {result.values:,} values, "
            f"{result.receipts} receipt{'s' * (result.receipts != 1)} in {duration(result.seconds)}"
        )
        print(f"verified: {'bit-identical' if result.identical else 'NOT identical'}")
        if begins is not None:
            print(f"checkpoint: {begins['wrong'] or 'the log begins as it did'}")
        if search is not None:
            _print_search(search)
        elif strays:
            _print_strays(strays)
    rewritten = begins is not None and begins["wrong"] is not None
    if not result.identical or rewritten or strays or (search is not None and not search.clean):
        raise typer.Exit(1)


def _begins(receipts: Sequence[Receipt], checkpoint: Path, key: Path | None) -> dict[str, Any]:
    """Whether the log begins as a checkpoint says, and in words what is wrong otherwise."""
    from grapheraser.errors import CorruptRunError, VerificationError
    from grapheraser.receipts import check_against
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.store.keys import known_keys

    note = read_file(checkpoint).decode(errors="replace")
    keys = known_keys() if key is None else [PublicKey.read(read_file(key).decode())]
    wrong = "there is no key here to check it with."
    for verifier in keys:
        try:
            kept = check_against(list(receipts), note, verifier)
            return {"size": kept.size, "run": kept.origin, "wrong": None}
        except (VerificationError, CorruptRunError) as error:
            wrong = error.message
            if "not signed by" not in wrong:
                break
    return {"size": None, "run": None, "wrong": wrong}


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
