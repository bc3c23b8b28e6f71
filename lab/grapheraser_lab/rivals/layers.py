"""Steps of factors along the edges of a graph, as kernels for a GPU."""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from __future__ import annotations

import triton  # type: ignore[import-not-found, import-untyped, unused-ignore]
import triton.language as tl  # type: ignore[import-not-found, import-untyped, unused-ignore]

_EDGES = 16


@triton.jit
def _gather(
    rows, first, ends, values, base, table, out,
    COMPACT: tl.constexpr, WIDTH: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0)
    row = tl.load(rows + at)
    unit, last = tl.arange(0, WIDTH), tl.load(first + row + 1)
    total = tl.zeros((EDGES, WIDTH), tl.float32)
    for e0 in range(tl.load(first + row), last, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < last
        other = tl.load(ends + e, mask=inside, other=0)
        value = tl.load(values + e, mask=inside, other=0.0)
        places = table + other[:, None] * WIDTH + unit[None, :]
        total += value[:, None] * tl.load(places, mask=inside[:, None], other=0.0)
    found = tl.load(base + row * WIDTH + unit) + tl.sum(total, axis=0)
    tl.store(out + (at if COMPACT else row) * WIDTH + unit, found)


@triton.jit
def _scatter(
    rows, first, ends, values, parts, out, WIDTH: tl.constexpr, EDGES: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0)
    row = tl.load(rows + at)
    unit, last = tl.arange(0, WIDTH), tl.load(first + row + 1)
    part = tl.load(parts + at * WIDTH + unit)
    for e0 in range(tl.load(first + row), last, EDGES):
        e = e0 + tl.arange(0, EDGES)
        inside = e < last
        other = tl.load(ends + e, mask=inside, other=0)
        value = tl.load(values + e, mask=inside, other=0.0)
        places = out + other[:, None] * WIDTH + unit[None, :]
        tl.atomic_add(places, value[:, None] * part[None, :], mask=inside[:, None])


def gather(graph, rows, base, table, out, compact: bool) -> None:
    """Write ``base + graph @ table`` at some rows; compact: one after the other."""
    sizes = {"WIDTH": table.shape[1], "EDGES": _EDGES}
    _gather[(len(rows),)](rows, *graph, base, table, out, compact, **sizes, num_warps=2)


def scatter(graph, rows, parts, out) -> None:
    """Add ``graph @ x`` to ``out``, where x is the sum of ``parts`` at their rows."""
    sizes = {"WIDTH": parts.shape[1], "EDGES": _EDGES}
    _scatter[(len(rows),)](rows, *graph, parts, out, **sizes, num_warps=2)
