"""The folder of a run: which files belong to it, who may change it, and what must leave it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from filelock import FileLock, Timeout

from grapheraser.errors import (
    CorruptRunError,
    ReceiptLossError,
    RunBusyError,
    RunExistsError,
    StoreError,
)
from grapheraser.receipts import Receipt, Receipts
from grapheraser.store.files import MAX_FILE, PRIVATE_FILE, flush, remove
from grapheraser.store.manifest import (
    FORMAT,
    LOCK,
    MANIFEST,
    MARKER,
    OVERWRITE,
    chain_ends,
    check_folders,
    is_ours,
    is_part,
    known_names,
    read_manifest,
)
from grapheraser.untrusted import MAX_JSON, escaped, parse_json, read_plain

# In the configuration of a run: where its receipts begin and end.
HISTORY = "history"
_MAX_DEPTH = 16  # folders within one another; a run has one below its own
_MAX_STRAY = 2**30  # bytes of a file to be searched that no run has
_NEW: Mapping[str, Any] = MappingProxyType({})

# -- the files in it ----------------------------------------------------------------------------


@dataclass(frozen=True)
class FoundFile:
    """Something in a run's folder, whether the run names it or not."""

    name: str  # relative to the folder, in printable characters
    # A plain file, a link, one that is too large to be read, or something else such as a socket.
    kind: Literal["file", "link", "large", "other"]
    content: bytes = b""  # of a plain file


def found_files(path: Path) -> Iterator[FoundFile]:
    """Read everything in a run's folder, hidden files included, in the order of the names."""
    for found in sorted(_files(path)):
        file, name = path / found, escaped(found)
        if file.is_symlink():
            yield FoundFile(name, "link")
        elif not file.is_file():
            yield FoundFile(name, "other")
        else:
            limit = MAX_FILE if is_part(found) else _MAX_STRAY
            try:
                yield FoundFile(name, "file", read_plain(file, limit) or b"")
            except CorruptRunError:
                yield FoundFile(name, "large")
            except OSError as error:
                raise StoreError(f"can't read {file}: {error.strerror}.") from error


def stray_files(path: Path) -> list[str]:
    """Files in a run's folder that are not the run's; they may hold forgotten data.

    Their names are in printable characters: whoever made a file has chosen its name.
    """
    found = _strays(path)
    if found and os.access(path, os.W_OK):
        with hold(path):  # a save in progress has such files too
            found = _strays(path)
    return sorted(map(escaped, found))


def sweep(path: Path) -> None:
    """Remove what a save wrote and the run doesn't name: forgotten data, a crash's leftovers.

    Keeps files whose names no save would choose. Keeps everything when the manifest can't be read
    or names a missing file, since then it can't say which files belong to the run.
    """
    found = set(_files(path))
    try:
        known = _known(path, found)
    except StoreError:
        return
    if not known <= found:
        return
    gone = sorted(name for name in found - known if is_ours(name) and name != MARKER)
    if gone:
        flush([path])  # a power cut must not bring back the manifest that names them
        remove([path / name for name in gone])
    unmark(path)


def mark(path: Path) -> None:
    """Say in a folder that a save is under way; unless `unmark` follows, the next writer sweeps."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        os.close(os.open(path / MARKER, flags, PRIVATE_FILE))
    except OSError as error:
        raise StoreError(f"can't write {path / MARKER}: {error.strerror}.") from error


def unmark(path: Path) -> None:
    """Say that the save is done, and that nothing is left of it."""
    (path / MARKER).unlink(missing_ok=True)


def is_marked(path: Path) -> bool:
    """Tell whether a save did not finish."""
    return os.path.lexists(path / MARKER)


def _strays(path: Path) -> set[str]:
    found = set(_files(path))
    return found - _known(path, found) - {LOCK}


def _known(path: Path, found: set[str]) -> set[str]:
    """The names of the files of the run; none where there is no run."""
    if MANIFEST not in found:
        return set()
    return {MANIFEST, *known_names(path, read_manifest(path), found)}


def _files(path: Path) -> Iterator[str]:
    """The names of all files below a folder, and of folders that are nested too deeply."""
    waiting = [""]
    while waiting:
        above = waiting.pop()
        try:
            with os.scandir(path / above) as entries:
                for entry in entries:
                    name = above + entry.name
                    deep = name.count("/") >= _MAX_DEPTH
                    if entry.is_dir(follow_symlinks=False) and not deep:
                        waiting.append(f"{name}/")
                    else:
                        yield name
        except OSError as error:
            raise StoreError(f"can't list {path / above}: {error.strerror}.") from error


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
    lock = FileLock(
        file, mode=PRIVATE_FILE, blocking=False, thread_local=False, fallback_to_soft=False
    )
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


def check_target(
    path: Path,
    receipts: Sequence[Receipt] = (),
    configuration: Mapping[str, Any] = _NEW,
    *,
    replace: bool = False,
) -> None:
    """Raise an error where a run can't be saved, or where saving it would lose something.

    Accepts a folder that does not exist yet, an empty one, one where a first save crashed, and an
    earlier state of the same run; with ``replace`` any run, even one that is damaged or of another
    version.

    ``receipts`` and ``configuration`` are of the run to be saved; a new run has none.
    """
    there = next(place for place in (path, *path.parents) if os.path.exists(place))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise StoreError(f"can't make the folder {path}: can't write to {there}.")
    if there == path:
        check_folders(path)
        if _holds_something_else(path):
            raise StoreError(f"{path} holds something that is not a run; choose another folder.")
    if replace or not (path / MANIFEST).exists():
        return
    manifest = read_manifest(path)
    count, _ = chain_ends(path, manifest)
    if not continues(path, manifest, receipts):
        raise ReceiptLossError(
            f"{path}: the run there has receipts ({count} in all) that would be lost, and what "
            "they forgot could come back.",
            hint=f"load the run again and repeat the request on it, or {OVERWRITE}",
        )
    if count == 0 and not _begins_alike(manifest["configuration"], configuration, len(receipts)):
        raise RunExistsError(f"{path}: holds another run.", hint=f"choose another, or {OVERWRITE}")


def continues(path: Path, manifest: dict[str, Any], receipts: Sequence[Receipt]) -> bool:
    """Tell whether the receipts of the run in a folder are the first of these."""
    count, head = chain_ends(path, manifest)
    ours = Receipts.of(receipts)
    return count == 0 or (count <= len(ours) and ours.digest(count) == head)


def _begins_alike(kept: Mapping[str, Any], ours: Mapping[str, Any], changes: int) -> bool:
    """Tell whether a run without receipts, by its configuration, is where another began.

    Resharding changes the settings, so after a change the graph that was fitted has to tell.
    """
    names = ("fitted",) if changes else ("fitted", "configuration")
    first, second = (part.get(HISTORY) for part in (kept, ours))
    if not isinstance(first, dict) or not isinstance(second, dict):
        return False
    return all(name in first and first[name] == second.get(name) for name in names)


def _holds_something_else(path: Path) -> bool:
    """Tell whether a folder is neither a run nor what a crashed first save left."""
    try:
        manifest = parse_json(read_plain(path / MANIFEST, MAX_JSON) or b"")
    except (OSError, ValueError, CorruptRunError):
        return any(name not in (MANIFEST, LOCK) and not is_ours(name) for name in _files(path))
    return not isinstance(manifest, dict) or manifest.get("format") != FORMAT
