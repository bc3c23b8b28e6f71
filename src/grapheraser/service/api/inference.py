"""Predictions by the Open Inference Protocol v2, so that existing clients work.

A model has one version at a time: the size of the log of its receipts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from numpy.typing import NDArray
from pydantic import BaseModel

from grapheraser.environment import VERSION
from grapheraser.service.api.access import READERS, route
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses, unknown
from grapheraser.service.api.tensors import (
    LENGTH_HEADER,
    Inference,
    Tensor,
    read_inference,
    write_inference,
)
from grapheraser.service.api.tensors import wrong as _wrong

router = APIRouter(prefix="/v2", tags=["inference"])
_Model = Annotated[str, Path(min_length=1, max_length=200, description="Name of the model.")]
_Version = Annotated[str, Path(pattern="^[0-9]{1,18}$", description="Version of the model.")]
# By the dtype of an array, less its order of bytes.
_DATATYPES = {"f4": "FP32", "f8": "FP64", "i8": "INT64", "O": "BYTES"}


class ServerMetadata(BaseModel):
    """The server."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """The shape and type of a tensor; -1 stands for any number."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """The inputs and outputs of a model."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ModelReady(BaseModel):
    """A model that can be asked."""

    name: str
    ready: bool = True


@router.get("/health/live", summary="Is the server alive?")
async def live() -> dict[str, bool]:
    """Answers whenever the process does."""
    return {"live": True}


@router.get("/health/ready", summary="Is the server ready?", responses=responses(503))
def ready(parts: Given) -> dict[str, bool]:
    """Answers once there is a model to ask."""
    del parts
    return {"ready": True}


@router.get("", **route("About the server", READERS))
async def server() -> ServerMetadata:
    """Name, version and extensions."""
    return ServerMetadata(name="grapheraser", version=VERSION, extensions=["binary_tensor_data"])


@router.get("/models/{model}", **route("About the model", READERS, 404))
def metadata(model: _Model, parts: Given) -> ModelMetadata:
    """Describe the inputs and outputs of the model."""
    return _described(parts, _checked(parts, model))


@router.get("/models/{model}/versions/{version}", **route("About a version", READERS, 404))
def version_metadata(model: _Model, version: _Version, parts: Given) -> ModelMetadata:
    """Describe the inputs and outputs of a version of the model."""
    return _described(parts, _checked(parts, model, version))


@router.get("/models/{model}/ready", **route("Is the model ready?", READERS, 404))
def model_ready(model: _Model, parts: Given) -> ModelReady:
    """Answers if the model can be asked."""
    _checked(parts, model)
    return ModelReady(name=model)


@router.get(
    "/models/{model}/versions/{version}/ready", **route("Is a version ready?", READERS, 404)
)
def version_ready(model: _Model, version: _Version, parts: Given) -> ModelReady:
    """Answers if this version of the model can be asked."""
    _checked(parts, model, version)
    return ModelReady(name=model)


def _infer(summary: str) -> dict[str, Any]:
    """Describe a route that predicts."""

    def body(name: str) -> dict[str, Any]:
        return {"schema": {"$ref": f"#/components/schemas/{name}"}}

    raw = {"schema": {"type": "string", "format": "binary"}}
    taken = {"application/json": body("InferenceRequest"), "application/octet-stream": raw}
    ok = {
        "description": "The prediction; JSON, or JSON and raw tensors.",
        "content": {"application/json": body("InferenceResponse"), "application/octet-stream": {}},
    }
    return {
        **route(summary, READERS, 404, 413, ok=ok),
        "response_class": Response,
        "openapi_extra": {"requestBody": {"required": True, "content": taken}},
    }


@router.post("/models/{model}/infer", **_infer("Predict"))
async def infer(request: Request, model: _Model, parts: Given) -> Response:
    """Predict the classes of nodes, the links of pairs, facts, or the items of users."""
    return await _inferred(request, model, None, parts)


@router.post("/models/{model}/versions/{version}/infer", **_infer("Predict by a version"))
async def infer_by_version(
    request: Request, model: _Model, version: _Version, parts: Given
) -> Response:
    """Predict, if this version is still the one that is served."""
    return await _inferred(request, model, version, parts)


