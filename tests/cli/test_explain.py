"""grapheraser explain: what an error means, offline, from the source of the reference."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from grapheraser.errors import GraphEraserError, ParameterError, explained
from tests.cli.commands import run


def test_a_code_that_was_printed_can_be_explained(tmp_path: Path) -> None:
    failed = run("predict", tmp_path, "--nodes", "1", "--json")
    code = json.loads(failed.stdout)["error"]["code"]
    assert failed.stderr.startswith(f"error[{code}]: ")
    told = run("explain", code)
    assert told.returncode == 0
    assert told.stdout.startswith(f"{code} RunNotFoundError: The folder holds no run.")
    assert "\nExample: " in told.stdout
    assert "\nWhat to do: " in told.stdout


def test_all_codes_are_listed_and_an_unknown_one_is_refused() -> None:
    assert len(run("explain").stdout.splitlines()) == len(explained())
    assert run("explain", "UnknownNodeError").stdout == run("explain", "ge-013").stdout
    assert "no error with the code 'GE-999'" in run("explain", "GE-999").stderr


@pytest.mark.parametrize("code", explained())
def test_every_code_is_of_one_error_with_an_example(code: str) -> None:
    error, text = explained()[code]
    assert error.code == code
    assert text.count("Example: ") == text.count("What to do: ") == 1


def test_codes_do_not_change() -> None:
    assert ParameterError("x").code == "GE-011"
    assert explained()["GE-070"][0].__name__ == "VerificationError"

    class OwnError(ParameterError):
        """Of somebody else."""

    assert OwnError.code == "GE-011"
    assert GraphEraserError.code == "GE-001"
    assert len(explained()) == len({cls for cls, _ in explained().values()})
