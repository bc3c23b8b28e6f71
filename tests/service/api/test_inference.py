"""Predictions by the Open Inference Protocol, asked by Triton's own client."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput
from tritonclient.utils import InferenceServerException

import grapheraser as ge
from grapheraser.service.api.keys import Role
from tests.service.api.conftest import Api, opened
from tests.strategies import called, small_graph, with_names


def triton(api: Api) -> InferenceServerClient:
    return InferenceServerClient(str(api.client.base_url).removeprefix("http://").rstrip("/"))


def bearer(api: Api, role: Role = Role.READER) -> dict[str, str]:
    return {"Authorization": f"Bearer {api.keys[role]}"}


def tensor(name: str, values: Any, datatype: str = "INT64") -> InferInput:
    array = np.array(values, dtype=np.int64 if datatype == "INT64" else object)
    given = InferInput(name, list(array.shape), datatype)
    given.set_data_from_numpy(array)
    return given


def test_answers_are_sent_without_delay(shared: Api) -> None:
    node = int(shared.service.served.now.model.graph_.ids[0])
    body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [1], "data": [node]}]}
    took = []
    for _ in range(60):
        started = time.perf_counter()
        shared.call("POST", "/v2/models/people/infer", Role.READER, json=body)
        took.append(time.perf_counter() - started)
    # A system that hopes for more to send waits 0.04 s, but not on a new connection.
    assert min(took[-20:]) < 0.03


def test_triton_gets_the_bits_of_the_library(shared: Api) -> None:
    model = shared.service.served.now.model
    assert isinstance(model, ge.GraphEraser)
    ids, client, headers = model.graph_.ids, triton(shared), bearer(shared)
    assert client.is_server_live(headers)
    assert client.is_server_ready(headers)
    assert client.is_model_ready("people", "0", headers)
    for version in ("", "0"):
        found = client.infer("people", [tensor("nodes", ids)], version, headers=headers)
        assert found.as_numpy("posteriors").tobytes() == model.predict_proba(ids).tobytes()
        np.testing.assert_array_equal(found.as_numpy("classes"), model.predict(ids))
        assert found.get_response()["model_version"] == "0"
    described = client.get_model_metadata("people", "0", headers)
    assert described["inputs"] == [{"name": "nodes", "datatype": "INT64", "shape": [-1]}]
    assert client.get_server_metadata(headers)["name"] == "grapheraser"


def test_outputs_can_be_chosen_and_come_as_json(shared: Api) -> None:
    model = shared.service.served.now.model
    ids = model.graph_.ids[:4]
    outputs = [InferRequestedOutput("classes", binary_data=False)]
    found = triton(shared).infer(
        "people", [tensor("nodes", ids)], outputs=outputs, headers=bearer(shared), request_id="a"
    )
    assert [output["name"] for output in found.get_response()["outputs"]] == ["classes"]
    assert found.get_response()["id"] == "a"
    assert isinstance(model, ge.GraphEraser)
    np.testing.assert_array_equal(found.as_numpy("classes"), model.predict(ids))


def test_plain_json_works_without_any_client(shared: Api) -> None:
    node = int(shared.service.served.now.model.graph_.ids[0])
    body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [1], "data": [node]}]}
    found = shared.call("POST", "/v2/models/people/infer", Role.READER, json=body)
    assert found.status_code == 200
    posteriors = found.json()["outputs"][0]
    assert posteriors["name"] == "posteriors"
    assert sum(posteriors["data"]) == pytest.approx(1)


def test_the_version_is_the_size_of_the_log(api: Api) -> None:
    model = api.service.served.now.model
    gone, stays = (int(node) for node in model.graph_.train_nodes[:2])
    client, headers = triton(api), bearer(api)
    api.submit(nodes=[gone])
    api.work()
    found = client.infer("people", [tensor("nodes", [stays])], "1", headers=headers)
    assert found.get_response()["model_version"] == "1"
    with pytest.raises(InferenceServerException, match="one version, 1"):
        client.infer("people", [tensor("nodes", [stays])], "0", headers=headers)
    with pytest.raises(InferenceServerException, match="not in the graph"):
        client.infer("people", [tensor("nodes", [gone])], headers=headers)


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ([("nodes", [10**9], "INT64")], "not in the graph"),
        ([("people", [1], "INT64")], "one input, 'nodes'"),
        ([("nodes", ["ada"], "BYTES")], "INT64: ids"),
        ([("nodes", [[1, 2]], "INT64")], r"\[n\] or \[n, 1\]"),
        ([("nodes", [0] * 10_001, "INT64")], "at most 10000"),
    ],
)
def test_what_can_not_be_predicted_is_said(shared: Api, inputs: Any, said: str) -> None:
    given = [tensor(*one) for one in inputs]
    with pytest.raises(InferenceServerException, match=said):
        triton(shared).infer("people", given, headers=bearer(shared))


def test_other_models_and_outputs_are_unknown(shared: Api) -> None:
    client, headers = triton(shared), bearer(shared)
    with pytest.raises(InferenceServerException, match="no such model"):
        client.infer("cats", [tensor("nodes", [1])], headers=headers)
    node = shared.service.served.now.model.graph_.ids[:1]
    outputs = [InferRequestedOutput("colour")]
    with pytest.raises(InferenceServerException, match="the model gives"):
        client.infer("people", [tensor("nodes", node)], outputs=outputs, headers=headers)


def test_no_nodes_are_no_error(shared: Api) -> None:
    body = {"inputs": [{"name": "nodes", "datatype": "INT64", "shape": [0], "data": []}]}
    found = shared.call("POST", "/v2/models/people/infer", Role.READER, json=body)
    assert found.status_code == 200
    assert found.json()["outputs"][0]["data"] == []


@pytest.fixture(scope="module")
def links(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    path = tmp_path_factory.mktemp("links") / "ties"
    ge.LinkEraser().fit(small_graph()).save(path)
    with opened(path) as made:
        yield made


def test_links_are_predicted_for_pairs(links: Api) -> None:
    model = links.service.served.now.model
    assert isinstance(model, ge.LinkEraser)
    pairs = model.graph_.ids[:6].reshape(3, 2)
    found = triton(links).infer("ties", [tensor("pairs", pairs)], headers=bearer(links))
    expected = model.predict_proba(pairs)
    assert found.as_numpy("probabilities").tobytes() == expected.tobytes()
    described = links.call("GET", "/v2/models/ties", Role.READER).json()
    assert described["inputs"] == [{"name": "pairs", "datatype": "INT64", "shape": [-1, 2]}]
    with pytest.raises(InferenceServerException, match=r"\[n, 2\]"):
        triton(links).infer("ties", [tensor("pairs", [1, 2])], headers=bearer(links))
    assert links.call("GET", "/api/v1/model").json()["task"] == "links"


def test_edges_of_a_link_run_are_forgotten(links: Api) -> None:
    graph = links.service.served.now.model.graph_
    node = next(int(n) for n in graph.ids if len(graph.neighbours(int(n))))
    edge = [node, int(graph.neighbours(node)[0])]
    name = links.submit(edges=[edge]).json()["id"]
    links.work()
    assert links.call("GET", f"/api/v1/requests/{name}").json()["state"] == "completed"
    assert not links.service.served.now.model.graph_.has_edges(np.array([sorted(edge)])).any()


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    path = tmp_path_factory.mktemp("named") / "friends"
    ge.GraphEraser(num_shards=2, epochs=2).fit(with_names(small_graph())).save(path)
    with opened(path) as made:
        yield made


def test_names_are_bytes(named: Api) -> None:
    one, other = (called(node) for node in small_graph().train_nodes[:2])
    names = np.array([one, other], dtype=object)
    found = triton(named).infer("friends", [tensor("nodes", names, "BYTES")], headers=bearer(named))
    model = named.service.served.now.model
    assert isinstance(model, ge.GraphEraser)
    assert found.as_numpy("posteriors").tobytes() == model.predict_proba(list(names)).tobytes()
    described = named.call("GET", "/v2/models/friends", Role.READER).json()
    assert described["inputs"][0]["datatype"] == "BYTES"
    sent = named.submit(nodes=[one])
    assert sent.status_code == 202
    assert named.submit(nodes=[1]).status_code == 400
    named.work()
    path = f"/api/v1/requests/{sent.json()['id']}/receipt"
    (part,) = named.call("GET", path, Role.REQUESTER).json()["parts"]
    assert part["request"]["about"]["names"] == [one]


def test_paths_of_runs_name_models(run: Path) -> None:
    with opened(run, name="production") as api:
        assert api.call("GET", "/v2/models/production", Role.READER).status_code == 200
        assert api.call("GET", "/v2/models/people", Role.READER).status_code == 404
