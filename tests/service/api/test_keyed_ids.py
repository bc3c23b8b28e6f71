"""A run with keyed ids is asked by number; subjects, tombstones and receipts go by the ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import grapheraser as ge
from grapheraser.service.api.keys import Role
from grapheraser.service.worker.backup import make_backup, restore
from grapheraser.store.keys import KeyFolder
from tests.service.api.conftest import opened
from tests.strategies import small_graph


def test_numbers_are_forgotten_planned_and_shown_and_stay_forgotten(tmp_path: Path) -> None:
    plain, run = small_graph(), tmp_path / "people"
    ge.GraphEraser("closed-form").fit(plain.with_keyed_ids()).save(run)
    a, b, c = (int(node) for node in plain.train_nodes[:3])
    u, v = next(edge for edge in plain.edges.tolist() if not {*edge} & {a, b, c})
    with opened(run) as api:
        graph = api.service.served.now.model.graph_
        ids = graph.ids_of([a, b, c])
        database = api.service.settings.database
        make_backup(run, tmp_path / "backup", database=database)
        operator = Role.OPERATOR
        found = api.call("POST", "/api/v1/nodes/find", operator, json={"text": str(a)}).json()
        assert [node["node"] for node in found["nodes"]] == [str(ids[0])]
        shown = api.call("POST", "/api/v1/nodes/show", operator, json={"node": a}).json()
        assert shown["node"] == str(ids[0])
        planned = api.call("POST", "/api/v1/plan", operator, json={"nodes": [a, 10**9]}).json()
        assert (planned["counts"], planned["missing"]) == ({"nodes": 1}, 1)
        people = {"entries": [{"subject": "bea", "nodes": [b]}]}
        assert api.call("POST", "/api/v1/subjects", operator, json=people).status_code == 200
        sent = [api.submit(nodes=[a], edges=[[u, v]]), api.submit(subject="bea")]
        line = {"add_nodes": {"ids": [7001], "x": [[1.0] * plain.num_features], "y": [0]}}
        update = {"changes": [line]}
        sent.append(api.call("POST", "/api/v1/updates", operator, json=update))
        assert [answer.status_code for answer in sent] == [202] * 3, sent[-1].text
        api.work()
        for answer, parts in zip(sent[:2], (2, 1), strict=True):
            done = api.call("GET", answer.headers["Location"]).json()
            assert (done["state"], done["receipts"], done["reason"]) == ("completed", parts, None)
        now = api.service.served.now.model.graph_
        assert now.contains(ids).tolist() == [False, False, True]
        assert now.contains([7001]).all()
        assert api.service.queue.subjects.count() == 0, "nothing of who was erased is left"
    shutil.rmtree(run)
    restored = restore(tmp_path / "backup", run, database=database, keys=KeyFolder())
    assert restored.erased == 3
    assert not ge.GraphEraser.load(run).graph_.contains([a, b]).any()
