"""Vector instructions over one row of a table, each with its twin for when the JIT is off.

A row is a short stretch of a flat array: 26 classes, say. LLVM's own loops over it work on 16 or 32 numbers at a time
after a check whether the arrays overlap, so most of a row is left to their scalar rest (docs/performance.md). These
take WIDTH numbers at a time. Nothing outside the row is touched: its neighbours may belong to another thread.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core.jit import JIT_DISABLED
from boost_core.vector_code import (
    INDEX,
    INT64,
    WIDTH,
    along,
    load,
    spread,
    start_of,
    store,
    total_of,
    vector_of,
)


class _Sum:
    """A sum over a row, kept in a vector."""

    def __init__(self, builder: Any, number: Any) -> None:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        self._builder = builder
        self._sums = once(builder, ir.Constant(vector_of(number, WIDTH), None))

    def add(self, vector: Any, width: int) -> None:
        """A narrower vector is added to the first lanes: to sum up vectors of every width takes longer."""
        if width < WIDTH:
            lanes = [*range(width), *[width] * (WIDTH - width)]  # the second vector's first, which is 0
            mask = ir.Constant(vector_of(INDEX, WIDTH), lanes)
            vector = self._builder.shuffle_vector(vector, ir.Constant(vector.type, None), mask)
        self._builder.store(self._builder.add(self._builder.load(self._sums), vector), self._sums)

    def value(self) -> Any:
        return total_of(self._builder, self._builder.load(self._sums), WIDTH)


def _add_row_compiled(typingctx: Any, values: Any, at: Any, added: Any, first: Any, n: Any) -> Any:
    """values[at : at + n] += added[first : first + n]; flat arrays of one integer type, apart."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into = start_of(context, builder, sig.args[0], args[0], args[1])
        source = start_of(context, builder, sig.args[2], args[2], args[3])

        def step(offset: Any, width: int) -> None:
            total = builder.add(load(builder, into, offset, width), load(builder, source, offset, width))
            store(builder, total, into, offset, width)

        along(builder, args[4], step)
        return context.get_dummy_value()

    return types.void(values, types.int64, added, types.int64, types.int64), codegen


def _add_row_plain(values: Any, at: int, added: Any, first: int, n: int) -> None:
    values[at : at + n] += added[first : first + n]


def _count_at_least_compiled(typingctx: Any, values: Any, at: Any, n: Any, bound: Any) -> Any:
    """How many of values[at : at + n] are at least the bound (int64); a flat integer array, the bound of its type."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = start_of(context, builder, sig.args[0], args[0], args[1])
        number = source.type.pointee
        count = _Sum(builder, number)

        def step(offset: Any, width: int) -> None:
            bounds = spread(builder, args[3], width)
            reached = builder.icmp_signed(">=", load(builder, source, offset, width), bounds)
            count.add(builder.zext(reached, bounds.type), width)

        along(builder, args[2], step)
        return count.value() if number.width == 64 else builder.sext(count.value(), INT64)

    return types.int64(values, types.int64, types.int64, values.dtype), codegen


def _count_at_least_plain(values: Any, at: int, n: int, bound: Any) -> int:
    return int((values[at : at + n] >= bound).sum())


def _negate_row_compiled(typingctx: Any, into: Any, at: Any, values: Any, first: Any, n: Any) -> Any:
    """into[at : at + n] = -values[first : first + n]; the sum of the values (int64). Flat arrays, apart: values int32,
    into int32 or int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = start_of(context, builder, sig.args[0], args[0], args[1])
        source = start_of(context, builder, sig.args[2], args[2], args[3])
        wide = target.type.pointee.width > source.type.pointee.width
        total = _Sum(builder, INT64)

        def step(offset: Any, width: int) -> None:
            narrow = load(builder, source, offset, width)
            widened = builder.sext(narrow, vector_of(INT64, width))
            total.add(widened, width)
            store(builder, builder.neg(widened if wide else narrow), target, offset, width)

        along(builder, args[4], step)
        return total.value()

    return types.int64(into, types.int64, values, types.int64, types.int64), codegen


def _negate_row_plain(into: Any, at: int, values: Any, first: int, n: int) -> int:
    into[at : at + n] = -values[first : first + n]
    return int(values[first : first + n].sum(dtype="int64"))


