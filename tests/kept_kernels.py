"""Compiled kernels that all checkouts of a user share, so that a test run compiles little.

Where ``NUMBA_CACHE_DIR`` is not set, tests keep what they compile below ``grapheraser/tests`` in
the user's cache folder (``XDG_CACHE_HOME``, else ``~/.cache``), outside the checkout. A file there
is named after the kernel, a digest of its sources and of all that they import, the versions of
Python and numba, the processor and the types of the arguments (see
`grapheraser.kernels.compiled`), so that it is right wherever its name is asked for:

- ``checkouts`` holds a folder for each checkout, which its processes read and write. They remove
  from it what other states of the sources have left.
- ``pool`` holds what any checkout has compiled, as hard links, which nobody writes to.

A run begins with links to all of the pool and ends by adding to it. As a command, this compiles
what most tests use, before several processes of pytest would compile the same at the same time:

    python -m tests.kept_kernels
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path

_DAYS = 30  # then compiled anew: it bounds what states of the sources leave behind
_VARIABLE = "NUMBA_CACHE_DIR"


def choose_folder() -> Path | None:
    """Have this process and its children keep kernels outside the checkout.

    Returns: the folder of all checkouts; None where another one is set or nothing can be written.
    """
    user = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(user) / "grapheraser" / "tests"
    if os.environ.get(_VARIABLE, str(folder / "checkouts")) != str(folder / "checkouts"):
        return None
    try:
        for part in ("pool", "checkouts"):
            # Code that is loaded is code that is run.
            (folder / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    os.environ[_VARIABLE] = str(folder / "checkouts")
    return folder


def draw(folder: Path, own: Path) -> None:
    """Give a checkout what the pool has."""
    add(folder, own)  # what a run that was killed has compiled
    oldest = time.time() - _DAYS * 24 * 3600
    for file in folder.rglob("*.nbc"):
        with suppress(OSError):  # another run has just removed it
            if file.stat().st_mtime < oldest:
                file.unlink()
    _link(folder / "pool", own)


def add(folder: Path, own: Path) -> None:
    """Put what a checkout has compiled into the pool."""
    _link(own, folder / "pool")


def _link(source: Path, target: Path) -> None:
    there = set(os.listdir(target))
    for name in os.listdir(source):
        if name.endswith(".nbc") and name not in there:
            # Removed meanwhile, linked by another run, or a file system without links.
            with suppress(OSError):
                os.link(source / name, target / name)


def main() -> None:
    """Compile what runs of all built-in models use, unless that was done for these sources."""
    folder = choose_folder()
    # Where kernels are kept is read when they are imported.
    from grapheraser.cli import main as grapheraser
    from grapheraser.kernels.compiled import cache_folders

    own = next(cache_folders(create=True))
    if folder:
        draw(folder, own)
    done = own / f"{_digest_of_sources()}.done"
    if not done.exists():
        try:
            grapheraser(["warmup", "--quiet"])
        except SystemExit as end:
            if end.code:
                raise
        for old in own.glob("*.done"):
            old.unlink()
        done.touch()
    if folder:
        add(folder, own)


def _digest_of_sources() -> str:
    package = Path(__file__).parents[1] / "src" / "grapheraser"
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    main()
