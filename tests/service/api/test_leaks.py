"""Nothing that a role may read tells whom a version forgot."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from grapheraser.service.api.keys import Role
from grapheraser.service.queue.requests import RequestContent
from tests.service.api.conftest import Api, opened
from tests.service.api.test_access import filled, operations

# Differ between any two services: random, or a time. F1 is that of another model.
VARIES = {
    *("at", "completed", "completed_at", "received", "deadline", "created", "processed"),
    *("digest", "receipt", "run", "id", "request", "checkpoint", "root", "proof", "leaf"),
    *("envelope", "f1", "median_seconds", "seconds", "next_deadline", "last_deadline"),
}
# Those who may read the graph see who is gone; the others must not.
BLIND = (Role.REQUESTER, Role.AUDITOR)


def steady(value: Any) -> Any:
    """An answer without what differs by chance."""
    if isinstance(value, dict):
        return {name: steady(one) for name, one in value.items() if name not in VARIES}
    return [steady(one) for one in value] if isinstance(value, list) else value


def read_by(api: Api, role: Role) -> Iterator[tuple[str, Any]]:
    """All that a role can read without a name in the path."""
    for method, path in operations(api):
        # Metrics count seconds; pages are made of the same answers, with times.
        if method != "GET" or path in ("/metrics", "/openapi.json", "/api/v1/audit"):
            continue
        more = "?seconds=0&after=0" if path.endswith("/events") else ""
        answer = api.call("GET", filled(path) + more, role)
        kind = answer.headers.get("content-type", "")
        if kind.startswith("application/json"):
            yield path, steady(json.loads(answer.text))
        elif "html" in kind:
            yield path, numbers_of(answer.text)


def numbers_of(page: str) -> list[str]:
    """The figures of a page's facts."""
    text = re.sub(r"<time.*?</time>|<script.*?</script>|<svg.*?</svg>", "", page, flags=re.S)
    return re.findall(r"<dt>(?:Nodes|Edges) left</dt><dd>([^<]*)</dd>", text)


def forgot(run: Path, folder: Path, node: int) -> dict[Role, dict[str, Any]]:
    with opened(run, database=f"sqlite:///{folder}/queue.db") as api:
        api.submit(Role.OPERATOR, nodes=[node])
        api.work()
        assert not api.service.served.now.model.graph_.contains(np.array([node]))[0]
        return {role: dict(read_by(api, role)) for role in Role}


@pytest.fixture
def two(run: Path, fitted: Path, tmp_path: Path) -> list[dict[Role, dict[str, Any]]]:
    """What can be read after the node with most neighbours was forgotten, or that with fewest."""
    with opened(run) as api:
        graph = api.service.served.now.model.graph_
    degrees = {int(node): len(graph.neighbours(int(node))) for node in graph.train_nodes}
    ends = max(degrees, key=degrees.__getitem__), min(degrees, key=degrees.__getitem__)
    assert degrees[ends[0]] > degrees[ends[1]]
    found = []
    for node in ends:
        folder = tmp_path / str(node)
        copy = Path(shutil.copytree(fitted, folder / "people"))
        found.append(forgot(copy, folder, node))
    return found


def test_what_blind_roles_read_does_not_depend_on_whom_a_version_forgot(
    two: list[dict[Role, dict[str, Any]]],
) -> None:
    hub, leaf = two
    for role in BLIND:
        assert hub[role].keys() == leaf[role].keys()
        for path, answer in hub[role].items():
            assert answer == leaf[role][path], (role, path)
    assert hub[Role.OPERATOR] != leaf[Role.OPERATOR]  # so that the test can fail


def test_no_series_is_kept_from_which_degrees_follow(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    for node in graph.train_nodes[:3]:
        api.submit(nodes=[int(node)])
        api.work()
    scores = api.call("GET", "/api/v1/scores", Role.OPERATOR).json()
    assert len(scores) == 4
    assert scores[0].keys() == {"version", "at", "nodes", "f1"}
    assert all(round(score["f1"], 2) == score["f1"] for score in scores)
    for role in Role:
        seen = api.call("GET", "/api/v1/scores", role)
        assert seen.is_success is (role in (Role.OPERATOR, Role.AUDITOR))


def test_a_requester_cannot_ask_what_is_in_the_graph(api: Api) -> None:
    graph = api.service.served.now.model.graph_
    node = int(graph.train_nodes[0])
    there, absent = int(graph.neighbours(node)[0]), 10**9
    for body in ({"edges": [[node, there]]}, {"edges": [[node, absent]]}, {"nodes": [absent]}):
        assert api.call("POST", "/api/v1/plan", Role.REQUESTER, json=body).status_code == 403
    api.service.queue.subjects.load([RequestContent(subject="ada", nodes=(node,))])

    def answered(**body: Any) -> Any:
        found = api.submit(**body)
        assert api.call(
            "DELETE", f"/api/v1/requests/{found.json()['id']}", Role.REQUESTER
        ).is_success
        return found.status_code, steady(found.json())

    assert answered(subject="ada") == answered(subject="nobody")
    assert answered(nodes=[node]) == answered(nodes=[absent])
    assert answered(edges=[[node, there]]) == answered(edges=[[node, absent]])
    assert api.submit(Role.OPERATOR, subject="nobody").status_code == 404