async def _inferred(request: Request, model: str, version: str | None, parts: Parts) -> Response:
    _checked(parts, model, version)
    asked = read_inference(await request.body(), request.headers.get(LENGTH_HEADER))
    if parts.served.now.answers is not None:  # a lookup is quicker than another thread
        body, headers = _answered(parts, asked, version)
    else:
        body, headers = await run_in_threadpool(_answered, parts, asked, version)
    return Response(body, headers=headers)


def _described(parts: Parts, version: int) -> ModelMetadata:
    eraser, question = parts.served.now.model, parts.served.question
    datatype = "BYTES" if eraser.graph_.named or question.by_text else "INT64"
    shape = [-1] if question.ends == 1 else [-1, question.ends]
    none = question.values(eraser, np.zeros([0, *shape[1:]], dtype=np.int64))
    return ModelMetadata(
        name=parts.name,
        versions=[str(version)],
        platform="grapheraser",
        inputs=[TensorMetadata(name=question.asks, datatype=datatype, shape=shape)],
        outputs=[
            TensorMetadata(
                name=tensor.name, datatype=tensor.datatype, shape=[-1, *tensor.values.shape[1:]]
            )
            for tensor in _tensors(question.outputs(eraser.graph_, none))
        ],
    )


def _checked(parts: Parts, model: str, version: str | None = None) -> int:
    """Return the current version; refuse another model, and a version that is gone."""
    if model != parts.name:
        raise unknown("model")
    current = parts.served.now.version
    if version is not None and int(version) != current:
        raise _gone(current)
    return current


def _gone(current: int) -> Problem:
    return Problem(
        404, "unknown-version", f"the model has one version, {current}; others are destroyed."
    )


def _answered(parts: Parts, asked: Inference, version: str | None) -> tuple[bytes, dict[str, str]]:
    """Answer a request, all of it by one version."""
    ids = _ids(parts, asked)
    values, current = parts.served.predict(ids)
    graph = parts.served.now.model.graph_
    outputs = _tensors(parts.served.question.outputs(graph, values))
    if version is not None and int(version) != current:
        raise _gone(current)  # published in the meantime
    parts.metrics.predictions.inc(len(ids))
    return write_inference(parts.name, current, asked, _chosen(asked, outputs))


def _ids(parts: Parts, asked: Inference) -> Any:
    """Return the ids or names of nodes, pairs of them, or facts, that are asked about."""
    question = parts.served.question
    wanted, columns = question.asks, question.ends
    if set(asked.inputs) != {wanted}:
        raise _wrong(f"the model takes one input, '{wanted}'.")
    tensor = asked.inputs[wanted]
    named = parts.served.now.model.graph_.named or question.by_text
    if (tensor.datatype == "BYTES") is not named:
        raise _wrong(f"{wanted} of this run are {'BYTES: names' if named else 'INT64: ids'}.")
    shape = tensor.values.shape
    if columns > 1 and (len(shape) != 2 or shape[1] != columns):
        raise _wrong(f"the shape of {wanted} must be [n, {columns}].")
    if columns == 1 and len(shape) == 2 and shape[1] != 1:
        raise _wrong(f"the shape of {wanted} must be [n] or [n, 1].")
    if len(tensor.values) > parts.settings.predict_most:
        raise _wrong(f"at most {parts.settings.predict_most} are predicted at once.")
    return tensor.values if columns > 1 else tensor.values.ravel()


def _tensors(outputs: Mapping[str, NDArray[Any]]) -> list[Tensor]:
    return [Tensor(name, _DATATYPES[array.dtype.str[1:]], array) for name, array in outputs.items()]


def _chosen(asked: Inference, outputs: list[Tensor]) -> list[Tensor]:
    if asked.outputs is None:
        return [Tensor(t.name, t.datatype, t.values, asked.binary) for t in outputs]
    known = {tensor.name: tensor for tensor in outputs}
    if not asked.outputs.keys() <= known.keys():
        raise _wrong(f"the model gives {', '.join(known)}.")
    return [
        Tensor(name, known[name].datatype, known[name].values, binary)
        for name, binary in asked.outputs.items()
    ]
