"""The forward pass of every kind of model: as in `inference.forward`, on tensors of the GPU.

A function of the name of each kind gives logits; the processor makes posteriors of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
from numpy.typing import NDArray
from torch import Tensor

from grapheraser.kernels.vectors import LANES, padded
from grapheraser.models import ModelSpec
from grapheraser.models.constants import ACTIVATION_CODES, ELU, NO_ACTIVATION, NORM_EPS, RELU
from grapheraser.training.inference.cuda import kernels
from grapheraser.training.inference.gather import Gathered, Part
from grapheraser.training.inference.weights import WeightsByRole

# Rows of a program.
_ROWS, _MATMUL_ROWS = 4, 16
_WARPS = 1


class Features(NamedTuple):
    """CSR features of all that was gathered, on the device."""

    indptr: Tensor
    indices: Tensor
    data: Tensor
    num_features: int


class Hop(NamedTuple):
    """Edges of one ring, see `inference.rows.Hop`."""

    indptr: Tensor
    indices: Tensor
    degree: Tensor
    weights: Tensor
    edges: int

    @property
    def size(self) -> int:
        return len(self.indptr) - 1


class Field(NamedTuple):
    """The rows that the wanted logits depend on, see `inference.rows.Field`."""

    outer: Hop
    inner: Hop
    rows: Tensor
    features: Features


class Inputs(NamedTuple):
    """The first layer: where each feature has its row, and the matrices."""

    place: Tensor
    weights: tuple[Tensor, ...]
    whole: int


def features_of(gathered: Gathered, device: str) -> Features:
    """The features, sent to the device."""
    csr = gathered.x_indptr, gathered.x_indices, gathered.x_data
    indptr, indices, data = (torch.from_numpy(each).to(device) for each in csr)
    return Features(indptr, indices, data, gathered.num_features)


def field_of(part: Part, features: Features, hops: int) -> Field:
    """A part of what was gathered, sent to the device in one piece."""
    wanted = part.wanted if hops else 0
    numbers = part.numbers if hops else part.numbers[: part.wanted]
    edges = part.indices[: part.indptr[-1]]
    floats = [part.degree.view(np.int32), part.weights.view(np.int32)]
    pieces = [numbers, part.indptr.astype(np.int32), edges, *floats]
    sent = torch.from_numpy(np.concatenate(pieces)).to(features.data.device)
    rows, indptr, indices, *parts = torch.split(sent, [len(piece) for piece in pieces])
    degree, weights = (each.view(torch.float32) for each in parts)
    outer = Hop(indptr, indices, degree, weights, len(edges))
    inner = outer._replace(indptr=indptr[: wanted + 1], edges=int(part.indptr[wanted]))
    return Field(outer, inner, rows, features)


def logits(spec: ModelSpec, w: WeightsByRole, field: Field) -> Tensor:
    """What the softmax of one shard model is taken of ``[m, num_classes]``."""
    passed: Any = {"gcn": _gcn, "sage": _sage, "gat": _gat, "gin": _gin, "mlp": _mlp}[spec.kind]
    out: Tensor = passed(spec, w, field, _inputs(w, field.features))
    return out


def _inputs(w: WeightsByRole, features: Features) -> Inputs:
    device = features.data.device
    place = torch.zeros(features.num_features, dtype=torch.int32, device=device)
    columns = torch.from_numpy(w.columns).to(device).long()
    place[columns] = torch.arange(1, len(columns) + 1, dtype=torch.int32, device=device)
    width = w.inputs[0].shape[1]
    whole = width - width % (LANES * len(w.tile))
    return Inputs(place, tuple(torch.from_numpy(each).to(device) for each in w.inputs), whole)


# -- models --------------------------------------------------------------------------------------


def _gcn(spec: ModelSpec, w: WeightsByRole, field: Field, inputs: Inputs) -> Tensor:
    bias1, weight2, bias2 = _others(w, field, "bias1", "weight2", "bias2")
    h = _convolve(field.outer, spec.self_loops, _project(field, len(field.rows), inputs, 0))
    h = _activate(_add(h, bias1), ACTIVATION_CODES[spec.activation])
    return _add(_convolve(field.inner, spec.self_loops, _matmul(h, weight2)), bias2)


def _sage(spec: ModelSpec, w: WeightsByRole, field: Field, inputs: Inputs) -> Tensor:
    bias1, left2, right2, bias2 = _others(w, field, "bias1", "weight2", "bias2")
    h = _mean(field.outer, _project(field, len(field.rows), inputs, 0))
    h += _project(field, len(h), inputs, 1)
    h = _activate(_add(h, bias1), ACTIVATION_CODES[spec.activation])
    z = _mean(field.inner, _matmul(h, left2))
    z += _matmul(h[: len(z)], right2)
    return _add(z, bias2)


def _gat(spec: ModelSpec, w: WeightsByRole, field: Field, inputs: Inputs) -> Tensor:
    source1, target1, bias1 = _others(w, field, "att_src1", "att_dst1", "bias1")
    weight2, *skip2 = _others(w, field, "weight2")
    source2, target2, bias2 = _others(w, field, "att_src2", "att_dst2", "bias2")
    z = _project(field, len(field.rows), inputs, 0)
    h = _add(_attend(field.outer, spec, spec.heads, source1, target1, z), bias1)
    if skip2:
        h += _project(field, len(h), inputs, 1)
    h = _activate(h, ACTIVATION_CODES[spec.activation])
    z = _add(_attend(field.inner, spec, 1, source2, target2, _matmul(h, weight2)), bias2)
    if skip2:
        z += _matmul(h[: len(z)], skip2[0])
    return z


def _gin(spec: ModelSpec, w: WeightsByRole, field: Field, inputs: Inputs) -> Tensor:
    bias1, inner1, inner_bias1 = _others(w, field, "bias1", "weight2", "bias2")
    weight2, bias2, inner2, inner_bias2 = _others(w, field, "weight3", "bias3", "weight4", "bias4")
    act = ACTIVATION_CODES[spec.activation]
    z = _project(field, len(field.rows), inputs, 0)
    h = _activate(_add(_with_own(field.outer, spec.mean, z), bias1), RELU)
    h = _activate(_normalise(_add(_matmul(h, inner1), inner_bias1), w, 1), act)
    h = _activate(_add(_with_own(field.inner, spec.mean, _matmul(h, weight2)), bias2), RELU)
    h = _add(_matmul(h, inner2), inner_bias2)
    if not spec.linear_head:
        return h
    head, head_bias = _others(w, field, "head", "head_bias")
    return _add(_matmul(_activate(_normalise(h, w, 2), act), head), head_bias)


def _mlp(spec: ModelSpec, w: WeightsByRole, field: Field, inputs: Inputs) -> Tensor:
    act = ACTIVATION_CODES[spec.activation]
    bias1, weight2, bias2 = _others(w, field, "bias1", "weight2", "bias2")
    weight3, bias3 = _others(w, field, "weight3", "bias3")
    h = _activate(_add(_project(field, len(field.rows), inputs, 0), bias1), act)
    return _add(_matmul(_activate(_add(_matmul(h, weight2), bias2), act), weight3), bias3)


# -- pieces --------------------------------------------------------------------------------------


def _others(w: WeightsByRole, field: Field, *roles: str) -> Sequence[Tensor]:
    device = field.features.data.device
    return [torch.from_numpy(each).to(device) for each in w.of(*roles)]


def _add(z: Tensor, bias: Tensor) -> Tensor:
    return z.add_(bias) if len(bias) else z


def _activate(z: Tensor, code: int) -> Tensor:
    if code == RELU:
        return torch.where(z < 0, torch.zeros_like(z), z)
    if code == ELU:
        block = 1024
        kernels.elu[(triton.cdiv(z.numel(), block),)](z, z.numel(), block, **kernels.ROUNDED)
    else:
        assert code == NO_ACTIVATION
    return z


def _normalise(z: Tensor, w: WeightsByRole, number: int) -> Tensor:
    roles = (f"scale{number}", f"shift{number}", f"mean{number}", f"var{number}")
    weight, bias, mean, variance = w.of(*roles)
    if not len(weight):
        return z
    scale = weight / np.sqrt(variance + np.float32(NORM_EPS))
    mean_, scale_, bias_ = (torch.from_numpy(each).to(z.device) for each in (mean, scale, bias))
    return z.sub_(mean_).mul_(scale_).add_(bias_)


def _grid(count: int, width: int, rows: int) -> tuple[tuple[int, int], int]:
    units = min(64, triton.next_power_of_2(width))
    return (triton.cdiv(count, rows), triton.cdiv(width, units)), units


def _project(field: Field, count: int, inputs: Inputs, number: int) -> Tensor:
    weight, x = inputs.weights[number], field.features
    width = weight.shape[1]
    out = torch.empty((count, width), dtype=torch.float32, device=weight.device)
    if count:
        grid, units = _grid(count, width, _ROWS)
        kernels.project[grid](
            out, weight, inputs.place, field.rows, x.indptr, x.indices, x.data, count,
            width, inputs.whole, units, _ROWS, num_warps=_WARPS, **kernels.ROUNDED,
        )  # fmt: skip
    return out


def _matmul(h: Tensor, weight: Tensor) -> Tensor:
    (depth, width), count = weight.shape, len(h)
    out = torch.empty((count, width), dtype=torch.float32, device=h.device)
    if count:
        grid, units = _grid(count, width, _MATMUL_ROWS)
        kernels.matmul[grid](
            out, h, weight, count, depth, width, units, _MATMUL_ROWS, **kernels.ROUNDED
        )
    return out


def _neighbours(hop: Hop, z: Tensor, factors: Tensor | None, own: Tensor | None) -> Tensor:
    width = z.shape[1]
    out = torch.empty((hop.size, width), dtype=torch.float32, device=z.device)
    if hop.size:
        grid, units = _grid(hop.size, width, _ROWS)
        kernels.add_neighbours[grid](
            out, z, hop.indptr, hop.indices, z if factors is None else factors,
            z if own is None else own, hop.size, width, factors is not None, units, _ROWS,
            num_warps=_WARPS, **kernels.ROUNDED,
        )  # fmt: skip
    return out


def _convolve(hop: Hop, self_loops: bool, z: Tensor) -> Tensor:
    loop = 1.0 if self_loops else 0.0
    roots = torch.sqrt(hop.degree + loop)
    alive = roots[: hop.size] > 0
    here = torch.where(alive, 1.0 / roots[: hop.size], torch.zeros_like(roots[: hop.size]))
    counts = (hop.indptr[1:] - hop.indptr[:-1]).long()
    used = hop.indices[: hop.edges].long()
    factors = torch.repeat_interleave(here, counts, output_size=hop.edges) / roots[used]
    if len(hop.weights):
        factors = torch.where(roots[used] > 0, factors, torch.zeros_like(factors))
        factors *= hop.weights[: hop.edges]
    return _neighbours(hop, z, factors, here * here * loop)


def _mean(hop: Hop, z: Tensor) -> Tensor:
    counts = (hop.indptr[1:] - hop.indptr[:-1]).clamp(min=1).float()
    return _neighbours(hop, z, None, None).mul_((1.0 / counts)[:, None])


def _with_own(hop: Hop, averaged: bool, z: Tensor) -> Tensor:
    out = _mean(hop, z) if averaged else _neighbours(hop, z, None, None)
    return out.add_(z[: hop.size])


def _attend(
    hop: Hop, spec: ModelSpec, heads: int, source: Tensor, target: Tensor, z: Tensor
) -> Tensor:
    wide, count = z.shape[1], hop.size
    sources, targets = _scores(z, source, heads), _scores(z[:count], target, heads)
    out = torch.zeros((count, wide), dtype=torch.float32, device=z.device)
    if count:
        width = wide // heads
        units = triton.next_power_of_2(width)
        kernels.attend[(triton.cdiv(count, _ROWS), heads)](
            out, z, sources, targets, hop.indptr, hop.indices, count,
            int(spec.self_loops), sources.shape[1], wide, width, units, _ROWS,
            num_warps=_WARPS, **kernels.ROUNDED,
        )  # fmt: skip
    return out


def _scores(z: Tensor, weights: Tensor, heads: int) -> Tensor:
    wide = z.shape[1]
    blocks = torch.zeros((wide, padded(heads)), dtype=torch.float32, device=z.device)
    units = torch.arange(wide, device=z.device)
    blocks[units, units // (wide // heads)] = weights
    return _matmul(z, blocks)


def as_numpy(rows: Sequence[Tensor]) -> list[NDArray[np.float32]]:
    """Several matrices from the device, in one piece."""
    widths = [len(each) for each in rows]
    whole = torch.cat(list(rows)).cpu().numpy()
    return np.split(whole, np.cumsum(widths)[:-1])
