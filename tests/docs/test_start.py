"""The page for newcomers, typed in as it is printed, prints what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "start.md"
STEP = re.compile(r"^```sh\n(.*?)^```(?:\n+```text\n(.*?)^```)?", re.M | re.S)
# What differs from one time to the next: times, dates, digests.
VARIES = re.compile(r"[\d.]+ (?:ms|s|min)\b|\d{4}-\d\d-\d\dT[\d:+]+|\b[0-9a-f]{16,}|\.\.\.")


def plain(text: str) -> list[str]:
    return [VARIES.sub("*", line).rstrip() for line in text.strip().splitlines()]


@pytest.mark.slow
def test_the_commands_print_what_the_page_says(tmp_path: Path) -> None:
    steps = STEP.findall(PAGE.read_text().split("## Fit")[1])
    assert [bool(expected) for _, expected in steps] == [True] * 5
    environment = {**os.environ, "GRAPHERASER_KEYS": str(tmp_path / "keys"), "COLUMNS": "80"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for command, expected in steps:
        done = subprocess.run(
            ["bash", "-c", f"set -e\n{command}"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert plain(done.stdout) == plain(expected), command


def test_the_page_installs_the_torch_without_cuda_first() -> None:
    install = PAGE.read_text().split("## Install")[1].split("## Fit")[0]
    commands = re.findall(r"^pip install .*", install, re.M)
    assert [("torch" in c and "whl/cpu" in c, "grapheraser-*.whl" in c) for c in commands] == [
        (True, False),
        (False, True),
    ]
