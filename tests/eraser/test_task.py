"""A task is a translation: whoever writes one gets receipts, proofs, runs and updates."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import grapheraser as ge
from grapheraser.eraser import load_eraser
from grapheraser.errors import RunKindError
from tests.eraser.ranking import Ranker


def ranked(graph: ge.Graph, count: int) -> list[int]:
    """Rank by the edge list alone."""
    degrees = dict.fromkeys(graph.ids.tolist(), 0)
    for node in graph.edges.ravel().tolist():
        degrees[node] += 1
    return sorted(degrees, key=lambda node: (-degrees[node], node))[:count]


def test_a_third_task_forgets_proves_saves_and_loads(small: ge.Graph, tmp_path: Path) -> None:
    ranker = Ranker().fit(small)
    assert ranker.top(5).tolist() == ranked(small, 5)
    first = int(ranker.top(1)[0])
    assert ranker.plan(ge.Nodes([first])).retrain == ()
    receipt = ranker.unlearn([ge.Nodes([first]), ge.Edges([tuple(_edge_without(small, first))])])
    assert receipt.statement.startswith("exact")
    assert ranker.top(9).tolist() == ranked(ranker.graph_, 9)
    assert ranker.verify().identical
    ranker.save(tmp_path / "run")
    loaded = load_eraser(tmp_path / "run")
    assert isinstance(loaded, Ranker)
    loaded.update(ge.AddEdges([_no_edge(loaded.graph_)]))
    assert loaded.top(9).tolist() == ranked(loaded.graph_, 9)
    assert loaded.verify().identical
    assert len(loaded.receipts_) == 2


def _edge_without(graph: ge.Graph, node: int) -> list[int]:
    return next(pair for pair in graph.edges.tolist() if node not in pair)


def _no_edge(graph: ge.Graph) -> tuple[int, int]:
    node = int(graph.ids[0])
    others = np.setdiff1d(graph.ids, [*graph.neighbours(node), node])
    return node, int(others[0])


def test_a_run_is_loaded_by_its_own_task_alone(small: ge.Graph, tmp_path: Path) -> None:
    Ranker().fit(small).save(tmp_path / "run")
    with pytest.raises(RunKindError, match="predicts an order of nodes, not the classes") as caught:
        ge.GraphEraser.load(tmp_path / "run")
    assert "Ranker.load" in str(caught.value.hint)


def test_a_run_of_an_unknown_task_is_refused(small: ge.Graph, tmp_path: Path) -> None:
    Ranker().fit(small).save(tmp_path / "run")
    code = f"""
from grapheraser.eraser import load_eraser
from grapheraser.errors import RunKindError
try:
    load_eraser({str(tmp_path / "run")!r})
except RunKindError as error:
    print(error.message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "task 'ranking', which is not known here" in done.stdout


def test_a_run_of_nodes_loads_nothing_of_links(small: ge.Graph, tmp_path: Path) -> None:
    ge.GraphEraser(model="closed-form").fit(small).save(tmp_path / "run")
    code = f"""
import sys
from grapheraser.eraser import load_eraser
load_eraser({str(tmp_path / "run")!r})
print([name for name in sys.modules if name.startswith("grapheraser.links")])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_only_classes_of_nodes_make_a_classifier() -> None:
    base = pytest.importorskip("sklearn.base")
    assert base.is_classifier(ge.GraphEraser())
    assert not base.is_classifier(ge.LinkEraser())
