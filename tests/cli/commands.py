"""Call the command line from tests."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from grapheraser.cli import main


@dataclass
class Done:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: object) -> Done:
    """Call the command line in this process, which spares every test the start of Python."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([str(word) for word in arguments])
    return Done(int(stop.value.code or 0), out.getvalue(), err.getvalue())


def data(*arguments: object) -> Any:
    """What a verb prints with --json."""
    done = run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def snapshot(path: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }
