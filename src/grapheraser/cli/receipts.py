"""grapheraser receipt, receipts, keys: receipts of a run, those handed out, and who signs them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from grapheraser.cli.arguments import read_file, read_key, read_line
from grapheraser.cli.options import RunArgument
from grapheraser.cli.output import (
    answered,
    print_json,
    print_line,
    print_rows,
    print_table,
    report_error,
    say,
    wants_json,
)
from grapheraser.errors import ParameterError, VerificationError
from grapheraser.reports.wording import contents, plural
from grapheraser.untrusted import MAX_JSON, MAX_WEIGHTS, read_plain

if TYPE_CHECKING:
    from grapheraser.receipts import Ends, Receipt, Receipts
    from grapheraser.receipts.checking import Checked
    from grapheraser.receipts.keys import PublicKey
    from grapheraser.receipts.part import Part

    Answer: TypeAlias = tuple[Path, Checked | VerificationError]


# Exit status of `receipt verify` where nothing is wrong, and not all is shown.
UNSHOWN_STATUS = 3


class Action(StrEnum):
    """An action of `grapheraser receipt`."""

    VERIFY = "verify"
    PAGE = "page"


def receipt(
    action: Annotated[Action, typer.Argument(metavar="verify|page")],
    files: Annotated[list[Path], typer.Argument(metavar="FILE...")],
    key: list[Path] | None = None,
    checkpoint: Path | None = None,
    run: Path | None = None,
    witness_key: list[str] | None = None,
    quorum: Annotated[int | None, typer.Option(min=1)] = None,
    out: Path | None = None,
) -> None:
    """Verify receipts offline, or make a page of them that can be printed.

    Verifying needs the standard library and the package cryptography alone. The exit status is 3
    where nothing is wrong, but a receipt does not show that what it is about is gone: only those of
    nodes do.

    Options:
        action: What to do.
        files: Receipts that were handed out: parts, or bundles of them.
        key: With verify: the operator's public key (PEM, or one line), repeated for several.
        checkpoint: With verify: a checkpoint of the log that was kept elsewhere.
        run: With verify: folder of the published run, to check its weights.
        witness_key: With verify: the key of a witness that must have cosigned the log, as a line or
            in a file; repeat for several.
        quorum: With verify: how many of the witnesses must have; default all.
        out: With page: the file to write.
    """
    if action is Action.PAGE:
        if key or checkpoint or run or witness_key or quorum:
            raise ParameterError(
                "--key, --checkpoint, --run, --witness-key and --quorum are of `receipt verify`."
            )
        _write_page([part for file in files for part in _read_parts(file)], out)
        return
    if out is not None:
        raise ParameterError("--out is of `receipt page`.")
    from grapheraser.receipts.checking import check_part
    from grapheraser.receipts.witness import WitnessKey

    if not key:
        raise ParameterError(
            "'receipt verify' needs --key: a signature shows nothing unless it is known whose.",
            hint="get the public key from the operator, who makes the file with "
            "`grapheraser keys --export FILE`.",
        )
    witnesses = [WitnessKey.read(read_line(one)) for one in witness_key or ()]
    if quorum is not None and quorum > len(witnesses):
        raise ParameterError(f"--quorum {quorum} needs as many --witness-key.")
    check = partial(check_part, witnesses=witnesses, quorum=quorum)
    answers = list(_answers(files, [read_key(one) for one in key], checkpoint, run, check))
    told = [_as_dict(file, found) for file, found in answers]
    if not answered({"valid": all(one["valid"] for one in told), "receipts": told}):
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


def _write_page(parts: Sequence[Part], out: Path | None) -> None:
    from grapheraser.reports.pages.receipt import receipt_page
    from grapheraser.store import write_text

    if out is None:
        raise ParameterError("'receipt page' needs --out.", hint="name the HTML file to write.")
    write_text(out, receipt_page(parts))
    if not answered({"page": str(out)}):
        print_line(f"page        {out}")


def receipts(
    path: RunArgument,
    show: int | None = None,
    export: int | None = None,
    checkpoint: bool = False,
    prove: Path | None = None,
    since: Annotated[Path | None, typer.Option(metavar="CHECKPOINT")] = None,
    key: list[Path] | None = None,
    out: Path | None = None,
) -> None:
    """List the receipts of a run, show or export one, or export the log's checkpoint.

    Options:
        show: Number of a receipt to print.
        export: Number of a receipt whose envelope to write, to --out.
        checkpoint: Write the log's signed checkpoint, to --out.
        prove: A receipt that was handed out: show where it is in the log as it is.
        since: A checkpoint that was kept elsewhere: check that the log has only grown since, and
            list what is new.
        key: The operator's public key, for --since; default: those of this machine.
        out: File to write; default: print.
    """
    from grapheraser.store import load_receipts

    chosen = [show is not None, since is not None, export is not None, checkpoint, bool(prove)]
    if sum(chosen) > 1:
        raise ParameterError("choose one of --show, --since, --export, --checkpoint and --prove.")
    if out is not None and not any(chosen[2:]):
        raise ParameterError("--out is of --export, --checkpoint and --prove.")
    if key and since is None:
        raise ParameterError("--key is of --since.")
    found, ends = load_receipts(path)
    if export is not None:
        _give(_numbered(found, export).to_json() + "\n", out)
    elif checkpoint:
        _give(_checkpoint(ends), out)
    elif prove is not None:
        _give(_proved(prove, found, ends), out)
    elif show is not None:
        shown = _numbered(found, show)
        print_json({"receipt": shown.to_dict(), "digest": shown.digest})
    else:
        old = 0 if since is None else _size_at(since, key or (), found, ends)
        _list(found[old:], ends)
        if since is not None and not wants_json():
            size = plural(old, "entry")
            print_line(f"consistent  the log has grown from {size}, as the checkpoint says")


def _size_at(file: Path, given: Sequence[Path], receipts: Receipts, ends: Ends) -> int:
    """Return the size of the log at a checkpoint; raise an error unless it has only grown since."""
    from grapheraser.receipts import check_against, check_chain
    from grapheraser.receipts.checking import check_signatures, is_signed
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


def _give(text: str, out: Path | None) -> None:
    from grapheraser.store import write_text

    if out is not None:
        write_text(out, text)
    if answered({"content": text} if out is None else {"file": str(out)}):
        return
    if out is None:
        for line in text.removesuffix("\n").split("\n"):
            print_line(line)
    else:
        print_line(f"written     {out}")


def _list(receipts: Sequence[Receipt], ends: Ends) -> None:
    found = list(receipts)
    listed = [{"digest": receipt.digest, **receipt.to_dict()} for receipt in found]
    if answered({"run": ends.run, "receipts": listed, "checkpoint": ends.checkpoint}):
        return
    rows = []
    for one in found:
        about = contents(one.counts) or "everything"
        signed = ", ".join(signature.key for signature in one.signatures) or "unsigned"
        rows.append((one.sequence, one.completed_at, one.action, about, one.statement, signed))
    header = ("receipt", "completed", "action", "about", "statement", "signed by")
    print_table("", header, rows)
    print_line(f"log         {ends.run}, {plural(ends.receipts, 'entry')}")


def keys(
    rotate: bool = False,
    export: Path | None = None,
) -> None:
    """List the keys that sign receipts, make a new one, or export the public half.

    They lie in GRAPHERASER_KEYS, encrypted where GRAPHERASER_KEY_PASSPHRASE is set. The first one
    is made when it is first needed.

    Options:
        rotate: Make a new key; from now on it signs.
        export: File to write the public key that signs to (PEM).
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
    found, rows = [], []
    for r in records:
        known = {"id": r.id, "file": str(r.path)}
        found.append(known | {"signs": r.is_current, "encrypted": r.is_encrypted})
        private = "encrypted" if r.is_encrypted else "not encrypted"
        rows.append((r.id, "yes" if r.is_current else "no more", private, r.path))
    written = None if public is None else {"file": str(export), "id": public.id}
    whole = {"folder": str(folder.path), "keys": found, "made": made, "exported": written}
    if answered(whole):
        return
    if public is not None:
        print_rows({"public key": export, "of key": f"{public.id}, which signs"}, 12)
        return
    print_table("", ("key", "signs", "private half", "public half"), rows)
