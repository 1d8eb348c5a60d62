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

WIDTH = 8  # 256 bits of int32; LLVM splits what the processor has no register for
INT64 = ir.IntType(64)
INDEX = ir.IntType(32)


def _along(builder: Any, n: Any, step: Callable[[Any, int], None]) -> None:
    """Call step(offset, width) for whole vectors of a row of n numbers, then for single numbers (width 1)."""
    whole = builder.and_(n, ir.Constant(INT64, -WIDTH))
    ranged: Any = cgutils.for_range_slice  # without types in Numba
    with ranged(builder, ir.Constant(INT64, 0), whole, ir.Constant(INT64, WIDTH)) as (offset, _):
        step(offset, WIDTH)
    with ranged(builder, whole, n, ir.Constant(INT64, 1)) as (offset, _):
        step(offset, 1)


def _start(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Pointer to an entry of a flat array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _vector_of(number: Any, width: int) -> Any:
    return ir.VectorType(number, width)


def _place(builder: Any, start: Any, offset: Any, width: int) -> Any:
    """Pointer to a vector of a row."""
    pointer = builder.gep(start, [offset])
    return builder.bitcast(pointer, _vector_of(pointer.type.pointee, width).as_pointer())


def _load(builder: Any, start: Any, offset: Any, width: int) -> Any:
    return builder.load(_place(builder, start, offset, width), align=start.type.pointee.width // 8)


def _store(builder: Any, vector: Any, start: Any, offset: Any, width: int) -> None:
    builder.store(vector, _place(builder, start, offset, width), align=start.type.pointee.width // 8)


def _spread(builder: Any, number: Any, width: int) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(_vector_of(number.type, width), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(_vector_of(INDEX, width), None))


def _halves(builder: Any, vector: Any, width: int) -> tuple[Any, Any]:
    nothing = ir.Constant(vector.type, ir.Undefined)
    masks = (list(range(width // 2)), list(range(width // 2, width)))
    low, high = (
        builder.shuffle_vector(vector, nothing, ir.Constant(_vector_of(INDEX, width // 2), mask)) for mask in masks
    )
    return low, high


def _total(builder: Any, vector: Any, width: int) -> Any:
    """The sum of a vector's numbers."""
    while width > 1:
        vector, width = builder.add(*_halves(builder, vector, width)), width // 2
    return builder.extract_element(vector, ir.Constant(INDEX, 0))


class _Sum:
    """A sum over a row, kept in a vector and a number."""

    def __init__(self, builder: Any, number: Any) -> None:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        self._builder = builder
        self._sums = {width: once(builder, ir.Constant(_vector_of(number, width), None)) for width in (1, WIDTH)}

    def add(self, vector: Any, width: int) -> None:
        self._builder.store(self._builder.add(self._builder.load(self._sums[width]), vector), self._sums[width])

    def value(self) -> Any:
        parts = [_total(self._builder, self._builder.load(place), width) for width, place in self._sums.items()]
        return self._builder.add(*parts)


def _add_row_compiled(typingctx: Any, values: Any, at: Any, added: Any, first: Any, n: Any) -> Any:
    """values[at : at + n] += added[first : first + n]; flat arrays of one integer type, apart."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into = _start(context, builder, sig.args[0], args[0], args[1])
        source = _start(context, builder, sig.args[2], args[2], args[3])

        def step(offset: Any, width: int) -> None:
            total = builder.add(_load(builder, into, offset, width), _load(builder, source, offset, width))
            _store(builder, total, into, offset, width)

        _along(builder, args[4], step)
        return context.get_dummy_value()

    return types.void(values, types.int64, added, types.int64, types.int64), codegen


def _add_row_plain(values: Any, at: int, added: Any, first: int, n: int) -> None:
    values[at : at + n] += added[first : first + n]


def _count_at_least_compiled(typingctx: Any, values: Any, at: Any, n: Any, bound: Any) -> Any:
    """How many of values[at : at + n] are at least the bound (int64); a flat integer array, the bound of its type."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = _start(context, builder, sig.args[0], args[0], args[1])
        number = source.type.pointee
        count = _Sum(builder, number)

        def step(offset: Any, width: int) -> None:
            bounds = _spread(builder, args[3], width)
            reached = builder.icmp_signed(">=", _load(builder, source, offset, width), bounds)
            count.add(builder.zext(reached, bounds.type), width)

        _along(builder, args[2], step)
        return count.value() if number.width == 64 else builder.sext(count.value(), INT64)

    return types.int64(values, types.int64, types.int64, values.dtype), codegen


def _count_at_least_plain(values: Any, at: int, n: int, bound: Any) -> int:
    return int((values[at : at + n] >= bound).sum())


def _negate_row_compiled(typingctx: Any, into: Any, at: Any, values: Any, first: Any, n: Any) -> Any:
    """into[at : at + n] = -values[first : first + n]; the sum of the values (int64). Flat arrays, apart: values int32,
    into int32 or int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = _start(context, builder, sig.args[0], args[0], args[1])
        source = _start(context, builder, sig.args[2], args[2], args[3])
        wide = target.type.pointee.width > source.type.pointee.width
        total = _Sum(builder, INT64)

        def step(offset: Any, width: int) -> None:
            narrow = _load(builder, source, offset, width)
            widened = builder.sext(narrow, _vector_of(INT64, width))
            total.add(widened, width)
            _store(builder, builder.neg(widened if wide else narrow), target, offset, width)

        _along(builder, args[4], step)
        return total.value()

    return types.int64(into, types.int64, values, types.int64, types.int64), codegen


def _negate_row_plain(into: Any, at: int, values: Any, first: int, n: int) -> int:
    into[at : at + n] = -values[first : first + n]
    return int(values[first : first + n].sum(dtype="int64"))


def _add_row_watched_compiled(
    typingctx: Any, values: Any, at: Any, added: Any, first: Any, n: Any, own: Any, greatest: Any
) -> Any:
    """As add_row; returns how many of the new numbers are at least number `own` of them; greatest[:n] (IN/OUT) =
    max(greatest, new numbers) but for that one. Flat arrays of one integer type, apart."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into = _start(context, builder, sig.args[0], args[0], args[1])
        source = _start(context, builder, sig.args[2], args[2], args[3])
        tops = _start(context, builder, sig.args[6], args[6], ir.Constant(INT64, 0))
        number = into.type.pointee
        own_before, own_added = (builder.load(builder.gep(start, [args[5]])) for start in (into, source))
        own_score = builder.add(own_before, own_added)
        count = _Sum(builder, number)

        def step(offset: Any, width: int) -> None:
            total = builder.add(_load(builder, into, offset, width), _load(builder, source, offset, width))
            _store(builder, total, into, offset, width)
            reached = builder.icmp_signed(">=", total, _spread(builder, own_score, width))
            count.add(builder.zext(reached, total.type), width)
            lanes = ir.Constant(_vector_of(INT64, width), list(range(width)))
            is_own = builder.icmp_signed("==", lanes, _spread(builder, builder.sub(args[5], offset), width))
            top = _load(builder, tops, offset, width)
            higher = builder.and_(builder.icmp_signed(">", total, top), builder.not_(is_own))
            _store(builder, builder.select(higher, total, top), tops, offset, width)

        _along(builder, args[4], step)
        return count.value() if number.width == 64 else builder.sext(count.value(), INT64)

    return types.int64(values, types.int64, added, types.int64, types.int64, types.int64, greatest), codegen


def _add_row_watched_plain(values: Any, at: int, added: Any, first: int, n: int, own: int, greatest: Any) -> int:
    row = values[at : at + n]
    row += added[first : first + n]
    others = [c for c in range(n) if c != own]
    greatest[others] = np.maximum(greatest[others], row[others])
    return int((row >= row[own]).sum())


def _magnitudes(of: Callable[[Any, Any, Any], list[Any]], description: str) -> Any:
    """An intrinsic (sums, left, n) -> the sum of the absolute values of what `of` makes of sums[:n] and left[:n]."""

    def compiled(typingctx: Any, sums: Any, left: Any, n: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            whole = _start(context, builder, sig.args[0], args[0], ir.Constant(INT64, 0))
            part = _start(context, builder, sig.args[1], args[1], ir.Constant(INT64, 0))
            total = _Sum(builder, INT64)

            def step(offset: Any, width: int) -> None:
                vectors = of(builder, _load(builder, whole, offset, width), _load(builder, part, offset, width))
                for vector in vectors:
                    nothing = ir.Constant(vector.type, None)
                    negative = builder.icmp_signed("<", vector, nothing)
                    total.add(builder.select(negative, builder.sub(nothing, vector), vector), width)

            _along(builder, args[2], step)
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
