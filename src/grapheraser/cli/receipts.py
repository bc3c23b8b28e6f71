"""grapheraser receipt, receipts, keys: receipts of a run, those handed out, and who signs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from grapheraser.cli.arguments import read_file, read_key, read_line
from grapheraser.cli.options import JsonOption, RunArgument
from grapheraser.cli.output import (
    print_json,
    print_line,
    print_rows,
    print_table,
    report_error,
    say,
)
from grapheraser.errors import ParameterError, VerificationError
from grapheraser.reports.wording import contents, plural
from grapheraser.untrusted import MAX_JSON, MAX_WEIGHTS, read_plain

if TYPE_CHECKING:
    from grapheraser.receipts import Ends, Receipt, Receipts
    from grapheraser.receipts.checking import Checked
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.receipts.part import Part
    from grapheraser.receipts.witness import WitnessKey

    Answer: TypeAlias = tuple[Path, Checked | VerificationError]


# Exit status of `receipt verify` where nothing is wrong, and not all is shown.
UNSHOWN_STATUS = 3


class Action(StrEnum):
    """An action of `grapheraser receipt`."""

    VERIFY = "verify"
    PAGE = "page"


def receipt(
    action: Annotated[Action, typer.Argument(metavar="verify|page", help="What to do.")],
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", help="Receipts that were handed out: parts, or bundles of them."
        ),
    ],
    key: Annotated[
        list[Path] | None,
        typer.Option(
            help="With verify: the operator's public key (PEM, or one line), repeated for several."
        ),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="With verify: a checkpoint of the log that was kept elsewhere."),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(help="With verify: folder of the published run, to check its weights."),
    ] = None,
    witness_key: Annotated[
        list[str] | None,
        typer.Option(
            help="With verify: the key of a witness that must have cosigned the log, as a line or "
            "in a file; repeat for several."
        ),
    ] = None,
    quorum: Annotated[
        int | None,
        typer.Option(min=1, help="With verify: how many of the witnesses must have; default all."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="With page: the file to write.")] = None,
    json: JsonOption = False,
) -> None:
    """Verify receipts offline, or make a page of them that can be printed.

    Verifying needs the standard library and the package cryptography alone. The exit status is 3
    where nothing is wrong, but a receipt does not show that what it is about is gone: only those of
    nodes do.
    """
    if action is Action.PAGE:
        if key or checkpoint or run or witness_key or quorum:
            raise ParameterError(
                "--key, --checkpoint, --run, --witness-key and --quorum are of `receipt verify`."
            )
        _write_page([part for file in files for part in _read_parts(file)], out, as_json=json)
        return
    if out is not None:
        raise ParameterError("--out is of `receipt page`.")
    from grapheraser.receipts.checking import check_part

    if not key:
        raise ParameterError(
            "'receipt verify' needs --key: a signature shows nothing unless it is known whose.",
            hint="get the public key from the operator, who makes the file with "
            "`grapheraser keys --export FILE`.",
        )
    witnesses = [_read_witness(one) for one in witness_key or ()]
    if quorum is not None and quorum > len(witnesses):
        raise ParameterError(f"--quorum {quorum} needs as many --witness-key.")
    check = partial(check_part, witnesses=witnesses, quorum=quorum)
    answers = list(_answers(files, [read_key(one) for one in key], checkpoint, run, check))
    told = [_as_dict(file, found) for file, found in answers]
    if json:
        print_json({"valid": all(one["valid"] for one in told), "receipts": told})
    else:
        _print_answers(answers)
    wrong = [(file, found) for file, found in answers if isinstance(found, VerificationError)]
    for file, error in wrong:
        named = VerificationError(f"{file}: {error.message}", hint=error.hint)
        report_error(named, as_json=False)
    if wrong:
        raise typer.Exit(1)
    if not all(one["valid"] for one in told):
        raise typer.Exit(UNSHOWN_STATUS)


def _read_parts(file: Path) -> list[Part]:
    from grapheraser.receipts import read_parts

    return read_parts(read_file(file).decode(errors="replace"))


def _answers(
    files: Sequence[Path],
    keys: Sequence[PublicKey],
    checkpoint: Path | None,
    published: Path | None,
    check: Callable[..., Checked],
) -> Iterator[Answer]:
    """Check all that can be checked of every part; each with the file that it is in."""
    note = None if checkpoint is None else read_file(checkpoint).decode(errors="replace")
    read = None if published is None else lambda name: _published(published, name)
    for file in files:
        try:
            parts = _read_parts(file)
        except VerificationError as error:
            yield file, error
            continue
        for part in parts:
            try:
                yield file, check(part, keys, note, read)
            except VerificationError as error:
                yield file, error


def _published(run: Path, name: str) -> bytes:
    """A file of a run that somebody else has made."""
    try:
        limit = MAX_JSON if name.endswith(".json") else MAX_WEIGHTS
        return read_plain(run / name, limit) or b""
    except OSError as error:
        raise ParameterError(f"can't read {run / name}: {error.strerror}.") from error


def _read_witness(given: str) -> WitnessKey:
    from grapheraser.receipts.witness import WitnessKey

    return WitnessKey.read(read_line(given))


def _as_dict(file: Path, found: Checked | VerificationError) -> dict[str, Any]:
    from grapheraser.receipts.checking import VALID

    if isinstance(found, VerificationError):
        return {"file": str(file), "valid": False, "wrong": found.message, "hint": found.hint}
    return {"file": str(file), "valid": found.verdict == VALID, **found.to_dict()}


def _print_answers(answers: Sequence[Answer]) -> None:
    valid = [found for _, found in answers if not isinstance(found, VerificationError)]
    for found in valid:
        signed = found.part.receipt
        rows = {
            "about": found.part.in_words,
            "statement": signed.statement,
            "": signed.exactness["reason"],
            "receipt": f"{signed.sequence} of {signed.run}, {signed.completed_at}",
        }
        print_rows(rows, 12)
        for line in found.lines:
            print_line(f"checked     {line}")
        print_line(f"receipt: {found.in_words}")
    if len(answers) > 1:
        print_line(f"receipts: {len(valid)} of {len(answers)} valid")


def _write_page(parts: Sequence[Part], out: Path | None, *, as_json: bool) -> None:
    from grapheraser.reports.pages.receipt import receipt_page
    from grapheraser.store import write_text

    if out is None:
        raise ParameterError("'receipt page' needs --out.", hint="name the HTML file to write.")
    write_text(out, receipt_page(parts))
    if as_json:
        print_json({"page": str(out)})
    else:
        print_line(f"page        {out}")


def receipts(
    path: RunArgument,
    show: Annotated[int | None, typer.Option(help="Number of a receipt to print.")] = None,
    export: Annotated[
        int | None, typer.Option(help="Number of a receipt whose envelope to write, to --out.")
    ] = None,
    checkpoint: Annotated[
        bool, typer.Option("--checkpoint", help="Write the log's signed checkpoint, to --out.")
    ] = False,
    prove: Annotated[
        Path | None,
        typer.Option(help="A receipt that was handed out: show where it is in the log as it is."),
    ] = None,
    since: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKPOINT",
            help="A checkpoint that was kept elsewhere: check that the log has only grown since, "
            "and list what is new.",
        ),
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            help="The operator's public key, for --since; default: those of this machine."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="File to write; default: print.")] = None,
    json: JsonOption = False,
) -> None:
    """List the receipts of a run, show or export one, or export the log's checkpoint."""
    from grapheraser.store import load_receipts

    chosen = [show is not None, since is not None, export is not None, checkpoint]
    chosen += [prove is not None]
    if sum(chosen) > 1:
        raise ParameterError("choose one of --show, --since, --export, --checkpoint and --prove.")
    if out is not None and not any(chosen[2:]):
        raise ParameterError("--out is of --export, --checkpoint and --prove.")
    if key and since is None:
        raise ParameterError("--key is of --since.")
    found, ends = load_receipts(path)
    if export is not None:
        _give(_numbered(found, export).to_json() + "\n", out, as_json=json)
    elif checkpoint:
        _give(_checkpoint(ends), out, as_json=json)
    elif prove is not None:
        _give(_proved(prove, found, ends), out, as_json=json)
    elif show is not None:
        shown = _numbered(found, show)
        print_json({"receipt": shown.to_dict(), "digest": shown.digest})
    else:
        old = 0 if since is None else _size_at(since, key or (), found, ends)
        _list(found[old:], ends, as_json=json)
        if since is not None and not json:
            size = plural(old, "entry")
            print_line(f"consistent  the log has grown from {size}, as the checkpoint says")


