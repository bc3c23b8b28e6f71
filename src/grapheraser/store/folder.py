"""The folder of a run: which files are whose, who may change it, and what has to leave it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from grapheraser.errors import (
    CorruptRunError,
    ReceiptLossError,
    RunBusyError,
    RunNotFoundError,
    RunVersionError,
    StoreError,
)
from grapheraser.receipts import Receipt
from grapheraser.store.files import TEMPORARY, sync_folder

MANIFEST, LOCK = "run.json", ".lock"
FOLDERS = ("shards", "receipts")
# Raise it when what is kept changes its meaning, not only its shape.
FORMAT, VERSION = "grapheraser-run", 3

_HEX = "[0-9a-f]{20}"
_PART = re.compile(
    rf"(graph|partition)-{_HEX}\.npz|(aggregator-|shards/){_HEX}\.safetensors"
    rf"|receipts/\d{{6,}}-{_HEX}\.json"
)
_LEFTOVER = re.compile(rf"(run\.json|{_PART.pattern})(\.[0-9a-f]{{8}})?{re.escape(TEMPORARY)}")
_OVERWRITE = "overwrite it with `grapheraser fit --replace`, or save(..., replace=True)."


# -- the manifest -------------------------------------------------------------------------------


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a run in this version of the format."""
    manifest = _any_manifest(path)
    if manifest.get("version") != VERSION:
        raise RunVersionError(
            f"{path}: written in version {manifest.get('version')} of the format; this is version "
            f"{VERSION}.",
            hint=f"use the release of grapheraser that wrote it, or {_OVERWRITE}",
        )
    return manifest


def _any_manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except (FileNotFoundError, NotADirectoryError):
        raise RunNotFoundError(
            f"{path}: there is no run here ({MANIFEST} is missing).",
            hint="grapheraser fit DATASET --out RUN makes one.",
        ) from None
    except (OSError, ValueError) as error:
        raise CorruptRunError(
            f"{path / MANIFEST}: not readable ({error}).", hint=f"restore it, or {_OVERWRITE}"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise CorruptRunError(f"{path / MANIFEST}: not the manifest of a run.")
    return manifest


def named_files(manifest: Any) -> dict[str, str]:
    """Every file that a manifest names, with its digest, wherever in the manifest it does."""
    if isinstance(manifest, list):
        return {name: digest for part in manifest for name, digest in named_files(part).items()}
    if not isinstance(manifest, dict):
        return {}
    file, digest = manifest.get("file"), manifest.get("sha256")
    own = {file: digest} if isinstance(file, str) and isinstance(digest, str) else {}
    return own | named_files(list(manifest.values()))


def is_part(name: str) -> bool:
    """Whether a file of a run can have this name, relative to its folder."""
    return _PART.fullmatch(name) is not None


# -- files that nobody names --------------------------------------------------------------------


def stray_files(path: Path) -> list[str]:
    """Files in a run's folder that its manifest doesn't name; forgotten data may be in them."""
    found = set(_files(path)) - _known(path)
    if found and os.access(path, os.W_OK):
        with hold(path):  # a save that is under way has such files too
            found = set(_files(path)) - _known(path)
    return sorted(found)


def sweep(path: Path) -> None:
    """Remove what a save wrote and the manifest doesn't name: forgotten data, a crash's leftovers.

    What is not called like a file of ours stays. So does everything when the manifest can't be
    read or names a file that isn't there: then nobody knows what is whose.
    """
    try:
        known = _known(path)
    except CorruptRunError:
        return
    gone = [path / name for name in sorted(set(_files(path)) - known) if _is_ours(name)]
    if not gone or not all((path / name).exists() for name in known - {MANIFEST, LOCK}):
        return
    sync_folder(path)  # a power cut must not bring back the manifest that names them
    for file in gone:
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(
                f"can't remove {file}, which may hold forgotten data: {error.strerror}."
            ) from error
    for folder in sorted({file.parent for file in gone}):
        sync_folder(folder)


def _known(path: Path) -> set[str]:
    manifest = _any_manifest(path) if (path / MANIFEST).exists() else {}
    return {MANIFEST, LOCK, *named_files(manifest)}


def _files(path: Path) -> Iterator[str]:
    for file in path.rglob("*"):
        if file.is_symlink() or not file.is_dir():
            yield file.relative_to(path).as_posix()


def _is_ours(name: str) -> bool:
    return is_part(name) or _LEFTOVER.fullmatch(name) is not None


# -- who may write ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class RunLock:
    """The right to change the run in ``path``, while `locked` holds it."""

    path: Path
    file: IO[str]

    def check(self, path: Path) -> None:
        """Refuse to stand for another run, or for a session that is over."""
        if self.file.closed or self.path.resolve() != path.resolve():
            raise StoreError(f"{path}: the given lock is of {self.path}, or no longer held.")


@contextmanager
def locked(path: Path) -> Iterator[RunLock]:
    """Hold the only right to change a run, and clear away what a crash has left in it."""
    read_manifest(path)
    with hold(path) as lock:
        sweep(path)
        yield lock


@contextmanager
def hold(path: Path) -> Iterator[RunLock]:
    """Lock a folder, whether it is a run yet or not; a second process is told so at once."""
    import fcntl

    with _lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunBusyError(
                f"{path}: another process is changing this run.", hint="try again when it is done."
            ) from None
        except OSError as error:  # a file system without locks
            raise StoreError(f"can't lock {path}: {error.strerror}.") from error
        yield RunLock(path, file)


def _lock_file(path: Path) -> IO[str]:
    try:
        return open(path / LOCK, "w")
    except OSError as error:
        raise StoreError(f"can't lock {path}: {error.strerror}.") from error


def check_target(path: Path, receipts: Sequence[Receipt] = (), *, replace: bool = False) -> None:
    """Refuse a folder that a run can't be saved to, or that would lose something by it.

    Good are a folder that does not exist yet, an empty one, one where a first save crashed, and a
    run whose receipts are the first of ``receipts``; with ``replace`` any run at all, also one that
    is damaged or of another version.
    """
    there = next(place for place in (path, *path.parents) if os.path.exists(place))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise StoreError(f"can't make the folder {path}: can't write to {there}.")
    if there == path and _holds_something_else(path):
        raise StoreError(f"{path} holds something that is not a run; choose another folder.")
    if replace or not (path / MANIFEST).exists():
        return
    files = named_files(read_manifest(path))
    kept = [digest for name, digest in files.items() if name.startswith("receipts/")]
    if kept != [receipt.digest for receipt in receipts[: len(kept)]]:
        raise ReceiptLossError(
            f"{path}: the run there has receipts ({len(kept)} in all) that would be lost, and what "
            "they forgot could come back.",
            hint=f"load the run again and repeat the request on it, or {_OVERWRITE}",
        )


def _holds_something_else(path: Path) -> bool:
    """Whether a folder is neither a run nor what a first save left that crashed."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except (OSError, ValueError):
        return any(name not in (MANIFEST, LOCK) and not _is_ours(name) for name in _files(path))
    return not isinstance(manifest, dict) or manifest.get("format") != FORMAT
