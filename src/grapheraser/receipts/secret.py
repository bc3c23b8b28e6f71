"""The folder of keys, and the secrets in it: 32 random bytes in a file that nobody else can read.

Every file of the folder is read through `read_private` or `read_key_file`.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from grapheraser.errors import ParameterError, StoreError
from grapheraser.untrusted import read_plain

FOLDER_VARIABLE = "GRAPHERASER_KEYS"
SIZE = 32
# Of ids that stand for numbers; see `Graph.with_keyed_ids`.
IDS = "ids"
# Bytes that a key or a secret may have.
_MAX_KEY = 2**16


def default_folder() -> Path:
    """Return the folder that keys lie in unless told otherwise."""
    if FOLDER_VARIABLE in os.environ:
        return Path(os.environ[FOLDER_VARIABLE])
    home = os.environ.get("XDG_CONFIG_HOME")
    try:
        return (Path(home) if home else Path.home() / ".config") / "grapheraser" / "keys"
    except RuntimeError:
        raise StoreError(
            "there is no place for the signing key: the user has no home folder.",
            hint=f"set {FOLDER_VARIABLE} to a folder that can be written, or to nothing to leave "
            "receipts unsigned.",
        ) from None


def secret_file(name: str, folder: Path | None = None) -> Path:
    """Return where a secret lies; None stands for `default_folder`."""
    return (folder or default_folder()) / f"{name}.secret"


def secret_of(name: str, folder: Path | None = None) -> bytes:
    """Return the secret under a name; made on first use, by one process alone."""
    if folder is None and os.environ.get(FOLDER_VARIABLE) == "":
        raise ParameterError(
            f"a secret needs a folder, and {FOLDER_VARIABLE} is empty.",
            hint=f"unset {FOLDER_VARIABLE}, or name a folder outside all runs.",
        )
    path = secret_file(name, folder)
    if not path.exists():
        partial = path.with_name(f"{path.name}.{secrets.token_hex(4)}.partial")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(partial, secrets.token_hex(SIZE).encode(), 0o600)
            with contextlib.suppress(FileExistsError):  # another process was first
                os.link(partial, path)
            partial.unlink()
        except OSError as error:
            raise unwritable(path.parent, "a secret", error) from error
    try:
        found = bytes.fromhex(read_private(path).decode())
    except (OSError, ValueError) as error:
        raise StoreError(f"{path}: not a readable secret.") from error
    if len(found) != SIZE:
        raise StoreError(f"{path}: not a secret of {SIZE} bytes.")
    return found


def read_private(path: Path) -> bytes:
    """Read a key or a secret that nobody else can read; an `OSError` where it can't be read."""
    content = read_key_file(path)
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise StoreError(
            f"{path}: others can read this private key.", hint=f"chmod 600 '{path}', or rotate it."
        )
    return content


def read_key_file(path: Path) -> bytes:
    """Read a file of a folder of keys, which may be a link to one, as orchestrators make them."""
    return read_plain(path.resolve(), _MAX_KEY) or b""


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a file that does not exist yet."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def unwritable(folder: Path, what: str, error: OSError) -> StoreError:
    """Return the error that something can't be kept in a folder of keys."""
    return StoreError(
        f"{folder}: can't keep {what} there ({error.strerror}).",
        hint=f"set {FOLDER_VARIABLE} to a folder that can be written.",
    )
