"""Predictions by the Open Inference Protocol v2, so that existing clients work.

A model has one version at a time: the size of the log of its receipts.
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from grapheraser.environment import VERSION
from grapheraser.service.api.access import Reader
from grapheraser.service.api.parts import Given, Parts
from grapheraser.service.api.problems import Problem, responses, unknown
from grapheraser.service.api.tensors import (
    LENGTH_HEADER,
    Inference,
    Tensor,
    read_inference,
    written,
)
from grapheraser.service.api.tensors import wrong as _wrong

router = APIRouter(prefix="/v2", tags=["inference"])
_ANSWERS = responses(401, 403, 404, 429, 503)
_Model = Annotated[str, Path(min_length=1, max_length=200, description="Name of the model.")]
_Version = Annotated[str, Path(pattern="^[0-9]{1,18}$", description="Version of the model.")]
NODES, PAIRS = "nodes", "pairs"
POSTERIORS, CLASSES, CLASS_NAMES, PROBABILITIES = (
    "posteriors",
    "classes",
    "class_names",
    "probabilities",
)


class ServerMetadata(BaseModel):
    """Who answers."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """What a tensor looks like; -1 stands for any number."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What a model takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ModelReady(BaseModel):
    """A model that can be asked."""

    name: str
    ready: bool = True


class InferenceTensor(BaseModel):
    """A tensor of a request or an answer."""

    name: str
    datatype: str
    shape: list[int]
    data: list[Any] | None = Field(default=None, description="Absent where sent as raw bytes.")
    parameters: dict[str, Any] | None = None


class InferenceRequest(BaseModel):
    """What to predict."""

    id: str | None = None
    inputs: list[InferenceTensor]
    outputs: list[dict[str, Any]] | None = None
    parameters: dict[str, Any] | None = None


