"""Requests and responses of the Open Inference Protocol v2, as bytes and as arrays.

A body is JSON. With the binary data extension it is JSON, whose length a header tells, and then the
raw elements of tensors, in the order in which they are named.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from grapheraser.service.api.problems import Problem
from grapheraser.untrusted import parse_json

LENGTH_HEADER = "Inference-Header-Content-Length"
_DTYPES: dict[str, np.dtype[Any]] = {
    "INT64": np.dtype("<i8"),
    "FP32": np.dtype("<f4"),
    "FP64": np.dtype("<f8"),
}
_LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Tensor:
    """A tensor of INT64, FP32, FP64 or BYTES (texts, as objects); ``binary``: sent as raw bytes."""

    name: str
    datatype: str
    values: NDArray[Any]
    binary: bool = False


@dataclass(frozen=True)
class Inference:
    """A question to the model."""

    inputs: Mapping[str, Tensor]
    # Names of the tensors to answer with, and whether as raw bytes; None: all.
    outputs: Mapping[str, bool] | None = None
    id: str | None = None  # to be repeated in the answer
    binary: bool = False  # whether outputs that are not named are sent as raw bytes


class InferenceTensor(BaseModel):
    """A tensor of a request or an answer."""

    name: str
    datatype: str
    shape: list[int]
    data: list[Any] | None = Field(default=None, description="Absent where sent as raw bytes.")
    parameters: dict[str, Any] | None = None


class InferenceOutput(BaseModel):
    """A tensor to answer with."""

    name: str
    parameters: dict[str, Any] | None = None


class InferenceRequest(BaseModel):
    """A request to predict."""

    id: str | None = None
    inputs: list[InferenceTensor]
    outputs: list[InferenceOutput] | None = None
    parameters: dict[str, Any] | None = None


class InferenceResponse(BaseModel):
    """A prediction."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[InferenceTensor]


