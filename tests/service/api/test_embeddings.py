"""A served embedding: rows, what moved, and who is gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import grapheraser as ge
from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened
from tests.strategies import small_graph


def test_an_index_follows_a_served_embedding(tmp_path: Path) -> None:
    graph, path = small_graph(), tmp_path / "people"
    ge.Embedder(width=8, landmarks=2).fit(graph).save(path)
    with opened(path) as api:
        model = api.service.served.now.model
        assert isinstance(model, ge.Embedder)
        ids = graph.ids[:3].tolist()
        body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [3], "data": ids}]}
        answer = api.call("POST", "/v2/models/people/infer", Role.READER, json=body).json()
        (rows,) = answer["outputs"]
        assert (rows["name"], rows["shape"]) == ("embeddings", [3, 8])
        found = np.array(rows["data"], np.float32).reshape(3, 8)
        assert np.array_equal(found, model.transform(ids))
        index, version, log = filled(api)
        assert list(index) == graph.ids.tolist()
        api.submit(nodes=[ids[0]])
        api.work()
        delta = asked(api, since=version, log=log)
        assert delta["version"] == 1
        assert delta["more"] is None
        index |= dict(zip(delta["ids"], delta["rows"], strict=True))
        gone = api.call("POST", "/api/v1/embeddings/gone", Role.READER, json={"ids": [*index]})
        assert gone.json() == {"version": 1, "ids": ids[:1]}
        del index[ids[0]]
        assert index == filled(api)[0]
        refused = api.call("GET", "/api/v1/embeddings/changes", Role.READER, params={"since": 7})
        assert refused.status_code == 409
        assert api.call("GET", "/api/v1/embeddings/changes", Role.REQUESTER).status_code == 403


def asked(api: Api, **params: object) -> Any:
    return api.call("GET", "/api/v1/embeddings/changes", Role.READER, params=params).json()


def filled(api: Api) -> tuple[dict[int, list[float]], int, str]:
    """All rows, some at a time, with their version and log."""
    index: dict[int, list[float]] = {}
    after: int | None = 0
    while after is not None:
        part = asked(api, after=after, limit=5)
        index |= dict(zip(part["ids"], part["rows"], strict=True))
        after = part["more"]
    return index, part["version"], part["log"]


def test_other_runs_have_no_rows(shared: Api) -> None:
    assert shared.call("GET", "/api/v1/embeddings/changes", Role.READER).status_code == 404