class InferenceResponse(BaseModel):
    """What was predicted."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferenceTensor]


@router.get("/health/live", summary="Is the server alive?")
async def live() -> dict[str, bool]:
    """Answers whenever the process does."""
    return {"live": True}


@router.get("/health/ready", summary="Is the server ready?", responses=responses(503))
def ready(parts: Given) -> dict[str, bool]:
    """Whether there is a model to ask."""
    del parts
    return {"ready": True}


@router.get("", summary="About the server", responses=responses(401, 403, 429))
async def server(key: Reader) -> ServerMetadata:
    """Name, version and extensions."""
    del key
    return ServerMetadata(name="grapheraser", version=VERSION, extensions=["binary_tensor_data"])


@router.get("/models/{model}", summary="About the model", responses=_ANSWERS)
def metadata(model: _Model, key: Reader, parts: Given) -> ModelMetadata:
    """What the model takes and gives."""
    del key
    return described(parts, _checked(parts, model))


@router.get("/models/{model}/versions/{version}", summary="About a version", responses=_ANSWERS)
def version_metadata(model: _Model, version: _Version, key: Reader, parts: Given) -> ModelMetadata:
    """What a version of the model takes and gives."""
    del key
    return described(parts, _checked(parts, model, version))


@router.get("/models/{model}/ready", summary="Is the model ready?", responses=_ANSWERS)
def model_ready(model: _Model, key: Reader, parts: Given) -> ModelReady:
    """Whether the model can be asked."""
    del key
    _checked(parts, model)
    return ModelReady(name=model)


@router.get(
    "/models/{model}/versions/{version}/ready", summary="Is a version ready?", responses=_ANSWERS
)
def version_ready(model: _Model, version: _Version, key: Reader, parts: Given) -> ModelReady:
    """Whether this version of the model can be asked."""
    del key
    _checked(parts, model, version)
    return ModelReady(name=model)


_INFER: dict[str, Any] = {
    "responses": {
        200: {
            "description": "The prediction; JSON, or JSON and raw tensors.",
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/InferenceResponse"}},
                "application/octet-stream": {},
            },
        },
        **responses(401, 403, 404, 413, 429, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/InferenceRequest"}},
                "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            },
        }
    },
}


@router.post("/models/{model}/infer", summary="Predict", response_class=Response, **_INFER)
async def infer(request: Request, model: _Model, key: Reader, parts: Given) -> Response:
    """Predict the classes of nodes, or the links of pairs."""
    del key
    return await _inferred(request, model, None, parts)


@router.post(
    "/models/{model}/versions/{version}/infer",
    summary="Predict by a version",
    response_class=Response,
    **_INFER,
)
async def infer_by_version(
    request: Request, model: _Model, version: _Version, key: Reader, parts: Given
) -> Response:
    """The same, where this version is still the one that is served."""
    del key
    return await _inferred(request, model, version, parts)


async def _inferred(request: Request, model: str, version: str | None, parts: Parts) -> Response:
    _checked(parts, model, version)
    asked = read_inference(await request.body(), request.headers.get(LENGTH_HEADER))
    if parts.served.now.answers is not None:  # looked up, which is quicker than another thread
        body, headers = _answered(parts, asked, version)
    else:
        body, headers = await run_in_threadpool(_answered, parts, asked, version)
    return Response(body, headers=headers)


def described(parts: Parts, version: int) -> ModelMetadata:
    """The metadata of the model."""
    eraser = parts.served.now.model
    named, classes = eraser.graph_.named, eraser.graph_.num_classes
    datatype = "BYTES" if named else "INT64"
    if parts.served.is_for_links:
        inputs = [TensorMetadata(name=PAIRS, datatype=datatype, shape=[-1, 2])]
        outputs = [TensorMetadata(name=PROBABILITIES, datatype="FP32", shape=[-1])]
    else:
        inputs = [TensorMetadata(name=NODES, datatype=datatype, shape=[-1])]
        outputs = [
            TensorMetadata(name=POSTERIORS, datatype="FP32", shape=[-1, classes]),
            TensorMetadata(name=CLASSES, datatype="INT64", shape=[-1]),
            TensorMetadata(name=CLASS_NAMES, datatype="BYTES", shape=[-1]),
        ]
    return ModelMetadata(
        name=parts.name,
        versions=[str(version)],
        platform="grapheraser",
        inputs=inputs,
        outputs=outputs,
    )


def _checked(parts: Parts, model: str, version: str | None = None) -> int:
    """The current version; refuses another model, and a version that is gone."""
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
    """The answer to a request, all of it by one version."""
    ids = _ids(parts, asked)
    if parts.served.is_for_links:
        values, current = parts.served.predict_links(ids)
        outputs = [Tensor(PROBABILITIES, "FP32", values)]
    else:
        values, current = parts.served.predict_proba(ids)
        outputs = _classes(parts, values)
    if version is not None and int(version) != current:
        raise _gone(current)  # published in the meantime
    parts.metrics.predictions.inc(len(ids))
    return written(parts.name, current, asked, _chosen(asked, outputs))


def _ids(parts: Parts, asked: Inference) -> Any:
    """Node ids or names, or pairs of them, as the run's nodes have."""
    wanted = PAIRS if parts.served.is_for_links else NODES
    if set(asked.inputs) != {wanted}:
        raise _wrong(f"the model takes one input, '{wanted}'.")
    tensor = asked.inputs[wanted]
    named = parts.served.now.model.graph_.named
    if (tensor.datatype == "BYTES") is not named:
        raise _wrong(f"the nodes of this run are {'BYTES: names' if named else 'INT64: ids'}.")
    columns = 2 if wanted == PAIRS else 1
    shape = tensor.values.shape
    if columns == 2 and (len(shape) != 2 or shape[1] != 2):
        raise _wrong("the shape of pairs must be [n, 2].")
    if columns == 1 and len(shape) == 2 and shape[1] != 1:
        raise _wrong("the shape of nodes must be [n] or [n, 1].")
    if len(tensor.values) > parts.settings.predict_most:
        raise _wrong(f"at most {parts.settings.predict_most} are predicted at once.")
    return tensor.values if columns == 2 else tensor.values.ravel()


def _classes(parts: Parts, posteriors: Any) -> list[Tensor]:
    labels = posteriors.argmax(axis=1).astype(np.int64)
    names = parts.served.now.model.graph_.class_names
    words = np.array([str(names[i] if names else i) for i in labels], dtype=object)
    return [
        Tensor(POSTERIORS, "FP32", posteriors),
        Tensor(CLASSES, "INT64", labels),
        Tensor(CLASS_NAMES, "BYTES", words),
    ]


def _chosen(asked: Inference, outputs: list[Tensor]) -> list[Tensor]:
    if asked.outputs is None:
        return [Tensor(t.name, t.datatype, t.values, asked.binary) for t in outputs]
    known = {tensor.name: tensor for tensor in outputs}
    if unknown_names := set(asked.outputs) - known.keys():
        del unknown_names
        raise _wrong(f"the model gives {', '.join(known)}.")
    return [
        Tensor(name, known[name].datatype, known[name].values, binary)
        for name, binary in asked.outputs.items()
    ]
