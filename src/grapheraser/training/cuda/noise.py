"""Dropout on the device: the same hash as `cpu.noise`, so the same units are dropped."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]


@triton.jit
def mixed(z):
    """The finaliser of splitmix64, on uint64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def row_key(seed, id_key, epoch, LAYER: tl.constexpr):
    """uint32 key of a node for one layer in one epoch; seed and id_key hold uint64 bits."""
    turn = (epoch * 8 + (LAYER + 1)).to(tl.uint64)
    place = mixed(seed.to(tl.uint64) + turn * 0x9E3779B97F4A7C15)
    return (mixed(id_key.to(tl.uint64) + place) >> 32).to(tl.uint32)


@triton.jit
def edge_key(target_key, source_id_key):
    """uint32 key of an edge, from the row key of its target."""
    z = source_id_key.to(tl.uint64) ^ target_key.to(tl.uint64)
    return (mixed(z) >> 32).to(tl.uint32)


@triton.jit
def is_kept(key, unit, LIMIT: tl.constexpr):
    """Whether dropout keeps a unit of the row (or edge) with this key."""
    h = key ^ (unit.to(tl.uint32) * 0x9E3779B1)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    h = h ^ (h >> 16)
    return h.to(tl.int64) >= LIMIT


@triton.jit
def kept_scale(key, unit, LIMIT: tl.constexpr):
    """What dropout multiplies a unit by: 0, or the inverse of the share of units kept."""
    scale: tl.constexpr = 1.0 / (1.0 - LIMIT / 4294967296.0)
    return tl.where(is_kept(key, unit, LIMIT), scale, 0.0)
