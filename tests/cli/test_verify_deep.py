"""grapheraser verify --deep."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.cli import main
from grapheraser.store.residues.forgotten import Forgotten


def run(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([str(word) for word in arguments])
    return int(stop.value.code or 0), out.getvalue(), err.getvalue()


@pytest.fixture
def fitted(small: ge.Graph, tmp_path: Path) -> Path:
    """A run that has forgotten one node, and beside it the file that says which."""
    eraser = ge.GraphEraser(num_shards=3, epochs=3, partition="hash").fit(small)
    gone = ge.Nodes([int(small.train_nodes[4])])
    (tmp_path / "forgotten").write_text(Forgotten.of(small, gone).to_lines())
    eraser.unlearn(gone)
    eraser.save(tmp_path / "run")
    return tmp_path / "run"


def test_a_clean_run_passes(fitted: Path) -> None:
    code, out, _ = run("verify", fitted, "--deep", "--forgotten", fitted.parent / "forgotten")
    assert code == 0
    assert "deep: nothing left" in out


def test_a_residue_fails_and_is_named(fitted: Path) -> None:
    (fitted / "left.tmp").write_text("x")
    code, out, err = run("verify", fitted, "--deep")
    assert code == 1
    assert "bit-identical" in out
    assert "found: temporary file in left.tmp" in err


def test_json_holds_both_results(fitted: Path) -> None:
    code, out, _ = run("verify", fitted, "--deep", "--json")
    report = json.loads(out)
    assert (code, report["identical"], report["deep"]["clean"]) == (0, True, True)


def test_without_deep_files_are_named_but_not_searched(fitted: Path) -> None:
    (fitted / "left.tmp").write_text("x")
    code, out, _ = run("verify", fitted, "--json")
    assert code == 1
    assert json.loads(out)["strays"] == ["left.tmp"]
    assert "deep" not in json.loads(out)


def test_forgotten_data_without_deep_is_refused(fitted: Path) -> None:
    code, _, err = run("verify", fitted, "--forgotten", fitted.parent / "forgotten")
    assert code == 1
    assert "--deep" in err


@pytest.mark.parametrize(
    "line",
    [
        '{"nodes": [9223372036854775808]}',
        '{"nodes": "12"}',
        '{"edges": [[1, 1e400]]}',
        '{"edges": null}',
        '{"rows": {"9223372036854775808": {"1": 1.0}}}',
        '{"rows": {"1": {"9223372036854775808": 1.0}}}',
    ],
)
def test_a_line_that_is_no_forgotten_data_is_named(fitted: Path, line: str) -> None:
    file = fitted.parent / "forgotten"
    file.write_text(f"{line}\n")
    code, _, err = run("verify", fitted, "--deep", "--forgotten", file)
    assert code == 1
    assert err.startswith(f"error[GE-011]: {file}:1: not a line of forgotten data")
