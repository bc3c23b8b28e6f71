"""The command itself: help, errors, exit status and lost output."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.commands import run, snapshot


def test_every_verb_explains_itself() -> None:
    listing = run("--help").stdout
    for verb in (
        "demo",
        "datasets",
        "recommend",
        "fit",
        "predict",
        "evaluate",
        "unlearn",
        "verify",
    ):
        assert verb in listing
        assert run(verb, "--help").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("unlearn", "RUN", "--nodes", "999999"), "UnknownNodeError"),
        (("unlearn", "RUN", "--edges", "0-0"), "UnknownEdgeError"),
        (("unlearn", "RUN", "--edges", "0:1"), "ParameterError"),
        (("unlearn", "RUN", "--nodes", "one"), "ParameterError"),
        (("unlearn", "RUN"), "NothingToForgetError"),
        (("unlearn", "RUN", "--file", "no-such-file"), "ParameterError"),
        (("unlearn", "RUN", "--nodes", "9223372036854775808"), "ParameterError"),
        (("unlearn", "RUN", "--edges", "1-9223372036854775808"), "ParameterError"),
        (("predict", "RUN", "--nodes", "1,9223372036854775808"), "ParameterError"),
        (("predict", "RUN", "--nodes", "1", "--decimals", "400"), "ParameterError"),
        (("bench", "engines", "--models", "nope"), "ParameterError"),
        (("bench", "unlearn", "--models", "sgc"), "ParameterError"),
        (("demo", "--dataset", "demo", "--out", "NEW", "--requests", "0"), "ParameterError"),
        (("demo", "--dataset", "demo", "--out", "NEW", "--requests", "-1"), "ParameterError"),
        (("demo", "--dataset", "demo", "--out", "NEW", "--requests", "2000"), "ParameterError"),
        (("demo", "--dataset", "demo", "--out", "NEW", "--requests", "5000"), "ParameterError"),
        (("predict", "RUN", "--nodes", "999999"), "UnknownNodeError"),
        (("predict", "no-such-run", "--nodes", "1"), "RunNotFoundError"),
        (("unlearn", "no-such-run", "--nodes", "1"), "RunNotFoundError"),
        (("unlearn", "EMPTY", "--nodes", "1"), "RunNotFoundError"),
        (("fit", "no-such-graph", "--out", "NEW"), "UnknownDatasetError"),
        (("partition", "demo", "--draw", "picture.docx"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--shards", "0"), "ParameterError"),
        (
            ("fit", "demo", "--out", "NEW", "--partition", "random", "--shards", "2161"),
            "ParameterError",
        ),
        (("fit", "demo", "--out", "NEW", "--model", "resnet"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--partition", "scissors"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--aggregation", "dice"), "ParameterError"),
        (("fit", "demo", "--out", "NEW", "--device", "cuda:7"), "ParameterError"),
    ],
)
def test_bad_input_is_named_and_changes_nothing(
    own_run: Path, tmp_path: Path, arguments: tuple[str, ...], error: str
) -> None:
    before = snapshot(own_run)
    places = {"RUN": own_run, "NEW": tmp_path / "new", "EMPTY": tmp_path / "empty"}
    places["EMPTY"].mkdir()
    done = run(*(places.get(word, word) for word in arguments), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"]["type"] == error
    assert "error[GE-" in done.stderr
    assert "Traceback" not in done.stderr
    assert snapshot(own_run) == before
    assert not (tmp_path / "new").exists()
    assert not snapshot(tmp_path / "empty")


def test_a_warning_is_a_line_that_can_not_steer_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "of\x1b[2J others.npz"
    odd: dict[str, Any] = {"verified: bit-identical\x1b[2K": np.zeros(1)}
    edges, y = np.array([[0, 1], [1, 2]]), np.arange(20) % 2
    np.savez(file, x=np.eye(20, dtype=np.float32), edge_index=edges, y=y, **odd)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = run("recommend", file)
    (line,) = (line for line in done.stderr.splitlines() if "are not used" in line)
    assert line.startswith("warning: ")
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    "words", [("datasets",), ("predict", "no-such-run", "--nodes", "1", "--json")]
)
def test_output_that_nobody_takes_ends_without_a_traceback(
    words: tuple[str, ...], unbuffered: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    command = [sys.executable, "-m", "grapheraser", *words]
    closed, writing = os.pipe()
    os.close(closed)
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_an_error_of_the_system_is_not_taken_for_lost_output(
    fitted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("grapheraser.eraser.load.load_run", fails)
    done = run("evaluate", fitted)
    assert done.returncode == 1
    assert "No locks available" in done.stderr
    assert "output" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_under_the_output_is_said() -> None:
    command = [sys.executable, "-m", "grapheraser", "datasets"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "error[GE-001]: the output could not be written: No space left on device." in done.stderr
    assert "Traceback" not in done.stderr


def test_it_runs_as_a_module_of_its_own(fitted: Path) -> None:
    command = [sys.executable, "-m", "grapheraser", "predict", str(fitted), "--nodes", "x"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error[GE-011]: '--nodes'")


LIBRARIES = {
    *("numpy", "scipy", "numba", "llvmlite", "torch", "torch_geometric", "pymetis", "matplotlib"),
    *("safetensors", "rich", "sklearn", "networkx", "pandas", "fastapi", "sqlalchemy", "ray"),
}


def imported(*words: object) -> set[str]:
    """The libraries that a command imports in a fresh process."""
    code = (
        "import sys\n"
        "from grapheraser.cli import main\n"
        "try:\n    main(sys.argv[1:])\n"
        "except SystemExit as stop:\n    assert not stop.code\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", code, *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    modules = set(done.stderr.split())
    return (modules & LIBRARIES) | (modules & {"scipy.optimize", "scipy.stats"})


@pytest.mark.parametrize("words", [("--help",), ("unlearn", "--help"), ("--version",)])
def test_help_imports_no_library(words: tuple[str, ...]) -> None:
    assert imported(*words) <= {"rich"}


def test_predict_imports_what_it_computes_with(fitted: Path) -> None:
    needed = {"numpy", "scipy", "numba", "llvmlite", "safetensors"}
    assert imported("predict", fitted, "--nodes", "1,2,3", "--json") == needed
