"""A PostgreSQL server for the tests, in a folder of its own; skips where none is installed."""

from __future__ import annotations

import glob
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def binaries() -> Path | None:
    """The folder of the server's programs; the newest one installed."""
    found = shutil.which("initdb")
    folders = [folder for pattern in _FOLDERS for folder in glob.glob(pattern)]
    folders += [str(Path(found).parent)] if found else []
    usable = [Path(folder) for folder in folders if (Path(folder) / "postgres").exists()]
    return max(usable, default=None)


def _as_other(command: Sequence[str]) -> list[str]:
    """The server refuses to run as root."""
    if os.getuid() != 0:
        return list(command)
    return ["runuser", "-u", _other(), "--", *command]


def _other() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return "postgres" if "postgres" in names else "nobody"


class Server:
    """A running server; it can be stopped and started again."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder, self._programs = folder, programs
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        data = str(folder / "data")
        self._run("initdb", "-D", data, "-U", "tester", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {folder} -c fsync=off"
        self._control = ("pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w")
        self._made = 0

    def start(self) -> None:
        self._run(*self._control, "start")

    def stop(self, mode: str = "immediate") -> None:
        self._run(*self._control, "-m", mode, "stop")

    def new_database(self) -> str:
        """The URL of a new, empty schema: cheaper than a database, and as good."""
        import psycopg

        self._made += 1
        name, url = f"queue_{self._made}", f"postgresql://tester@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{url}?options=-csearch_path%3D{name}"

    def _run(self, program: str, *arguments: str) -> None:
        command = _as_other([str(self._programs / program), *arguments])
        subprocess.run(
            command, check=True, capture_output=program == "initdb", cwd=self.folder, timeout=60
        )


@contextmanager
def running(vectors: bool = False) -> Iterator[Server]:
    """A server for as long as the block lasts; of ``vectors`` the one of PyPI's pgserver.

    It brings pgvector along; where it is not there, the server that is installed may have it.
    """
    spec = importlib.util.find_spec("pgserver") if vectors else None
    programs = Path(spec.origin).parent / "pginstall/bin" if spec and spec.origin else binaries()
    if programs is None:
        pytest.skip("PostgreSQL is not installed (initdb and postgres were not found)")
    if os.getuid() == 0 and shutil.which("runuser") is None:
        pytest.skip("PostgreSQL refuses to run as root, and there is no runuser")
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        if spec is not None:  # to where the other user may read it
            for part in programs.parents[2].glob("pgserver*"):
                shutil.copytree(part, folder / part.name)
            programs = folder / "pgserver/pginstall/bin"
        if os.getuid() == 0:
            shutil.chown(folder, _other())
        server = Server(folder, programs)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
