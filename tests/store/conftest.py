"""A fitted eraser, and its run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import grapheraser as ge
from grapheraser.store import indexes
from tests.store.runs import fitted


@pytest.fixture
def eraser() -> ge.GraphEraser:
    return fitted()


@pytest.fixture
def saved(eraser: ge.GraphEraser, tmp_path: Path) -> Path:
    eraser.save(tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture(scope="module")
def divided_indexes() -> Iterator[None]:
    """Saves in this process divide every index of more than one entry, in parts of about two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexes, "MAX_ENTRIES", 1)
        patch.setattr(indexes, "BITS", 1)
        yield
