"""The routes of the graph: the drawing, nodes and plans."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load

import grapheraser as ge
from grapheraser.service.api.keys import Role
from grapheraser.service.queue.requests import OUT_OF_SCOPE, RequestContent, State
from tests.service.api.conftest import Api, opened
from tests.strategies import small_graph


def layout(api: Api, role: Role = Role.OPERATOR, **headers: str) -> Any:
    path = "/api/v1/graph/layout?wait=30"
    return api.call("GET", path, role, headers={k.replace("_", "-"): v for k, v in headers.items()})


def about(content: bytes) -> dict[str, Any]:
    (size,) = struct.unpack("<Q", content[:8])
    found: dict[str, Any] = json.loads(json.loads(content[8 : 8 + size])["__metadata__"]["drawing"])
    return found


def graph_of(api: Api) -> ge.Graph:
    return api.service.served.now.model.graph_


def show(api: Api, node: object, role: Role = Role.OPERATOR) -> Any:
    return api.call("POST", "/api/v1/nodes/show", role, json={"node": node})


def plan(api: Api, role: Role = Role.OPERATOR, **body: Any) -> Any:
    return api.call("POST", "/api/v1/plan", role, json=body)


def test_the_drawing_is_sent_once_per_version_and_drops_what_is_forgotten(api: Api) -> None:
    first = layout(api)
    assert first.status_code == 200
    assert first.headers["cache-control"] == "no-store"
    known = {"If-None-Match": first.headers["etag"]}
    same = api.call("GET", "/api/v1/graph/layout", Role.OPERATOR, headers=known)
    assert (same.status_code, same.content) == (304, b"")
    gone = int(graph_of(api).train_nodes[0])
    assert gone in load(first.content)["ids"]
    api.submit(nodes=[gone])
    api.work()
    second = layout(api, If_None_Match=first.headers["etag"])
    assert gone not in load(second.content)["ids"]
    assert about(second.content)["version"] == 1
    while not about(second.content)["settled"]:
        second = layout(api, If_None_Match=second.headers["etag"])
    assert about(second.content)["nodes"] == graph_of(api).num_nodes


def test_before_it_is_laid_out_a_caller_is_told_to_ask_again(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.parts.drawings, "now", lambda: None)
    answer = api.call("GET", "/api/v1/graph/layout", Role.OPERATOR)
    assert (answer.status_code, answer.headers["retry-after"]) == (202, "1")
    assert answer.json() == {"status": "being laid out"}


@pytest.mark.parametrize("path", ["graph/layout", "nodes/find", "nodes/show"])
@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.OPERATOR, 200), (Role.READER, 403), (Role.AUDITOR, 403), (Role.REQUESTER, 403)],
)
def test_only_operators_see_the_graph(shared: Api, path: str, role: Role, status: int) -> None:
    node = int(graph_of(shared).ids[0])
    if path == "graph/layout":
        found = layout(shared, role)
    else:
        body = {"text": str(node)} if path == "nodes/find" else {"node": node}
        found = shared.call("POST", f"/api/v1/{path}", role, json=body)
    assert found.status_code == status


def test_a_node_is_shown_with_neighbours_prediction_and_who_decided(shared: Api) -> None:
    model = shared.service.served.now.model
    assert isinstance(model, ge.GraphEraser)
    node = int(model.graph_.train_nodes[3])
    found = show(shared, node).json()
    assert found["node"] == str(node)
    near = sorted(int(line["node"]) for line in found["neighbours"])
    assert near == model.graph_.neighbours(node).tolist()
    assert found["degree"] == len(near)
    given = {share["name"]: share["probability"] for share in found["posterior"]}
    wanted = model.predict_proba([node])[0]
    assert [given[str(k)] for k in range(len(wanted))] == pytest.approx(wanted.tolist())
    assert found["posterior"][0]["name"] == str(wanted.argmax())
    assert found["label"] == str(model.graph_.labels([node])[0])
    assert found["shard"] == model.partition_.shard_of([node])[0]
    assert found["role"] == "training"
    explained = model.explain(node)
    assert [m["member"] for m in found["members"]] == [said.member for said in explained.members]
    assert sum(m["weight"] for m in found["members"]) == pytest.approx(1.0)
    named = {m["member"]: m["shard"] for m in found["members"]}
    assert all((shard is None) or name == f"shard {shard}" for name, shard in named.items())
    for line in found["neighbours"]:
        assert line["predicted"] == str(model.predict([int(line["node"])])[0])


def test_a_test_node_is_in_no_shard(shared: Api) -> None:
    found = show(shared, int(graph_of(shared).test_nodes[0])).json()
    assert (found["role"], found["shard"]) == ("test", None)


def test_unknown_nodes_and_names_are_refused(shared: Api) -> None:
    assert show(shared, 10**12).json()["type"].endswith("unknown-node")
    assert show(shared, "ada").status_code == 400


def test_nodes_are_found_by_the_beginning_of_their_ids(shared: Api) -> None:
    found = shared.call("POST", "/api/v1/nodes/find", json={"text": "1", "limit": 3}).json()
    begin = [str(node) for node in graph_of(shared).ids if str(node).startswith("1")]
    assert [line["node"] for line in found["nodes"]] == sorted(begin, key=int)[:3]
    assert found["more"]
    none = shared.call("POST", "/api/v1/nodes/find", json={"text": "nobody"}).json()
    assert (none["nodes"], none["more"]) == ([], False)


def test_a_plan_says_what_the_request_then_does(api: Api) -> None:
    model = api.service.served.now.model
    nodes = [int(node) for node in model.graph_.train_nodes[:2]]
    found = plan(api, Role.OPERATOR, nodes=nodes).json()
    wanted = model.plan(ge.Nodes(nodes))
    assert [s["shard"] for s in found["shards"]] == [s.shard for s in wanted.shards]
    assert found["cost"]["shards"] == len(wanted.retrain)
    assert found["cost"]["of_shards"] == len(model.shards_)
    left = sum(s["left"] for s in found["shards"] if s["shard"] in wanted.retrain)
    assert found["cost"]["nodes"] == left
    assert found["cost"]["of_nodes"] == model.partition_.num_nodes - 2
    assert found["cost"]["seconds"] is None
    assert (found["counts"], found["missing"]) == ({"nodes": 2}, 0)
    assert found["statement"] == "exact"
    assert found["out_of_scope"] == list(OUT_OF_SCOPE)
    assert api.service.queue.counts()[State.RECEIVED] == 0
    before = {s: w.digest for s, w in model.shards_.items()}
    api.submit(nodes=nodes)
    api.work()
    after = {s: w.digest for s, w in api.service.served.now.model.shards_.items()}
    changed = {s for s in before if before[s] != after[s]}
    assert changed <= {s["shard"] for s in found["shards"]}
    assert plan(api, nodes=[int(model.graph_.train_nodes[5])]).json()["cost"]["seconds"] > 0


def test_a_plan_counts_what_is_not_there_and_refuses_nothing_at_all(shared: Api) -> None:
    node = int(graph_of(shared).train_nodes[0])
    assert plan(shared, nodes=[node, 10**12]).json()["missing"] == 1
    refused = plan(shared, nodes=[10**12])
    assert refused.status_code == 400
    assert plan(shared).status_code == 400
    assert plan(shared, nodes=["ada"]).status_code == 400


def test_a_plan_for_an_edge_between_shards_retrains_nothing(shared: Api) -> None:
    model = shared.service.served.now.model
    edges = model.graph_.edges.reshape(-1, 2)
    shards = model.partition_.shard_or_none(edges.ravel()).reshape(-1, 2)
    crossing = (shards >= 0).all(axis=1) & (shards[:, 0] != shards[:, 1])
    cut = edges[np.flatnonzero(crossing)[0]].tolist()
    found = plan(shared, edges=[cut]).json()
    assert (found["shards"], found["cost"]["shards"], found["untrained"]) == ([], 0, 1)
    assert found["touched"] == 2


def test_a_plan_that_would_leave_nothing_is_refused_with_the_reason(shared: Api) -> None:
    answer = plan(shared, nodes=graph_of(shared).train_nodes.tolist())
    assert answer.status_code == 409
    assert "last" in answer.json()["detail"]


def test_a_plan_for_a_subject_is_that_for_what_belongs_to_it(api: Api) -> None:
    node = int(graph_of(api).train_nodes[0])
    api.service.queue.subjects.load([RequestContent(subject="ada@example.org", nodes=(node,))])
    assert plan(api, subject="ada@example.org").json()["counts"] == {"nodes": 1}
    assert plan(api, subject="bob@example.org").status_code == 404


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.READER])
def test_who_may_not_forget_gets_no_plan(shared: Api, role: Role) -> None:
    assert plan(shared, role, nodes=[1]).status_code == 403


def test_fresh_seeds_for_all_shards_are_part_of_the_cost(run: Path) -> None:
    with opened(run, refresh="all") as api:
        found = plan(api, nodes=[int(graph_of(api).train_nodes[0])]).json()
        assert found["cost"]["shards"] == found["cost"]["of_shards"] == 3


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    path = tmp_path_factory.mktemp("links") / "ties"
    ge.LinkEraser().fit(small_graph()).save(path)
    with opened(path) as made:
        yield made


def test_a_link_run_has_neighbours_and_no_classes(links: Api) -> None:
    node = int(graph_of(links).ids[0])
    found = show(links, node).json()
    assert (found["posterior"], found["members"], found["label"]) == (None, [], None)
    assert len(found["neighbours"]) == found["degree"]
    assert about(layout(links).content)["task"] == "links"
    edge = graph_of(links).edges.reshape(-1, 2)[0].tolist()
    assert plan(links, edges=[edge]).json()["counts"] == {"edges": 1}


def test_graphs_of_a_collection_are_not_looked_for_in_a_run_of_one_graph(shared: Api) -> None:
    refused = shared.call("POST", "/api/v1/graphs/show", Role.OPERATOR, json={"graph": 0})
    assert (refused.status_code, refused.json()["title"]) == (409, "Another task")
