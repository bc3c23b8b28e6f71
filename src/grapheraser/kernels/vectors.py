"""Vectors that stay in registers, for numba.

numba leaves vectorising to LLVM, which keeps the running sum of a row in memory and may change
its mind with the width of the row. The kernels of this package are written on vectors instead: a
*tile* of 16, 32 or 64 lanes is loaded, computed with and stored as a whole. Each lane's arithmetic
is spelled out (fused multiply-adds included), so the bits do not depend on the compiler's choices,
and rows are padded to whole tiles, so there are no remainders to treat apart.

Inside ``@compiled`` functions::

    a = load(matrix, offset, tile)      # offset counts entries of the C-contiguous array
    a = fma(a, 0.5, b) + c * d          # a * 0.5 + b; a plain number stands for all lanes
    store(matrix, offset, a)

``tile`` is a tuple with one entry per 16 lanes, or empty for 8; its length is part of its numba
type, so each function is compiled for the widths that it meets.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

LANES = 16
Tile: TypeAlias = tuple[int, ...]
ONE: Tile = (0,)
HALF: Tile = ()
HALF_LANES = LANES // 2

_INT32, BYTES = ir.IntType(32), ir.IntType(8).as_pointer()


def _intrinsic(build: Callable[..., Any]) -> Any:
    """Numba's decorator; Any, since callers hand in operands and not what ``build`` takes."""
    return intrinsic(build)


def tile_for(width: int) -> tuple[int, ...]:
    """The widest tile that the whole vectors of a row of this many units split into."""
    vectors = width // LANES
    return (0,) * next(count for count in (4, 2, 1) if vectors % count == 0)