def _add_row_watched_compiled(
    typingctx: Any, values: Any, at: Any, added: Any, first: Any, n: Any, own: Any, greatest: Any
) -> Any:
    """As add_row; returns whether another of the new numbers is at least number `own` of them; greatest[:n] (IN/OUT) =
    max(greatest, new numbers) but for that one. Flat arrays of one integer type, apart."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into = start_of(context, builder, sig.args[0], args[0], args[1])
        source = start_of(context, builder, sig.args[2], args[2], args[3])
        tops = start_of(context, builder, sig.args[6], args[6], ir.Constant(INT64, 0))
        number = into.type.pointee
        own_before, own_added = (builder.load(builder.gep(start, [args[5]])) for start in (into, source))
        own_score = builder.add(own_before, own_added)
        once: Any = cgutils.alloca_once_value  # without types in Numba
        level = once(builder, ir.Constant(INT64, 0))  # a bit for every other one that is level
        least = ir.Constant(number, -(1 << (number.width - 1)))

        def step(offset: Any, width: int) -> None:
            total = builder.add(load(builder, into, offset, width), load(builder, source, offset, width))
            store(builder, total, into, offset, width)
            lanes = ir.Constant(total.type, list(range(width)))
            place = builder.sub(args[5], offset)
            own_lane = spread(builder, place if number.width == 64 else builder.trunc(place, number), width)
            is_own = builder.icmp_signed("==", lanes, own_lane)
            reached = builder.icmp_signed(">=", total, spread(builder, own_score, width))
            others = builder.bitcast(builder.and_(reached, builder.not_(is_own)), ir.IntType(width))
            builder.store(builder.or_(builder.load(level), builder.zext(others, INT64)), level)
            # the own one is made small: to leave its place as it is would become a masked store, which is slow
            other = builder.select(is_own, spread(builder, least, width), total)
            top = load(builder, tops, offset, width)
            higher = builder.select(builder.icmp_signed(">", other, top), other, top)
            store(builder, higher, tops, offset, width)

        along(builder, args[4], step)
        return builder.icmp_unsigned("!=", builder.load(level), ir.Constant(INT64, 0))

    return types.boolean(values, types.int64, added, types.int64, types.int64, types.int64, greatest), codegen


def _add_row_watched_plain(values: Any, at: int, added: Any, first: int, n: int, own: int, greatest: Any) -> bool:
    row = values[at : at + n]
    row += added[first : first + n]
    others = [c for c in range(n) if c != own]
    greatest[others] = np.maximum(greatest[others], row[others])
    return bool((row[others] >= row[own]).any())


def _magnitudes(of: Callable[[Any, Any, Any], list[Any]], description: str) -> Any:
    """An intrinsic (sums, left, n) -> the sum of the absolute values of what `of` makes of sums[:n] and left[:n]."""

    def compiled(typingctx: Any, sums: Any, left: Any, n: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            whole = start_of(context, builder, sig.args[0], args[0], ir.Constant(INT64, 0))
            part = start_of(context, builder, sig.args[1], args[1], ir.Constant(INT64, 0))
            total = _Sum(builder, INT64)

            def step(offset: Any, width: int) -> None:
                vectors = of(builder, load(builder, whole, offset, width), load(builder, part, offset, width))
                for vector in vectors:
                    nothing = ir.Constant(vector.type, None)
                    negative = builder.icmp_signed("<", vector, nothing)
                    total.add(builder.select(negative, builder.sub(nothing, vector), vector), width)

            along(builder, args[2], step)
            return total.value()

        return types.int64(sums, left, types.int64), codegen

    compiled.__doc__ = description
    return compiled


def _both_sides(builder: Any, sums: Any, left: Any) -> list[Any]:
    return [left, builder.sub(sums, left)]


def _sides_apart(builder: Any, sums: Any, left: Any) -> list[Any]:
    return [builder.sub(sums, builder.add(left, left))]


def _both_sides_plain(sums: Any, left: Any, n: int) -> int:
    return int(abs(left[:n]).sum() + abs(sums[:n] - left[:n]).sum())


def _sides_apart_plain(sums: Any, left: Any, n: int) -> int:
    return int(abs(sums[:n] - 2 * left[:n]).sum())


# int64 arrays [>= n] of a node's sums and those of a cut's left side.
both_sides: Any = (
    _both_sides_plain
    if JIT_DISABLED
    else intrinsic(_magnitudes(_both_sides, "(sums, left, n) -> sum |left| + sum |sums - left|."))
)
sides_apart: Any = (
    _sides_apart_plain
    if JIT_DISABLED
    else intrinsic(
        _magnitudes(_sides_apart, "(sums, left, n) -> sum |sums - 2 left|: how far the two sides are apart.")
    )
)
add_row: Any = _add_row_plain if JIT_DISABLED else intrinsic(_add_row_compiled)
add_row_watched: Any = _add_row_watched_plain if JIT_DISABLED else intrinsic(_add_row_watched_compiled)
count_at_least: Any = _count_at_least_plain if JIT_DISABLED else intrinsic(_count_at_least_compiled)
negate_row: Any = _negate_row_plain if JIT_DISABLED else intrinsic(_negate_row_compiled)
