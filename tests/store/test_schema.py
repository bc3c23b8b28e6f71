"""What the manifest of a run must look like, and that a damaged one can be replaced."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import grapheraser as ge
from grapheraser.errors import CorruptRunError, GraphEraserError
from tests.store.runs import fitted


def altered(folder: Path, *path: str, value: Any) -> None:
    """Put another value into the manifest."""
    manifest = json.loads((folder / "run.json").read_text())
    place = manifest
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    (folder / "run.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("shards",), []),
        (("shards",), {"file": "x"}),
        (("shards", "sha256"), 5),
        (("partition", "num_shards"), "4"),
        (("partition", "num_shards"), 2**40),
        (("partition", "inputs"), "nodes"),
        (("graph",), None),
        (("graph", "num_features"), True),
        (("graph", "num_classes"), -1),
        (("graph", "edges"), {"directed": 1, "weighted": False, "columns": 0}),
        (("configuration",), ["x"]),
        (("aggregator", "file"), 5),
    ],
)
def test_a_manifest_of_another_form_is_refused_and_can_be_replaced(
    saved: Path, path: tuple[str, ...], value: Any
) -> None:
    altered(saved, *path, value=value)
    with pytest.raises(CorruptRunError, match=f"{path[0]}.* is missing, or of another form"):
        ge.GraphEraser.load(saved)
    fresh = fitted()
    with pytest.raises(CorruptRunError):
        fresh.save(saved)
    fresh.save(saved, replace=True)
    assert ge.GraphEraser.load(saved).verify().identical


@pytest.mark.parametrize(
    ("name", "value"),
    [("gamma", "x"), ("gamma", 7), ("delta", []), ("engine", {}), ("sample", float("nan"))],
)
def test_settings_that_no_run_has_are_refused(saved: Path, name: str, value: Any) -> None:
    altered(saved, "configuration", "arguments", name, value=value)
    with pytest.raises(GraphEraserError):
        ge.GraphEraser.load(saved)
