"""Vector instructions over one row of a table, each with its twin for when the JIT is off.

A row is a short stretch of a flat array: 26 classes, say. LLVM's own loops over it work on 16 or 32 numbers at a time
after a check whether the arrays overlap, so most of a row is left to their scalar rest (docs/performance.md). These
take WIDTH numbers at a time. Nothing outside the row is touched: its neighbours may belong to another thread.
"""

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
    to_width,
    total_of,
    vector_of,
)

EXCESS = 4  # numbers that scan_bins keeps for every bin: 256 bits


class _Sum:
    """A sum over a row, kept in a vector."""

    def __init__(self, builder: Any, number: Any) -> None:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        self._builder = builder
        self._sums = once(builder, ir.Constant(vector_of(number, WIDTH), None))

    def add(self, vector: Any, width: int) -> None:
        """A narrower vector is added to the first lanes: to sum up vectors of every width takes longer."""
        vector = to_width(self._builder, vector, width, WIDTH)
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


def _add_row_watched_compiled(
    typingctx: Any, values: Any, at: Any, added: Any, first: Any, n: Any, own: Any, greatest: Any, lowest: Any
) -> Any:
    """As add_row; returns whether another of the new numbers is at least number `own` of them; greatest[:n] (IN/OUT) =
    max(greatest, new numbers) but for that one. Flat arrays of one integer type, apart; lowest: below any number.

    The own one is made the lowest number before maxima are taken. That is not a constant here: LLVM knows what the
    maximum of the least number is, and would leave its place as it is by a masked store, which takes some ten times as
    long as a store.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        into = start_of(context, builder, sig.args[0], args[0], args[1])
        source = start_of(context, builder, sig.args[2], args[2], args[3])
        tops = start_of(context, builder, sig.args[6], args[6], ir.Constant(INT64, 0))
        number = into.type.pointee
        own_before, own_added = (builder.load(builder.gep(start, [args[5]])) for start in (into, source))
        own_score = builder.add(own_before, own_added)
        once: Any = cgutils.alloca_once_value  # without types in Numba
        level = once(builder, ir.Constant(INT64, 0))  # a bit for every other one that is level

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
            other = builder.select(is_own, spread(builder, args[7], width), total)
            top = load(builder, tops, offset, width)
            higher = builder.select(builder.icmp_signed(">", other, top), other, top)
            store(builder, higher, tops, offset, width)

        along(builder, args[4], step)
        return builder.icmp_unsigned("!=", builder.load(level), ir.Constant(INT64, 0))

    kinds = (values, types.int64, added, types.int64, types.int64, types.int64, greatest, values.dtype)
    return types.boolean(*kinds), codegen


def _add_row_watched_plain(
    values: Any, at: int, added: Any, first: int, n: int, own: int, greatest: Any, lowest: Any
) -> bool:
    row = values[at : at + n]
    row += added[first : first + n]
    others = [c for c in range(n) if c != own]
    greatest[others] = np.maximum(greatest[others], row[others])
    return bool((row[others] >= row[own]).any())


def _scan_bins_compiled(
    typingctx: Any, apart: Any, hist: Any, at: Any, n: Any, n_bins: Any, floors: Any, excess: Any
) -> Any:
    """excess[EXCESS * b : ] (OUT), EXCESS numbers a bin: their sum is what sum_c max(|apart_c| - floors_c, 0) comes to
    once the bins 0..b have moved to the left side, apart[:n] being the left side's sums less the right one's before.

    hist[at + b * n : ]: the sums of bin b, n numbers; flat int64 arrays. Some channels of all bins come before others,
    so that what has moved stays in registers.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        nothing = ir.Constant(INT64, 0)
        before, least, sums = (start_of(context, builder, sig.args[i], args[i], nothing) for i in (0, 5, 6))
        source = start_of(context, builder, sig.args[1], args[1], args[2])
        once: Any = cgutils.alloca_once  # without types in Numba
        ranged: Any = cgutils.for_range

        def step(offset: Any, width: int) -> None:
            moved = once(builder, vector_of(INT64, width))
            builder.store(load(builder, before, offset, width), moved)
            floor = load(builder, least, offset, width)
            zeros, none = ir.Constant(floor.type, None), ir.Constant(vector_of(INT64, EXCESS), None)
            is_first = builder.icmp_signed("==", offset, nothing)
            with ranged(builder, args[4]) as loop:
                added = load(builder, source, builder.add(builder.mul(loop.index, args[3]), offset), width)
                sides = builder.add(builder.load(moved), builder.add(added, added))
                builder.store(sides, moved)
                size = builder.select(builder.icmp_signed("<", sides, zeros), builder.sub(zeros, sides), sides)
                beyond = builder.sub(size, floor)
                beyond = builder.select(builder.icmp_signed("<", beyond, zeros), zeros, beyond)
                place = builder.mul(loop.index, ir.Constant(INT64, EXCESS))
                so_far = builder.select(is_first, none, load(builder, sums, place, EXCESS))
                total = builder.add(so_far, to_width(builder, beyond, width, EXCESS))
                store(builder, total, sums, place, EXCESS)

        along(builder, args[3], step)
        return context.get_dummy_value()

    return types.void(apart, hist, types.int64, types.int64, types.int64, floors, excess), codegen


