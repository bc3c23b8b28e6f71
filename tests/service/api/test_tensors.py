"""Bodies of the Open Inference Protocol, against Triton's own encoder and decoder."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from grapheraser.service.api.problems import Problem
from grapheraser.service.api.tensors import (
    LENGTH_HEADER,
    Inference,
    Tensor,
    read_inference,
    write_inference,
)


def encoded(inputs: Any, outputs: Any = None) -> tuple[bytes, str | None]:
    body, size = InferenceServerClient.generate_request_body(inputs, outputs=outputs)
    return body, None if size is None else str(size)


@pytest.mark.parametrize("binary", [True, False])
def test_ids_are_read_as_the_client_wrote_them(binary: bool) -> None:
    ids = np.array([0, 7, 2**62], dtype=np.int64)
    given = InferInput("nodes", [3], "INT64")
    given.set_data_from_numpy(ids, binary_data=binary)
    asked = read_inference(*encoded([given]))
    assert asked.inputs["nodes"].values.tolist() == ids.tolist()
    assert asked.outputs is None
    assert asked.binary is True  # Triton's client asks for raw bytes where it names no outputs


@pytest.mark.parametrize("binary", [True, False])
def test_names_are_read_as_the_client_wrote_them(binary: bool) -> None:
    names = np.array([["ada", "bób"], ["x" * 300, "日本"]], dtype=object)
    given = InferInput("pairs", [2, 2], "BYTES")
    given.set_data_from_numpy(names, binary_data=binary)
    asked = read_inference(*encoded([given]))
    assert asked.inputs["pairs"].values.tolist() == names.tolist()


@pytest.mark.parametrize("binary", [True, False])
def test_answers_are_read_by_the_client_as_they_were_write_inference(binary: bool) -> None:
    posteriors = np.array([[0.25, 0.75], [1.0, 0.0]], dtype=np.float32)
    words = np.array(["red", "grün"], dtype=object)
    tensors = [
        Tensor("posteriors", "FP32", posteriors, binary),
        Tensor("classes", "INT64", np.array([1, 0]), not binary),
        Tensor("class_names", "BYTES", words, binary),
    ]
    body, headers = write_inference("people", 3, Inference({}, id="q1"), tensors)
    size = headers.get(LENGTH_HEADER)
    result = InferenceServerClient.parse_response_body(
        body, header_length=None if size is None else int(size)
    )
    np.testing.assert_array_equal(result.as_numpy("posteriors"), posteriors)
    np.testing.assert_array_equal(result.as_numpy("classes"), [1, 0])
    found = [w.decode() if isinstance(w, bytes) else w for w in result.as_numpy("class_names")]
    assert found == ["red", "grün"]
    response = result.get_response()
    assert (response["model_name"], response["model_version"], response["id"]) == (
        *("people", "3", "q1"),
    )


def test_outputs_that_are_named_are_chosen() -> None:
    given = InferInput("nodes", [1], "INT64")
    given.set_data_from_numpy(np.array([1], dtype=np.int64))
    outputs = [
        InferRequestedOutput("classes", binary_data=False),
        InferRequestedOutput("posteriors", binary_data=True),
    ]
    asked = read_inference(*encoded([given], outputs))
    assert asked.outputs == {"classes": False, "posteriors": True}


def body(**changes: Any) -> bytes:
    tensor = {"name": "nodes", "datatype": "INT64", "shape": [2], "data": [1, 2]}
    return json.dumps({"inputs": [{**tensor, **changes}]}).encode()


BAD: dict[str, tuple[bytes, str | None]] = {
    "no JSON": (b"{", None),
    "no object": (b"[]", None),
    "deep": (b"[" * 100_000, None),
    "no inputs": (b"{}", None),
    "no list": (b'{"inputs": 1}', None),
    "no tensor": (b'{"inputs": [1]}', None),
    "another datatype": (body(datatype="FP32"), None),
    "another length": (body(data=[1]), None),
    "a negative shape": (body(shape=[-2]), None),
    "a shape of text": (body(shape=["2"]), None),
    "no shape": (body(shape=[]), None),
    "three axes": (body(shape=[1, 2, 1]), None),
    "a float": (body(data=[1.0, 2]), None),
    "a bool": (body(data=[True, 2]), None),
    "too large": (body(data=[2**63, 2]), None),
    "a huge shape": (body(shape=[2**62, 2**62]), None),
    "text for ids": (body(data=["1", "2"]), None),
    "a number for text": (body(datatype="BYTES"), None),
    "a header that is no number": (body(), "many"),
    "a header that is too large": (body(), "100000"),
    "raw bytes that are missing": (
        json.dumps(
            {
                "inputs": [
                    {
                        "name": "nodes",
                        "datatype": "INT64",
                        "shape": [2],
                        "parameters": {"binary_data_size": 16},
                    }
                ]
            }
        ).encode(),
        None,
    ),
    "raw bytes that nobody asked for": (body() + b"12345678", str(len(body()))),
    "an input twice": (
        json.dumps({"inputs": [json.loads(body())["inputs"][0]] * 2}).encode(),
        None,
    ),
}


@pytest.mark.parametrize(("content", "length"), BAD.values(), ids=BAD)
def test_whatever_else_is_a_problem(content: bytes, length: str | None) -> None:
    with pytest.raises(Problem) as caught:
        read_inference(content, length)
    assert caught.value.status == 400


@pytest.mark.parametrize("cut", range(1, 12))
def test_truncated_texts_are_a_problem(cut: int) -> None:
    given = InferInput("nodes", [2], "BYTES")
    given.set_data_from_numpy(np.array(["ada", "bob"], dtype=object))
    content, length = encoded([given])
    with pytest.raises(Problem):
        read_inference(content[:-cut], length)
