"""The versions that receipts and runs record."""

from __future__ import annotations

import platform
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

from grapheraser import __version__, environment


def test_the_version_is_that_of_the_project_file() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert project["version"] == environment.VERSION == __version__


def test_versions_are_those_installed() -> None:
    found = environment.versions()
    assert found["python"] == platform.python_version()
    assert found["torch"] == version("torch")
    assert found["numpy"] == version("numpy")
    assert "gpu" not in found


def test_a_gpu_is_named_on_cuda_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert environment.versions("cuda:0")["gpu"] == "none"
