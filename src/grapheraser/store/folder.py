"""The folder of a run: which files belong to it, who may change it, and what must leave it."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from filelock import FileLock, Timeout

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
# Raise the version when the content changes its meaning, not only its shape.
FORMAT, VERSION = "grapheraser-run", 4

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
    """Every file that a manifest names, at any depth, with its digest."""
    if isinstance(manifest, list):
        return {name: digest for part in manifest for name, digest in named_files(part).items()}
    if not isinstance(manifest, dict):
        return {}
    file, digest = manifest.get("file"), manifest.get("sha256")
    own = {file: digest} if isinstance(file, str) and isinstance(digest, str) else {}
    return own | named_files(list(manifest.values()))


def is_part(name: str) -> bool:
    """Whether a run can have a file of this name, relative to its folder."""
    return _PART.fullmatch(name) is not None


# -- the files in it ----------------------------------------------------------------------------


@dataclass(frozen=True)
class FoundFile:
    """Something in a run's folder, whether the run names it or not.

    Attributes:
        name: relative to the folder.
        kind: a plain file, a link, or something else such as a socket.
        content: of a plain file.
    """

    name: str
    kind: Literal["file", "link", "other"]
    content: bytes = b""


def found_files(path: Path) -> Iterator[FoundFile]:
    """Read everything in a run's folder, hidden files included, in the order of the names."""
    for name in sorted(_files(path)):
        file = path / name
        if file.is_symlink():
            yield FoundFile(name, "link")
        elif not file.is_file():
            yield FoundFile(name, "other")
        else:
            try:
                yield FoundFile(name, "file", file.read_bytes())
            except OSError as error:
                raise StoreError(f"can't read {file}: {error.strerror}.") from error


def stray_files(path: Path) -> list[str]:
    """Files in a run's folder that its manifest doesn't name; they may hold forgotten data."""
    found = set(_files(path)) - _known(path)
    if found and os.access(path, os.W_OK):
        with hold(path):  # a save in progress has such files too
            found = set(_files(path)) - _known(path)
    return sorted(found)


def sweep(path: Path) -> None:
    """Remove what a save wrote and the manifest doesn't name: forgotten data, a crash's leftovers.

    Keeps files whose names no save would choose. Keeps everything when the manifest can't be read
    or names a missing file, since then it can't say which files belong to the run.
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
    lock: FileLock

    def check(self, path: Path) -> None:
        """Raise an error where the lock is of another run, or was released."""
        if not self.lock.is_locked or self.path.resolve() != path.resolve():
            raise StoreError(f"{path}: the given lock is of {self.path}, or no longer held.")


@contextmanager
def locked(path: Path) -> Iterator[RunLock]:
    """Hold the only right to change a run, and remove what a crash has left in it."""
    read_manifest(path)
    with hold(path) as lock:
        sweep(path)
        yield lock


@contextmanager
def hold(path: Path) -> Iterator[RunLock]:
    """Lock a folder, whether it holds a run yet or not; fails at once where it is locked."""
    file = path / LOCK
    # A mere marker file in place of a lock of the system would outlive a crash.
    lock = FileLock(file, blocking=False, thread_local=False, fallback_to_soft=False)
    try:
        if os.path.lexists(file) and not stat.S_ISREG(os.lstat(file).st_mode):
            raise StoreError(
                f"can't lock {path}: {LOCK} is not a plain file.", hint="remove it and try again."
            )
        held = lock.acquire()
    except Timeout:
        raise RunBusyError(
            f"{path}: another process is changing this run.", hint="try again when it is done."
        ) from None
    except OSError as error:
        raise StoreError(f"can't lock {path}: {error.strerror}.") from error
    with held:
        yield RunLock(path, lock)


def check_target(path: Path, receipts: Sequence[Receipt] = (), *, replace: bool = False) -> None:
    """Raise an error where a run can't be saved, or where saving it would lose something.

    Accepts a folder that does not exist yet, an empty one, one where a first save crashed, and a
    run whose receipts are the first of ``receipts``; with ``replace`` any run, even one that is
    damaged or of another version.
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
    """Whether a folder is neither a run nor what a crashed first save left."""
    try:
        manifest = json.loads((path / MANIFEST).read_text())
    except (OSError, ValueError):
        return any(name not in (MANIFEST, LOCK) and not _is_ours(name) for name in _files(path))
    return not isinstance(manifest, dict) or manifest.get("format") != FORMAT