def _scan_bins_plain(apart: Any, hist: Any, at: int, n: int, n_bins: int, floors: Any, excess: Any) -> None:
    moved = apart[:n] + 2 * hist[at : at + n_bins * n].reshape(n_bins, n).cumsum(axis=0)
    excess[: n_bins * EXCESS] = 0
    excess[: n_bins * EXCESS : EXCESS] = np.maximum(abs(moved) - floors[:n], 0).sum(axis=1)


def _greatest_excess_compiled(typingctx: Any, excess: Any, n_bins: Any) -> Any:
    """The greatest of the bins' sums of EXCESS numbers each, or 0; n_bins: a multiple of EXCESS, so that the sums of as
    many bins come into one vector."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        sums = start_of(context, builder, sig.args[0], args[0], ir.Constant(INT64, 0))
        ranged: Any = cgutils.for_range_slice  # without types in Numba
        once: Any = cgutils.alloca_once_value  # without types in Numba
        greatest = once(builder, ir.Constant(vector_of(INT64, EXCESS), None))

        def mixed(one: Any, other: Any, lanes: list[int]) -> Any:
            return builder.shuffle_vector(one, other, ir.Constant(vector_of(INDEX, EXCESS), lanes))

        def paired(one: Any, other: Any, lanes: tuple[list[int], list[int]]) -> Any:
            return builder.add(*(mixed(one, other, each) for each in lanes))

        within, across = ([0, 4, 2, 6], [1, 5, 3, 7]), ([0, 1, 4, 5], [2, 3, 6, 7])
        with ranged(builder, ir.Constant(INT64, 0), args[1], ir.Constant(INT64, EXCESS)) as (first, _):
            start = builder.mul(first, ir.Constant(INT64, EXCESS))
            places = [builder.add(start, ir.Constant(INT64, EXCESS * number)) for number in range(EXCESS)]
            bins = [load(builder, sums, place, EXCESS) for place in places]
            low, high = (paired(bins[pair], bins[pair + 1], within) for pair in (0, 2))
            totals = paired(low, high, across)
            before = builder.load(greatest)
            higher = builder.icmp_signed(">", totals, before)
            builder.store(builder.select(higher, totals, before), greatest)
        lanes = [builder.extract_element(builder.load(greatest), ir.Constant(INDEX, lane)) for lane in range(EXCESS)]
        most = lanes[0]
        for lane in lanes[1:]:
            most = builder.select(builder.icmp_signed(">", lane, most), lane, most)
        return most

    return types.int64(excess, types.int64), codegen


def _greatest_excess_plain(excess: Any, n_bins: int) -> int:
    return int(excess[: n_bins * EXCESS].reshape(n_bins, EXCESS).sum(axis=1).max(initial=0))


add_row: Any = _add_row_plain if JIT_DISABLED else intrinsic(_add_row_compiled)
add_row_watched: Any = _add_row_watched_plain if JIT_DISABLED else intrinsic(_add_row_watched_compiled)
count_at_least: Any = _count_at_least_plain if JIT_DISABLED else intrinsic(_count_at_least_compiled)
greatest_excess: Any = _greatest_excess_plain if JIT_DISABLED else intrinsic(_greatest_excess_compiled)
scan_bins: Any = _scan_bins_plain if JIT_DISABLED else intrinsic(_scan_bins_compiled)
