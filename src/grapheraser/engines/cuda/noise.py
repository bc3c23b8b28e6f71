"""Randomness on the device: the hashes of `seeding` and of `cpu.noise`, bit for bit."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]


@triton.jit
def mixed(z):
    """Finalise as splitmix64 does, on uint64."""
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def row_key(seed, id_key, epoch, LAYER: tl.constexpr):
    """Return a node's uint32 key for one layer and epoch; seed and id_key hold uint64 bits."""
    turn = (epoch * 8 + (LAYER + 1)).to(tl.uint64)
    place = mixed(seed.to(tl.uint64) + turn * 0x9E3779B97F4A7C15)
    return (mixed(id_key.to(tl.uint64) + place) >> 32).to(tl.uint32)


@triton.jit
def edge_key(target_key, source_id_key):
    """Return an edge's uint32 key, from the row key of its target."""
    z = source_id_key.to(tl.uint64) ^ target_key.to(tl.uint64)
    return (mixed(z) >> 32).to(tl.uint32)


@triton.jit
def is_kept(key, unit, LIMIT: tl.constexpr):
    """Tell whether dropout keeps a unit of the row (or edge) with this key."""
    h = key ^ (unit.to(tl.uint32) * 0x9E3779B1)
    h = (h ^ (h >> 16)) * 0x7FEB352D
    h = (h ^ (h >> 15)) * 0x846CA68B
    h = h ^ (h >> 16)
    return h.to(tl.int64) >= LIMIT


@triton.jit
def kept_scale(key, unit, LIMIT: tl.constexpr):
    """Return dropout's factor of a unit: 0, or the inverse of the share of units kept."""
    scale: tl.constexpr = 1.0 / (1.0 - LIMIT / 4294967296.0)
    return tl.where(is_kept(key, unit, LIMIT), scale, 0.0)


@triton.jit
def keyed_hash(number, key):
    """`seeding.keyed_hash` of a number; ``key`` holds uint64 bits."""
    z = number.to(tl.uint64) * 0x9E3779B97F4A7C15 + key.to(tl.uint64)
    for _ in tl.static_range(2):
        z = mixed(z) + 0x9E3779B97F4A7C15
    return z


@triton.jit
def keyed_entry(row, unit, keys, bound):
    """Return an entry of `models.initial_weights`: uniform in plus and minus ``bound``."""
    z = keyed_hash(row, tl.load(keys)) + keyed_hash(unit, tl.load(keys + 1))
    uniform = (mixed(z) >> 40).to(tl.int32).to(tl.float32) * 5.9604644775390625e-08
    return (2 * uniform - 1) * bound


@triton.jit
def initial_columns(
    weights, features, column_shard, keys, names, units, bounds,
    NUM_NAMES: tl.constexpr, WIDTH: tl.constexpr,
):  # fmt: skip
    """Write the first-layer weights of one column; grid ``[columns]``."""
    c = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    name = tl.load(names + at)
    real = name >= 0
    name = tl.maximum(name, 0)
    own = keys + (tl.load(column_shard + c).to(tl.int64) * NUM_NAMES + name) * 2
    row = tl.load(features + c)
    value = keyed_entry(row, tl.load(units + at), own, tl.load(bounds + name))
    tl.store(weights + c.to(tl.int64) * WIDTH + at, tl.where(real, value, 0.0))


@triton.jit
def initial_theta(
    theta, keys, names, rows, units, values,
    NUM_NAMES: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write all other parameters; grid ``[shards, blocks]``."""
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = at < SIZE
    name = tl.load(names + at, mask=inside, other=-1)
    own = keys + (tl.program_id(0).to(tl.int64) * NUM_NAMES + tl.maximum(name, 0)) * 2
    value = tl.load(values + at, mask=inside, other=0.0)
    row = tl.load(rows + at, mask=inside, other=0)
    unit = tl.load(units + at, mask=inside, other=0)
    found = tl.where(name >= 0, keyed_entry(row, unit, own, value), value)
    tl.store(theta + tl.program_id(0).to(tl.int64) * SIZE + at, found, mask=inside)