def padded(width: int) -> int:
    """The width rounded up to whole vectors."""
    return max(1, -(-width // LANES)) * LANES


class Lanes(types.Type):
    """The numba type of a vector: element type and number of lanes."""

    def __init__(self, dtype: Any, count: int) -> None:
        self.dtype = dtype
        self.count = count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Lanes) -> None:
        scalar = ir.FloatType() if fe_type.dtype == types.float32 else ir.DoubleType()
        super().__init__(dmm, fe_type, ir.VectorType(scalar, fe_type.count))  # type: ignore[no-untyped-call]


def _constant(lanes: ir.VectorType, value: float | int) -> ir.Constant:
    return ir.Constant(lanes, [value] * lanes.count)


def _splat(builder: Any, scalar: Any, lanes: ir.VectorType) -> Any:
    first = builder.insert_element(ir.Constant(lanes, ir.Undefined), scalar, _INT32(0))
    mask = ir.Constant(ir.VectorType(_INT32, lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(first, ir.Constant(lanes, ir.Undefined), mask)


def _as_lanes(context: Any, builder: Any, value: Any, kind: Any, target: Lanes) -> Any:
    if isinstance(kind, Lanes):
        return value
    scalar = context.cast(builder, value, kind, target.dtype)
    return _splat(builder, scalar, context.get_value_type(target))


def _all_lanes(context: Any, builder: Any, sig: Any, args: Any, target: Lanes) -> list[Any]:
    pairs = zip(args, sig.args, strict=True)
    return [_as_lanes(context, builder, value, kind, target) for value, kind in pairs]


def _call(builder: Any, name: str, args: list[Any]) -> Any:
    """Call an LLVM intrinsic that is overloaded on the type of its operands."""
    lanes = args[0].type
    scalar = "f32" if lanes.element == ir.FloatType() else "f64"
    kind = ir.FunctionType(lanes, [lanes] * len(args))
    full = f"llvm.{name}.v{lanes.count}{scalar}"
    known = builder.module.globals.get(full)
    return builder.call(known or ir.Function(builder.module, kind, full), args)


# -- arithmetic: lanes with lanes, or with a plain number on either side -------------------------

_ARITHMETIC = {
    operator.add: "fadd",
    operator.sub: "fsub",
    operator.mul: "fmul",
    operator.truediv: "fdiv",
}


def _type_arithmetic(context: Any) -> Any:
    def typer(a: Any, b: Any) -> Any:
        if isinstance(a, Lanes) and (a == b or isinstance(b, types.Number)):
            return a
        if isinstance(b, Lanes) and isinstance(a, types.Number):
            return b
        return None

    return typer


def _lower_arithmetic(method: str) -> Any:
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, method)(*_all_lanes(context, builder, sig, args, sig.return_type))

    return lower


for _symbol, _method in _ARITHMETIC.items():
    type_callable(_symbol)(_type_arithmetic)
    for _kinds in ((Lanes, Lanes), (Lanes, types.Number), (types.Number, Lanes)):
        lower_builtin(_symbol, *_kinds)(_lower_arithmetic(_method))  # type: ignore[no-untyped-call]


def _elementwise(name: str) -> Any:
    """An elementwise function, backed by an LLVM intrinsic."""

    def build(typingctx: Any, *operands: Any) -> Any:
        lanes = next(kind for kind in operands if isinstance(kind, Lanes))

        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return _call(builder, name, _all_lanes(context, builder, sig, args, lanes))

        return lanes(*operands), codegen

    return build


@_intrinsic
def fma(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """``a * b + c``, rounded once."""
    return _elementwise("fma")(typingctx, a, b, c)


@_intrinsic
def larger(typingctx: Any, a: Any, b: Any) -> Any:
    """The larger of two, lane by lane."""
    return _elementwise("maxnum")(typingctx, a, b)


@_intrinsic
def root(typingctx: Any, a: Any) -> Any:
    """Square roots, correctly rounded."""
    return _elementwise("sqrt")(typingctx, a)


# -- memory --------------------------------------------------------------------------------------


def _pointer(context: Any, builder: Any, sig: Any, args: Any, lanes: Any) -> Any:
    """Point to lanes that begin at an entry: the first two arguments are an array and its place."""
    at = context.cast(builder, args[1], sig.args[1], types.intp)
    data = context.make_array(sig.args[0])(context, builder, args[0]).data
    return builder.bitcast(builder.gep(data, [at]), lanes.as_pointer())


@_intrinsic
def load(typingctx: Any, array: Any, at: Any, tile: Any) -> Any:
    """A tile of a C-contiguous float array, from its entry ``at`` on."""
    lanes = Lanes(array.dtype, LANES * tile.count or HALF_LANES)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig, args, context.get_value_type(lanes))
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return lanes(array, at, tile), codegen


@_intrinsic
def store(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
    """Write a vector to a C-contiguous float array, from its entry ``at`` on."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        pointer = _pointer(context, builder, sig, args, args[2].type)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, at, value), codegen


def ask_for(builder: Any, pointer: Any) -> None:
    """Prefetch the cache line of a pointer to bytes: to read, to be kept close, of data."""
    kind = ir.FunctionType(ir.VoidType(), [BYTES, _INT32, _INT32, _INT32])
    name = "llvm.prefetch.p0i8"
    known = builder.module.globals.get(name) or ir.Function(builder.module, kind, name)
    builder.call(known, [pointer, _INT32(0), _INT32(3), _INT32(1)])


@_intrinsic
def prefetch(typingctx: Any, array: Any, at: Any) -> Any:
    """Ask for the cache line of an entry of an array, which may lie outside; changes nothing."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        ask_for(builder, _pointer(context, builder, sig, args, ir.IntType(8)))
        return context.get_dummy_value()

    return types.void(array, at), codegen


@_intrinsic
def zeros(typingctx: Any, array: Any, tile: Any) -> Any:
    """A vector of zeros of the array's type."""
    lanes = Lanes(array.dtype, LANES * tile.count or HALF_LANES)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _constant(context.get_value_type(lanes), 0.0)

    return lanes(array, tile), codegen


# -- lanes of one vector among each other --------------------------------------------------------


def _rotated(builder: Any, value: Any, by: int) -> Any:
    count = value.type.count
    mask = ir.Constant(ir.VectorType(_INT32, count), [(i + by) % count for i in range(count)])
    return builder.shuffle_vector(value, value, mask)


def _fold(combine: Any) -> Any:
    def build(typingctx: Any, lanes: Any, period: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            # One step per power of two down to the period, which is only known at run time:
            # steps below it are computed and not taken.
            value, limit = args[0], context.cast(builder, args[1], sig.args[1], types.int32)
            by = LANES // 2
            while by >= 1:
                folded = combine(builder, value, _rotated(builder, value, by))
                wide = builder.icmp_signed(">=", _INT32(by), limit)
                value = builder.select(wide, folded, value)
                by //= 2
            return value

        return lanes(lanes, period), codegen

    return build


@_intrinsic
def fold_sum(typingctx: Any, lanes: Any, period: Any) -> Any:
    """Sum over the lanes of 16 that are equal modulo ``period``, a power of two; 1 sums all."""
    return _fold(lambda builder, a, b: builder.fadd(a, b))(typingctx, lanes, period)


@_intrinsic
def fold_max(typingctx: Any, lanes: Any, period: Any) -> Any:
    """Like `fold_sum`, with the maximum."""
    return _fold(lambda builder, a, b: _call(builder, "maxnum", [a, b]))(typingctx, lanes, period)


# -- choices -------------------------------------------------------------------------------------


@_intrinsic
def where_positive(typingctx: Any, test: Any, yes: Any, no: Any) -> Any:
    """``yes`` in the lanes where ``test > 0``, else ``no``."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        value, left, right = _all_lanes(context, builder, sig, args, test)
        positive = builder.fcmp_ordered(">", value, _constant(value.type, 0.0))
        return builder.select(positive, left, right)

    return test(test, yes, no), codegen


@_intrinsic
def where_below(typingctx: Any, count: Any, yes: Any, no: Any) -> Any:
    """``yes`` in the first ``count`` lanes, ``no`` in the others."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        limit = context.cast(builder, args[0], sig.args[0], types.int32)
        integers = ir.VectorType(_INT32, yes.count)
        lane = ir.Constant(integers, list(range(yes.count)))
        inside = builder.icmp_signed("<", lane, _splat(builder, limit, integers))
        other = _as_lanes(context, builder, args[2], sig.args[2], yes)
        return builder.select(inside, args[1], other)

    return yes(count, yes, no), codegen


# -- functions -----------------------------------------------------------------------------------

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375
LN2_LOW = -2.12194440e-4
# Minimax on [-ln2/2, ln2/2], degree 5 behind 1 + r: within 1 ulp of float32.
EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 0.5)


@_intrinsic
def exponential(typingctx: Any, a: Any) -> Any:
    """``exp(a)`` for ``a <= 88``: a polynomial in float32, the C library in float64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (value,) = args
        if a.dtype == types.float64:
            return _call(builder, "exp", [value])
        lanes = value.type

        def const(number: float) -> ir.Constant:
            return _constant(lanes, number)

        integers = ir.VectorType(_INT32, lanes.count)
        clipped = _call(builder, "maxnum", [value, const(float(np.float32(-87.0)))])
        power = _call(builder, "rint", [builder.fmul(clipped, const(_f32(LOG2_E)))])
        rest = _call(builder, "fma", [power, const(_f32(-LN2_HIGH)), clipped])
        rest = _call(builder, "fma", [power, const(_f32(-LN2_LOW)), rest])
        sum_ = const(_f32(EXP[0]))
        for coefficient in EXP[1:]:
            sum_ = _call(builder, "fma", [sum_, rest, const(_f32(coefficient))])
        square = builder.fmul(rest, rest)
        sum_ = builder.fadd(_call(builder, "fma", [sum_, square, rest]), const(1.0))
        exponent = builder.shl(builder.fptosi(power, integers), _constant(integers, 23))
        return builder.bitcast(builder.add(builder.bitcast(sum_, integers), exponent), lanes)

    return a(a), codegen


@_intrinsic
def inverse_root(typingctx: Any, a: Any) -> Any:
    """``1 / sqrt(a)`` for ``a >= 0``, within 2 ulp; some huge finite number at 0.

    In float32 by Newton's method from a guess on the bits: half the cost of the divider.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        (value,) = args
        lanes = value.type
        if a.dtype == types.float64:
            tiny = _call(builder, "maxnum", [value, _constant(lanes, 1e-300)])
            return builder.fdiv(_constant(lanes, 1.0), _call(builder, "sqrt", [tiny]))
        integers = ir.VectorType(_INT32, lanes.count)
        bits = builder.lshr(builder.bitcast(value, integers), _constant(integers, 1))
        guess = builder.bitcast(builder.sub(_constant(integers, 0x5F375A86), bits), lanes)
        half = builder.fmul(value, _constant(lanes, -0.5))
        for _ in range(3):
            error = _call(builder, "fma", [builder.fmul(half, guess), guess, _constant(lanes, 1.5)])
            guess = builder.fmul(guess, error)
        return guess

    return a(a), codegen


@_intrinsic
def kept_lanes(typingctx: Any, like: Any, row_key: Any, unit: Any, period: Any, limit: Any) -> Any:
    """1 in the lanes that dropout keeps, 0 in the others.

    Lane i is unit ``(unit + i) % period`` (a power of two), and is dropped when a 32-bit hash of
    ``row_key`` and its unit is below ``limit``; see `noise.is_kept` for the same on numbers.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        lanes = context.get_value_type(like)
        integers = ir.VectorType(_INT32, lanes.count)
        key, first, cycle, bound = (
            _splat(builder, context.cast(builder, value, kind, types.uint32), integers)
            for value, kind in zip(args[1:], sig.args[1:], strict=True)
        )
        lane = builder.add(first, ir.Constant(integers, list(range(lanes.count))))
        lane = builder.and_(lane, builder.sub(cycle, _constant(integers, 1)))
        mixed = builder.xor(key, builder.mul(lane, _constant(integers, 0x9E3779B1)))
        for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B), (16, 0)):
            shifted = builder.lshr(mixed, _constant(integers, shift))
            mixed = builder.xor(mixed, shifted)
            if factor:
                mixed = builder.mul(mixed, _constant(integers, factor))
        kept = builder.icmp_unsigned(">=", mixed, bound)
        return builder.select(kept, _constant(lanes, 1.0), _constant(lanes, 0.0))

    return like(like, row_key, unit, period, limit), codegen


def _f32(value: float) -> float:
    return float(np.float32(value))
