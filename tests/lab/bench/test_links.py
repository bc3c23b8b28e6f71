"""The benchmark of links goes on where it was, and judges by the better encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from grapheraser_lab.bench import links
from grapheraser_lab.framework import shared_cells
from grapheraser_lab.measure.link_encoders import LinkSplit, forgotten, link_split


def test_finished_cells_are_not_measured_again(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(shared_cells, "RATES", (0.01,))
    told: list[str] = []
    options: dict[str, Any] = {"seeds": 1, "folder": tmp_path, "epochs": 2}
    first = links.run(["demo"], ["gcn"], progress=told.append, **options)
    assert told[-1] == "3 cells measured, 3 in all"
    again = links.run(["demo"], ["gcn"], progress=told.append, **options)
    assert told[-1] == "0 cells measured, 3 in all"
    assert again["cells"] == first["cells"]
    assert [cell["model"] for cell in first["cells"]] == ["closed-form", "gcn"]
    assert "| demo |" in links.markdown(first)


def test_requests_are_timed(tmp_path: Path) -> None:
    report = links.cost(["demo"], folder=tmp_path, requests=2)
    found = report["costs"]["demo"]
    assert {"fit", "edge", "node", "pairs", "rank"} <= found.keys()
    assert all(seconds > 0 for seconds in found.values())
    assert "| demo |" in links.markdown(report)


def _cell(model: str, auc: float, hits: float, seed: int = 0) -> dict[str, Any]:
    common = {"dataset": "cora", "seed": seed, "mrr": 0.1, "seconds": 1.0}
    return {"model": model, "auc": auc, "hits": hits, **common}


def test_the_closed_form_is_judged_by_the_better_encoder_in_each_measure() -> None:
    rivals = [_cell("gcn", 0.95, 0.6), _cell("sage", 0.90, 0.8)]
    report = {"cells": [_cell("closed-form", 0.96, 0.7), *rivals]}
    assert "0 of 1 graphs; its AUC is +0.0100" in links.verdict(report)
    report = {"cells": [_cell("closed-form", 0.96, 0.8), *rivals]}
    assert "1 of 1 graphs" in links.verdict(report)


def test_a_split_holds_out_edges_and_as_many_others() -> None:
    split = link_split("demo", 0)
    assert not split.graph.has_edges(split.test).any()
    assert not split.graph.has_edges(split.validation).any()
    assert LinkSplit.labels(split.test).mean() == 0.5
    known = {tuple(pair) for pair in split.test.tolist()}
    assert len(known) == len(split.test)
    assert not known & {tuple(pair) for pair in split.validation.tolist()}


def test_pairs_of_forgotten_nodes_are_not_asked_about() -> None:
    split = link_split("demo", 0)
    request = forgotten(split.graph, "nodes", 0.1, 0)
    rest = split.without(request)
    assert rest.graph.num_nodes == round(0.9 * split.graph.num_nodes)
    assert rest.graph.contains(np.unique(rest.test)).all()
    assert LinkSplit.labels(rest.test).mean() == 0.5
    smaller = forgotten(split.graph, "nodes", 0.01, 0)
    assert set(smaller.ids) <= set(request.ids)  # type: ignore[union-attr]
