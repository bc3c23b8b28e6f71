"""Check a built package: what is in it, and that it works where nothing else is.

    python -m tools.package check dist     # contents and metadata of the sdist and the wheel
    python -m tools.package smoke dist     # the wheel in a venv of its own, without pins or torch

`make package` builds, and calls both.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "grapheraser"
# The last block of what is typed in: forget, and prove it.
STEPS = """
from importlib.util import find_spec
import grapheraser as ge
assert find_spec("torch") is None
graph = ge.load_dataset("demo")
eraser = ge.GraphEraser(num_shards=20, epochs=5).fit(graph)
receipt = eraser.unlearn([ge.Nodes([10, 101]), ge.Edges([tuple(graph.edges[0])])])
assert eraser.verify().identical and receipt.statement == "exact"
print("forgotten and verified")
"""


def main(what: str, folder: Path) -> None:
    """Check, or try out, what a folder holds."""
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if what == "smoke":
        smoke(wheel)
        return
    problems = [*in_wheel(wheel), *in_sdist(sdist)]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    if problems:
        sys.exit(1)
    print(f"checked: {wheel.name} ({wheel.stat().st_size / 1e6:.1f} MB), {sdist.name}")


def in_wheel(wheel: Path) -> list[str]:
    """List the problems of a wheel."""
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        about = Parser().parsestr(archive.read(metadata).decode())
    found = {name for name in names if name.startswith(f"{PACKAGE}/")}
    expected = {
        f"{PACKAGE}/{file.relative_to(ROOT / 'src' / PACKAGE)}"
        for file in (ROOT / "src" / PACKAGE).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    problems = [f"{wheel.name} lacks {name}" for name in sorted(expected - found)]
    problems += [f"{wheel.name} has {name}" for name in sorted(found - expected)]
    others = {name.split("/")[0] for name in names} - {PACKAGE}
    problems += [f"{wheel.name} has {name}" for name in others if not name.endswith(".dist-info")]
    return problems + in_metadata(about)


def in_metadata(about: Message) -> list[str]:
    """List the problems of what an index would show."""
    problems = []
    text = about.get_payload()
    assert isinstance(text, str)
    if about["Description-Content-Type"] != "text/markdown" or "# GraphEraser" not in text:
        problems.append("the description is not the README")
    problems += [
        f"the README has a relative link, {target}"
        for target in re.findall(r"\]\((?!https?:|#)([^)]+)\)", text)
    ]
    return problems


def in_sdist(sdist: Path) -> list[str]:
    """List the problems of a source distribution."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "pyproject.toml",
        "hatch_build.py",
        "Makefile",
        "constraints.txt",
        f"src/{PACKAGE}/py.typed",
        "tests/conftest.py",
        "docs/README.md",
        "examples/predict_exported.py",
    }
    problems = [f"{sdist.name} lacks {name}" for name in sorted(needed - names)]
    return problems + [
        f"{sdist.name} has {name}" for name in sorted(names) if "__pycache__" in name
    ]


def smoke(wheel: Path) -> None:
    """Install a wheel into a new venv, without pins, and forget and verify with it."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        _run(place, python, "-m", "pip", "install", "--quiet", wheel.resolve())
        _run(place, python, "-W", "error::DeprecationWarning:grapheraser", "-c", STEPS)
        _run(place, python.with_name(PACKAGE), "--version")
        fit = ("fit", "demo", "--shards", "5", "--epochs", "5", "--out", "run")
        for verb in (fit, ("unlearn", "run", "--nodes", "10"), ("verify", "run"), ("info", "run")):
            _run(place, python.with_name(PACKAGE), *verb, "--quiet")


def _run(place: Path, *words: object) -> None:
    """Run a command where only what it was given can be found."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(place)}
    environment |= {k: v for k, v in os.environ.items() if k.startswith("PIP_")}
    subprocess.run([str(word) for word in words], cwd=place, env=environment, check=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
