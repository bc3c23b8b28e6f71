"""The folder of a witness: its key, and the last checkpoint of each log that it cosigned."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from grapheraser.errors import CorruptRunError, StoreError
from grapheraser.receipts.keys import Checkpoint, SigningKey
from grapheraser.store.files import flush, make_folder, read_text, write_atomic
from grapheraser.store.folder import hold
from grapheraser.store.keys import KeyFolder


@dataclass(frozen=True)
class WitnessFolder:
    """The folder of a witness, which was opened by `held_by_witness`."""

    path: Path

    def signing_key(self) -> SigningKey:
        """The key of the witness; made on first use."""
        return KeyFolder(self.path / "keys").signing_key()

    def get(self, origin: str) -> str | None:
        """Return the last checkpoint of a log that was cosigned; None: there is none."""
        file = self._file(origin)
        if not file.exists():
            return None
        note = read_text(file)
        if Checkpoint.read(note).origin != origin:
            raise CorruptRunError(f"{file}: not the checkpoint that was kept there.")
        return note

    def put(self, origin: str, note: str) -> None:
        """Keep a checkpoint; it is on the disk when this returns."""
        file = self._file(origin)
        write_atomic(file, note.encode())
        try:
            flush([file.parent])
        except OSError as error:
            raise StoreError(f"can't write {file}: {error.strerror}.") from error

    def _file(self, origin: str) -> Path:
        return self.path / f"{hashlib.sha256(origin.encode()).hexdigest()}.checkpoint"


@contextmanager
def held_by_witness(path: Path) -> Iterator[WitnessFolder]:
    """Open the folder of a witness, made if need be, for one process at a time.

    A witness that has lost its folder could cosign a fork: begin with a new key and name then.
    """
    make_folder(path)
    with hold(path):
        yield WitnessFolder(path)
