"""A fitted eraser, and its run."""

from __future__ import annotations

from pathlib import Path

import pytest

import grapheraser as ge
from tests.store.runs import fitted


@pytest.fixture
def eraser() -> ge.GraphEraser:
    return fitted()


@pytest.fixture
def saved(eraser: ge.GraphEraser, tmp_path: Path) -> Path:
    eraser.save(tmp_path / "run")
    return tmp_path / "run"