def _size_at(file: Path, given: Sequence[Path], receipts: Receipts, ends: Ends) -> int:
    """Return the size of the log at a checkpoint; raise an error unless it has only grown since."""
    from grapheraser.receipts import check_against, check_chain
    from grapheraser.receipts.signatures import check_signatures, is_signed
    from grapheraser.store.keys import known_keys

    note = read_file(file).decode(errors="replace")
    keys = [read_key(one) for one in given] or known_keys()
    if not keys:
        raise ParameterError(
            "'receipts --since' needs --key: there is no public key here to check the checkpoint."
        )
    check_chain(list(receipts), ends=ends)
    if given and (wrong := check_signatures(receipts, ends.checkpoint, keys).wrong):
        raise VerificationError(f"{wrong[0]}.")
    key = next((one for one in keys if is_signed(note, one)), keys[0])
    return check_against(list(receipts), note, key, ends.run).size


def _numbered(receipts: Receipts, number: int) -> Receipt:
    if not 1 <= number <= len(receipts):
        raise ParameterError(f"there is no receipt {number} (the run has {len(receipts)}).")
    return receipts[number - 1]


def _checkpoint(ends: Ends) -> str:
    if ends.checkpoint is None:
        raise ParameterError(
            "the log has no signed checkpoint: it is empty, or its last receipt is unsigned.",
            hint="in a checkout of GraphEraser: pip install '.[sign]'; what is forgotten next is "
            "signed then.",
        )
    return ends.checkpoint


