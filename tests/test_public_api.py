"""What the package shows to the world, and how little it loads to do so."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

import grapheraser as ge

ROOT = Path(__file__).parents[1]
PUBLIC = [
    "AddEdges",
    "AddGraphs",
    "AddInteractions",
    "AddItems",
    "AddNodes",
    "AddUsers",
    "Aggregator",
    "Alike",
    "Assignment",
    "Change",
    "Changes",
    "Client",
    "Collection",
    "CollectionEraser",
    "CustomModel",
    "EarlyStopping",
    "Edges",
    "Embedder",
    "Ensemble",
    "Executor",
    "Explanation",
    "FactReasons",
    "FactRule",
    "FactScore",
    "Features",
    "FittedAggregator",
    "Graph",
    "GraphEdges",
    "GraphEraser",
    "GraphExplanation",
    "GraphNodes",
    "Graphs",
    "Interactions",
    "Items",
    "Labels",
    "LinkEraser",
    "LinkScore",
    "LocalExecutor",
    "ModelSpec",
    "NodeRows",
    "Nodes",
    "Partition",
    "Partitioner",
    "Plan",
    "ProcessExecutor",
    "Ranked",
    "RayExecutor",
    "Reason",
    "Receipt",
    "RecommendationReasons",
    "RecommendationScore",
    "Recommender",
    "SetFeatures",
    "SetGraphs",
    "SetLabels",
    "SmallGraph",
    "Training",
    "Users",
    "Verification",
    "check_partitioner",
    "generate_graph",
    "load_dataset",
    "partition_graph",
    "recommend",
]


def test_the_public_names_are_these() -> None:
    assert ge.__all__ == PUBLIC


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    assert name in dir(ge)
    assert getattr(ge, name).__doc__


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'unlearn'"):
        _ = ge.unlearn


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ge.__version__ == project["version"]
    assert f"version: {ge.__version__}" in (ROOT / "CITATION.cff").read_text()


def loaded_by(code: str) -> set[str]:
    report = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; {report}"],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(ge.__file__).parents[1])},
        check=True,
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_neither_torch_nor_numpy() -> None:
    assert not {"torch", "numpy", "torch_geometric"} & loaded_by("import grapheraser")


def test_the_core_needs_no_extra() -> None:
    extras = ("matplotlib", "kaminpar", "sklearn", "networkx", "ray")
    block = "; ".join(f"sys.modules['{name}'] = None" for name in extras)
    loaded_by(f"import sys; {block}; from grapheraser import *")


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    ranges = [*project["dependencies"], *chain.from_iterable(extras)]
    names = {entry.split(">")[0].split("[")[0].replace("_", "-") for entry in ranges}
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = {line.split("==")[0].replace("_", "-") for line in pins if "==" in line}
    assert names - {"grapheraser"} <= pinned
    assert "torch==2.13.0" in pins
