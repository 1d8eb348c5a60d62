"""Weights of the exponential loss by vector instructions, with a twin for when the JIT is off.

LLVM's own loop over ieee_math.exp_units takes as many numbers at a time as a register holds, and reads its fifteen
constants anew for each of them where the processor has sixteen registers (docs/performance.md). This takes WIDTH.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core import ieee_math
from boost_core.jit import JIT_DISABLED
from boost_core.vector_code import INT64, along, load, spread, start_of, store, vector_of

DOUBLE, NARROW = ir.DoubleType(), ir.IntType(32)
LOWEST = int(ieee_math.UNITS_FLOOR)  # of exponents in score units


def _constant(value: float, width: int) -> Any:
    return ir.Constant(vector_of(DOUBLE, width), [value] * width)


def _fused(builder: Any, *values: Any) -> Any:
    """a * b + c, rounded once, as intrinsics.fused, for vectors."""
    kind, width = values[0].type, values[0].type.count
    get: Any = cgutils.get_or_insert_function  # without types in Numba
    return builder.call(get(builder.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{width}f64"), values)


def _exp_units(builder: Any, x: Any, width: int) -> Any:
    """ieee_math.exp_units, operation by operation, for a vector of x >= UNITS_FLOOR."""

    def number(value: float) -> Any:
        return _constant(value, width)

    powers = [number(getattr(ieee_math, f"POWER_{i}")) for i in range(1, 9)]
    t = builder.fmul(x, number(ieee_math.LOG2_E_UNITS))
    shifted = builder.fadd(t, number(ieee_math.ROUND))
    f = builder.fsub(t, builder.fsub(shifted, number(ieee_math.ROUND)))
    f2 = builder.fmul(f, f)
    f4 = builder.fmul(f2, f2)
    pairs = [_fused(builder, powers[i + 1], f, powers[i]) for i in (1, 3, 5)]
    low = _fused(builder, pairs[0], f2, _fused(builder, powers[0], f, number(1.0)))
    high = _fused(builder, pairs[2], f2, pairs[1])
    p = _fused(builder, _fused(builder, powers[7], f4, high), f4, low)
    bits = vector_of(INT64, width)
    exponent = builder.shl(builder.bitcast(shifted, bits), ir.Constant(bits, [52] * width))  # ROUND_BITS << 52 is 0
    return builder.bitcast(builder.add(builder.bitcast(p, bits), exponent), p.type)


def _weigh_compiled(typingctx: Any, scores: Any, at: Any, n: Any, shift: Any, factors: Any, gains: Any) -> Any:
    """gains[:n] = round_half_even(exp_units(min(scores[at : at + n] - shift, 0)) * factors[:n]), the low 32 bits of it.

    Flat arrays: scores int32, below 2**30 as the shift is (scores.py), or int64; shift int64; factors float64, gains
    int32.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = start_of(context, builder, sig.args[0], args[0], args[1])
        weights, into = (
            start_of(context, builder, sig.args[place], args[place], ir.Constant(INT64, 0)) for place in (4, 5)
        )
        number = source.type.pointee
        zero_at = args[3] if number.width == 64 else builder.trunc(args[3], number)

        def step(offset: Any, width: int) -> None:
            kind = vector_of(number, width)
            x = builder.sub(load(builder, source, offset, width), spread(builder, zero_at, width))
            for sign, bound in (("<", 0), (">", LOWEST)):
                limit = ir.Constant(kind, [bound] * width)
                x = builder.select(builder.icmp_signed(sign, x, limit), x, limit)
            if number.width == 64:
                x = builder.trunc(x, vector_of(NARROW, width))  # which more processors make floating point of
            power = _exp_units(builder, builder.sitofp(x, vector_of(DOUBLE, width)), width)
            weight = builder.fmul(power, load(builder, weights, offset, width))
            rounded = builder.fadd(weight, _constant(ieee_math.ROUND, width))
            bits = builder.bitcast(rounded, vector_of(INT64, width))  # ROUND_BITS ends in 32 zeros
            store(builder, builder.trunc(bits, vector_of(NARROW, width)), into, offset, width)

        along(builder, args[2], step)
        return context.get_dummy_value()

    return types.void(scores, types.int64, types.int64, types.int64, factors, gains), codegen


def _weigh_plain(scores: Any, at: int, n: int, shift: int, factors: Any, gains: Any) -> None:
    for k in range(n):
        x = min(max(int(scores[at + k]) - shift, LOWEST), 0)
        gain = ieee_math.round_half_even(ieee_math.exp_units(float(x)) * factors[k])
        gains[k] = np.int64(gain).astype(np.int32)


weigh_scores: Any = _weigh_plain if JIT_DISABLED else intrinsic(_weigh_compiled)