def read_inference(body: bytes, header_length: str | None) -> Inference:
    """Read the body of a request; ``header_length`` is the header of the binary data extension."""
    size = len(body)
    if header_length is not None:
        if not (header_length.isascii() and header_length.isdigit()) or len(header_length) > 12:
            raise wrong(f"the header {LENGTH_HEADER} must be a number.")
        size = int(header_length)
        if size > len(body):
            raise wrong(f"the header {LENGTH_HEADER} exceeds the body.")
    try:
        found = InferenceRequest.model_validate(parse_json(body[:size], len(body)), strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        where = "/".join(map(str, first["loc"])) or "the body"
        raise wrong(f"{where[:200]}: {first['msg']}.") from None
    except ValueError:
        raise wrong("the body is not JSON.") from None
    raw = _Raw(body[size:])
    inputs = {part.name: _input(part, raw) for part in found.inputs}
    if not raw.is_empty:
        raise wrong("there are more raw bytes than the inputs have.")
    if len(inputs) < len(found.inputs):
        raise wrong("an input is named twice.")
    binary = (found.parameters or {}).get("binary_data_output", False) is True
    outputs = None if found.outputs is None else _outputs(found.outputs, binary=binary)
    return Inference(inputs, outputs, found.id, binary)


def write_inference(
    model: str, version: int, asked: Inference, outputs: Sequence[Tensor]
) -> tuple[bytes, dict[str, str]]:
    """Write the body of an answer, and its headers."""
    raw: list[bytes] = []
    described = []
    for tensor in outputs:
        entry: dict[str, Any] = {
            "name": tensor.name,
            "datatype": tensor.datatype,
            "shape": list(tensor.values.shape),
        }
        if tensor.binary:
            content = _raw_bytes(tensor)
            raw.append(content)
            entry["parameters"] = {"binary_data_size": len(content)}
        else:
            entry["data"] = tensor.values.ravel().tolist()
        described.append(entry)
    found: dict[str, Any] = {"model_name": model, "model_version": str(version)}
    if asked.id is not None:
        found["id"] = asked.id
    head = json.dumps({**found, "outputs": described}, separators=(",", ":")).encode()
    if not raw:
        return head, {"Content-Type": "application/json"}
    headers = {"Content-Type": "application/octet-stream", LENGTH_HEADER: str(len(head))}
    return b"".join([head, *raw]), headers


def wrong(detail: str) -> Problem:
    """Make the problem of a request that breaks the protocol, or is for another model."""
    return Problem(400, "invalid-inference", detail)


@dataclass
class _Raw:
    """Bytes that are read from the front."""

    content: bytes
    at: int = field(default=0)

    def take(self, size: int) -> bytes:
        if size > len(self.content) - self.at:
            raise wrong("there are fewer raw bytes than the inputs have.")
        self.at += size
        return self.content[self.at - size : self.at]

    @property
    def is_empty(self) -> bool:
        return self.at == len(self.content)


def _input(part: InferenceTensor, raw: _Raw) -> Tensor:
    shape, datatype = part.shape, part.datatype
    if datatype not in ("INT64", "BYTES"):
        raise wrong("the datatype of an input must be INT64 or BYTES.")
    if not 1 <= len(shape) <= 2 or min(shape) < 0:
        raise wrong("the shape of an input must be one or two whole numbers.")
    length = (part.parameters or {}).get("binary_data_size")
    if length is None:
        flat = _flat(part.data or [], len(shape))
    elif type(length) is not int or length < 0 or part.data is not None:
        raise wrong("binary_data_size must be a whole number, and come without data.")
    elif datatype == "BYTES":
        flat = _texts(raw.take(length))
    else:
        content = raw.take(length)
        if len(content) % 8:
            raise wrong("the raw bytes of an INT64 input must be 8 for each element.")
        flat = np.frombuffer(content, _DTYPES["INT64"]).tolist()
    size = math.prod(shape)
    if len(flat) != size:
        raise wrong(f"an input of the shape {shape} has {size} elements (found {len(flat)}).")
    return Tensor(part.name, datatype, _array(flat, datatype).reshape(shape))


def _flat(data: list[Any], depth: int) -> list[Any]:
    """Return the elements of a tensor, which may be given flat or nested."""
    if depth == 2 and data and all(isinstance(row, list) for row in data):
        return [value for row in data for value in row]
    return data


def _array(flat: list[Any], datatype: str) -> NDArray[Any]:
    if datatype == "INT64":
        if any(type(value) is not int or not -(2**63) <= value < 2**63 for value in flat):
            raise wrong("the elements of an INT64 input must be 64-bit integers.")
        return np.array(flat, dtype=np.int64)
    if any(not isinstance(value, str) for value in flat):
        raise wrong("the elements of a BYTES input must be texts.")
    made = np.empty(len(flat), dtype=object)
    made[:] = flat
    return made


def _texts(content: bytes) -> list[str]:
    """Read texts, each with its length before it."""
    found, at = [], 0
    try:
        while at < len(content):
            (length,) = _LENGTH.unpack_from(content, at)
            at += _LENGTH.size
            text = content[at : at + length]
            if len(text) < length:
                raise wrong("a BYTES input ends in the middle of an element.")
            found.append(text.decode())
            at += length
    except (struct.error, UnicodeDecodeError):
        raise wrong("a BYTES input must be UTF-8 texts, each after its length.") from None
    return found


def _raw_bytes(tensor: Tensor) -> bytes:
    if tensor.datatype != "BYTES":
        return np.ascontiguousarray(tensor.values, _DTYPES[tensor.datatype]).tobytes()
    texts = [str(value).encode() for value in tensor.values.ravel()]
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts)


def _outputs(named: Sequence[InferenceOutput], *, binary: bool) -> dict[str, bool]:
    if any("classification" in (part.parameters or {}) for part in named):
        raise wrong("the classification extension is not supported.")
    return {part.name: (part.parameters or {}).get("binary_data", binary) is True for part in named}
