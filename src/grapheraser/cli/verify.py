"""grapheraser verify, audit: retrain from the remaining data and compare; attack a run."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from grapheraser.cli.arguments import read_file, read_key
from grapheraser.cli.options import ExecutorOption, RunArgument, TrustOption
from grapheraser.cli.output import answered, print_line, print_rows, print_table, say, say_notes
from grapheraser.cli.own import load, own_parts
from grapheraser.errors import ParameterError
from grapheraser.reports.wording import duration, plural

if TYPE_CHECKING:
    from grapheraser.eraser import Eraser
    from grapheraser.eraser.verify import Verification
    from grapheraser.receipts.checking import Signatures
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.store.residues.search import Search

# Exit statuses where nothing is wrong: of `verify` where the replay can't be compared here, of
# `audit` where it put fewer questions than there are.
INCOMPARABLE = INCOMPLETE = 3


def verify(
    path: RunArgument,
    deep: bool = False,
    forgotten: Path | None = None,
    checkpoint: Path | None = None,
    key: list[Path] | None = None,
    executor: ExecutorOption = "local",
    trust: TrustOption = None,
) -> None:
    """Retrain from the remaining data and compare bit for bit.

    Fails on wrong signatures, and on stray files in the folder: they may hold forgotten data. Where
    there is no public key at all, signatures are not checked, and the output says so. The exit
    status is 3 where nothing is wrong but bits can't be compared: what trained the shards is not
    what is here.

    Options:
        deep: Also search every file of the run for forgotten data.
        forgotten: With --deep: file of forgotten nodes, edges and feature rows.
        checkpoint: A checkpoint that was kept elsewhere, to see whether the log only grew since.
        key: A public key of the operator, repeated for several: all receipts, the log and
            --checkpoint must be signed with them; default: the keys of this machine.
    """
    from grapheraser.store import stray_files

    if forgotten is not None and not deep:
        raise ParameterError("--forgotten needs --deep.", hint="add --deep.")
    keys = [read_key(file) for file in key] if key else None
    eraser = load(path, trust, executor)
    begins = None if checkpoint is None else _begins(eraser, checkpoint, keys)
    strays = stray_files(path)
    result = eraser.verify(keys)
    search = _searched(path, forgotten) if deep else None
    found = {} if search is None else {"deep": search.to_dict()}
    found |= {} if begins is None else {"checkpoint": begins}
    if not answered({"run": str(path), **result.to_dict(), "strays": strays, **found}):
        _print_result(result)
        _print_signatures(result.signatures, given=keys is not None)
        if begins is not None:
            print_line(f"checkpoint: {begins['wrong'] or 'the log begins as it did'}")
            if begins["hint"]:
                say(f"\nhint: {begins['hint']}")
        if search is not None:
            _print_search(search)
        elif strays:
            _print_strays(strays)
    rewritten = begins is not None and begins["wrong"] is not None
    wrong = bool(result.differences or result.signatures.wrong)
    if wrong or rewritten or strays or (search is not None and not search.clean):
        raise typer.Exit(1)
    if not result.identical:
        raise typer.Exit(INCOMPARABLE)


def _print_result(result: Verification) -> None:
    say_notes(result.notes)
    for difference in result.differences:
        say(f"differs: {difference}")
    if result.elsewhere is not None:
        say(f"files and receipts fit; bits depend on what trains: {result.elsewhere}")
    print_line(
        f"compared    {result.tensors} tensors, {result.values:,} values, "
        f"{plural(result.receipts, 'receipt')} in {duration(result.seconds)}"
    )
    print_line(f"verified: {result.verdict}")


def _print_signatures(found: Signatures, *, given: bool) -> None:
    for wrong in found.wrong:
        say(f"signature: {wrong}")
    print_line(f"signatures: {found.in_words}")
    if found.others and not given:
        say("\nhint: give the operator's public key: --key FILE (`grapheraser keys --export`).")


def _begins(eraser: Eraser, checkpoint: Path, given: Sequence[PublicKey] | None) -> dict[str, Any]:
    """Check whether the log begins as a checkpoint says; say what is wrong otherwise."""
    from grapheraser.errors import CorruptRunError, VerificationError
    from grapheraser.receipts import check_against
    from grapheraser.store.keys import known_keys

    note = read_file(checkpoint).decode(errors="replace")
    wrong, hint = "there is no key here to check it with.", "give the operator's: --key FILE."
    for verifier in known_keys() if given is None else given:
        try:
            kept = check_against(list(eraser.receipts_), note, verifier, eraser.log_name_)
            return {"size": kept.size, "run": kept.origin, "wrong": None, "hint": None}
        except (VerificationError, CorruptRunError) as error:
            wrong, hint = error.message, error.hint or ""
            if "not signed by" not in wrong:
                break
    return {"size": None, "run": None, "wrong": wrong, "hint": hint or None}


def _print_strays(strays: list[str]) -> None:
    for name in strays:
        say(f"stray: {name} is no file of the run and may hold forgotten data")
    print_line(f"strays: {len(strays)} FILES")
    say("\nhint: delete them and verify again; the next change deletes leftovers of a crash.")


def _searched(path: Path, forgotten: Path | None) -> Search:
    from grapheraser.store.residues.forgotten import Forgotten
    from grapheraser.store.residues.search import search_run

    return search_run(path, None if forgotten is None else Forgotten.read(forgotten))


def _print_search(search: Search) -> None:
    say_notes(search.notes)
    for residue in search.residues:
        say(f"found: {residue.kind} in {residue.file}: {residue.what}")
    print_line(
        f"searched    {search.files} files, {search.size:,} bytes in {duration(search.seconds)}"
    )
    print_line(f"deep: {'nothing left' if search.clean else f'{len(search.residues)} RESIDUES'}")


def audit(
    path: RunArgument,
    minutes: float = 3.0,
    out: Path | None = None,
    forgotten: Path | None = None,
    seed: int = 0,
    trust: TrustOption = None,
) -> None:
    """Verify, search and attack a run, and write a report.

    Options:
        minutes: Time limit of the attacks.
        out: Folder for the report; default RUN-audit.
        forgotten: File of forgotten nodes, edges and feature rows to search for.
        seed: Seed of the audit.
    """
    from grapheraser.audit.report import DATA, audit_run, report_folder
    from grapheraser.reports.pages.audit import audit_page
    from grapheraser.store import write_text
    from grapheraser.store.residues.forgotten import Forgotten

    folder = report_folder(path) if out is None else out
    if folder.resolve().is_relative_to(path.resolve()):
        raise ParameterError(
            f"{folder} is inside the run, where a report would be a stray file.",
            hint="choose another --out.",
        )
    sought = None if forgotten is None else Forgotten.read(forgotten)
    report = audit_run(
        path, minutes=minutes, forgotten=sought, seed=seed, say=say, own=own_parts(path, trust)
    )
    content = report.to_dict()
    page, data = folder / "index.html", folder / DATA
    write_text(page, audit_page(content))
    write_text(data, jsonlib.dumps(content, indent=1) + "\n")
    if not answered({**content, "page": str(page)}):
        rows = [(f.level, f.question) for f in report.findings]
        print_table("", ("result", "question"), rows)
        print_rows({"page": page, "data": data})
        for question in report.not_run:
            print_line(f"NOT RUN   {question}")
        missing = f"{plural(len(report.not_run), 'question')} NOT RUN; " if report.not_run else ""
        verdict = "every proof holds" if report.passed else "A PROOF FAILED"
        leaks = f"{plural(report.leaks, 'leak')} measured"
        print_line(f"audited: {missing}{verdict}; {leaks}; in {duration(report.seconds)}")
    if not report.passed:
        raise typer.Exit(1)
    if report.not_run:
        raise typer.Exit(INCOMPLETE)