def _proved(file: Path, receipts: Receipts, ends: Ends) -> str:
    from grapheraser.receipts import Part

    part = Part.from_json(read_file(file).decode(errors="replace"))
    return part.proved_in(list(receipts), ends.checkpoint).to_json() + "\n"


def _give(text: str, out: Path | None, *, as_json: bool) -> None:
    from grapheraser.store import write_text

    if out is not None:
        write_text(out, text)
    if as_json:
        print_json({"content": text} if out is None else {"file": str(out)})
    elif out is None:
        for line in text.removesuffix("\n").split("\n"):
            print_line(line)
    else:
        print_line(f"written     {out}")


def _list(receipts: Sequence[Receipt], ends: Ends, *, as_json: bool) -> None:
    found = list(receipts)
    if as_json:
        rows = [{"digest": receipt.digest, **receipt.to_dict()} for receipt in found]
        print_json({"run": ends.run, "receipts": rows, "checkpoint": ends.checkpoint})
        return
    print_table(
        "",
        ("receipt", "completed", "action", "about", "statement", "signed by"),
        [
            (
                receipt.sequence,
                receipt.completed_at,
                receipt.action,
                contents(receipt.counts) or "everything",
                receipt.statement,
                ", ".join(signature.key for signature in receipt.signatures) or "unsigned",
            )
            for receipt in found
        ],
    )
    print_line(f"log         {ends.run}, {plural(ends.receipts, 'entry')}")


def keys(
    rotate: Annotated[
        bool, typer.Option("--rotate", help="Make a new key; from now on it signs.")
    ] = False,
    export: Annotated[
        Path | None, typer.Option(help="File to write the public key that signs to (PEM).")
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the keys that sign receipts, make a new one, or export the public half.

    They lie in GRAPHERASER_KEYS, encrypted where GRAPHERASER_KEY_PASSPHRASE is set. The first one
    is made when it is first needed.
    """
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.store import write_text
    from grapheraser.store.keys import KeyFolder

    folder = KeyFolder()
    before = {record.id for record in folder.records()}
    if rotate:
        folder.rotate()
    public = None if export is None else PublicKey(folder.signing_key().public)
    if export is not None and public is not None:
        write_text(export, public.to_pem())
    records = folder.records()
    made = [record.id for record in records if record.id not in before]
    for name in made:
        say(f"note: made the signing key {name} in {folder.path}; it signs from now on.")
    if json:
        found = [
            {"id": r.id, "file": str(r.path), "signs": r.is_current, "encrypted": r.is_encrypted}
            for r in records
        ]
        written = None if public is None else {"file": str(export), "id": public.id}
        print_json({"folder": str(folder.path), "keys": found, "made": made, "exported": written})
        return
    if public is not None:
        print_line(f"public key  {export}")
        print_line(f"of key      {public.id}, which signs")
        return
    print_table(
        "",
        ("key", "signs", "private half", "public half"),
        [
            (
                record.id,
                "yes" if record.is_current else "no more",
                "encrypted" if record.is_encrypted else "not encrypted",
                record.path,
            )
            for record in records
        ],
    )
