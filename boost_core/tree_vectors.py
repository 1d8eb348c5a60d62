"""Vector instructions for rows that go down a compact forest, each with its twin for when the JIT is off."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core.jit import JIT_DISABLED
from boost_core.vector_code import INDEX, INT64, WIDTH, along, halves, load, spread, start_of, store, vector_of

LANES = 128  # rows that choose_lanes takes at a time, a byte each: with 64 a fifth longer a row (docs/performance.md)
TREES = 8  # whose leaves add_leaves adds at a time


def _place_values_compiled(
    typingctx: Any, values: Any, at: Any, stride: Any, cuts: Any, depth: Any, places: Any, n: Any
) -> Any:
    """places[i] = how many cuts are not above values[at + i * stride], -1 for NaN, for n numbers i.

    Flat float64 arrays; cuts ascending, filled up with NaN to 2**depth - 1; places int64. A binary search of several
    numbers at once and without branches: LLVM makes some of a scalar one, which are guessed wrong (4 times slower).
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        once: Any = cgutils.alloca_once  # without types in Numba
        ranged: Any = cgutils.for_range  # without types in Numba
        source = start_of(context, builder, sig.args[0], args[0], args[1])
        table, into = (
            start_of(context, builder, sig.args[place], args[place], ir.Constant(INT64, 0)) for place in (3, 5)
        )
        found = {width: once(builder, vector_of(INT64, width)) for width in (1, 2, 4, WIDTH)}

        def gather(start: Any, offsets: Any, width: int) -> Any:
            vector: Any = ir.Constant(vector_of(ir.DoubleType(), width), ir.Undefined)
            for lane in (ir.Constant(INDEX, number) for number in range(width)):
                number = builder.load(builder.gep(start, [builder.extract_element(offsets, lane)]))
                vector = builder.insert_element(vector, number, lane)
            return vector

        def step(offset: Any, width: int) -> None:
            lanes = ir.Constant(vector_of(INT64, width), list(range(width)))
            rows = builder.add(spread(builder, offset, width), lanes)
            looked_up = gather(source, builder.mul(rows, spread(builder, args[2], width)), width)
            builder.store(ir.Constant(lanes.type, None), found[width])
            with ranged(builder, args[4]) as level:
                back = builder.sub(builder.sub(args[4], level.index), ir.Constant(INT64, 1))
                size = spread(builder, builder.shl(ir.Constant(INT64, 1), back), width)
                place = builder.load(found[width])
                last = builder.sub(builder.add(place, size), ir.Constant(size.type, [1] * width))
                passed = builder.fcmp_ordered("<=", gather(table, last, width), looked_up)
                builder.store(builder.add(place, builder.and_(builder.sext(passed, size.type), size)), found[width])
            missing = builder.fcmp_unordered("!=", looked_up, looked_up)
            store(
                builder, builder.or_(builder.load(found[width]), builder.sext(missing, lanes.type)), into, offset, width
            )

        along(builder, args[6], step)
        return context.get_dummy_value()

    return types.void(values, types.int64, types.int64, cuts, types.int64, places, types.int64), codegen


def _place_values_plain(values: Any, at: int, stride: int, cuts: Any, depth: int, places: Any, n: int) -> None:
    given = values[at : at + (n - 1) * stride + 1 : stride] if n > 0 else values[:0]
    found = np.searchsorted(cuts[: np.count_nonzero(~np.isnan(cuts))], given, side="right")
    places[:n] = np.where(np.isnan(given), -1, found)


def _choose_lanes_compiled(
    typingctx: Any, codes: Any, at: Any, bound: Any, slots: Any, left: Any, right: Any, into: Any
) -> Any:
    """slots[into + k] = slots[right + k] where codes[at + k] >= bound, else slots[left + k], for LANES numbers k; flat
    uint8 arrays, bound uint8."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        source = start_of(context, builder, sig.args[0], args[0], args[1])
        nothing = ir.Constant(INT64, 0)
        values = start_of(context, builder, sig.args[3], args[3], nothing)
        bounds = spread(builder, args[2], LANES)
        goes_right = builder.icmp_unsigned(">=", load(builder, source, nothing, LANES), bounds)
        sides = [load(builder, values, args[place], LANES) for place in (5, 4)]
        store(builder, builder.select(goes_right, *sides), values, args[6], LANES)
        return context.get_dummy_value()

    return types.void(codes, types.int64, types.uint8, slots, types.int64, types.int64, types.int64), codegen


def _choose_lanes_plain(codes: Any, at: int, bound: int, slots: Any, left: int, right: int, into: int) -> None:
    goes_right = codes[at : at + LANES] >= bound
    slots[into : into + LANES] = np.where(goes_right, slots[right : right + LANES], slots[left : left + LANES])


def _add_leaves_compiled(
    typingctx: Any, values: Any, at: Any, tables: Any, sizes: Any, leaves: Any, leaf_at: Any, stride: Any
) -> Any:
    """values[at : at + pitch] += row leaves[leaf_at + t * stride] of table t, for TREES tables t.

    Flat arrays: values and tables of one integer type, leaves uint8; sizes: (pitch, numbers of a table), the pitch a
    multiple of WIDTH. The sum of a stretch of the row stays in registers while all tables add to it.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        unpack: Any = cgutils.unpack_tuple  # without types in Numba
        pitch, size = unpack(builder, args[3], 2)
        into = start_of(context, builder, sig.args[0], args[0], args[1])
        numbers = start_of(context, builder, sig.args[4], args[4], args[5])
        rows = []
        for tree in range(TREES):
            number = ir.Constant(INT64, tree)
            leaf = builder.zext(builder.load(builder.gep(numbers, [builder.mul(args[6], number)])), INT64)
            place = builder.add(builder.mul(leaf, pitch), builder.mul(size, number))
            rows.append(start_of(context, builder, sig.args[2], args[2], place))
        ranged: Any = cgutils.for_range_slice  # without types in Numba
        done: Any = ir.Constant(INT64, 0)
        for width in (4 * WIDTH, 2 * WIDTH, WIDTH):
            end = builder.add(done, builder.and_(builder.sub(pitch, done), ir.Constant(INT64, -width)))
            with ranged(builder, done, end, ir.Constant(INT64, width)) as (offset, _):
                total = load(builder, into, offset, width)
                for row in rows:
                    total = builder.add(total, load(builder, row, offset, width))
                store(builder, total, into, offset, width)
            done = end
        return context.get_dummy_value()

    return types.void(values, types.int64, tables, sizes, leaves, types.int64, types.int64), codegen


def _add_leaves_plain(
    values: Any, at: int, tables: Any, sizes: tuple[int, int], leaves: Any, leaf_at: int, stride: int
) -> None:
    for tree in range(TREES):
        first = int(leaves[leaf_at + tree * stride]) * sizes[0] + tree * sizes[1]
        values[at : at + sizes[0]] += tables[first : first + sizes[0]]


def _lead_compiled(typingctx: Any, values: Any, at: Any, n: Any) -> Any:
    """The greatest of values[at : at + n] less the second greatest (0 where two are level), int64; flat integers,
    n a multiple of WIDTH."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        ranged: Any = cgutils.for_range_slice  # without types in Numba
        source = start_of(context, builder, sig.args[0], args[0], args[1])
        number = source.type.pointee
        lowest = spread(builder, ir.Constant(number, -(1 << (number.width - 1))), WIDTH)
        first, second = once(builder, lowest), once(builder, lowest)

        def larger(one: Any, other: Any) -> tuple[Any, Any]:
            is_larger = builder.icmp_signed(">", one, other)
            return builder.select(is_larger, one, other), builder.select(is_larger, other, one)

        with ranged(builder, ir.Constant(INT64, 0), args[2], ir.Constant(INT64, WIDTH)) as (offset, _):
            top, below = larger(builder.load(first), load(builder, source, offset, WIDTH))
            builder.store(top, first)
            builder.store(larger(builder.load(second), below)[0], second)
        top, below, width = builder.load(first), builder.load(second), WIDTH
        while width > 1:
            top, lower = larger(*halves(builder, top, width))
            below = larger(larger(*halves(builder, below, width))[0], lower)[0]
            width //= 2
        ends = [builder.extract_element(vector, ir.Constant(INDEX, 0)) for vector in (top, below)]
        return builder.sub(*(end if number.width == 64 else builder.sext(end, INT64) for end in ends))

    return types.int64(values, types.int64, types.int64), codegen


def _lead_plain(values: Any, at: int, n: int) -> int:
    second, first = np.sort(values[at : at + n])[-2:]
    return int(first) - int(second)


def _scale_row_compiled(typingctx: Any, into: Any, at: Any, values: Any, first: Any, n: Any, factor: Any) -> Any:
    """into[at : at + n] = factor * values[first : first + n]; flat integer arrays, apart, `into` of int32 or int64 and
    at least as wide; the factor int64, and no product wider than `into`."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = start_of(context, builder, sig.args[0], args[0], args[1])
        source = start_of(context, builder, sig.args[2], args[2], args[3])
        number = target.type.pointee
        same = number.width == source.type.pointee.width
        narrow = args[5] if number.width == 64 else builder.trunc(args[5], number)

        def step(offset: Any, width: int) -> None:
            vector = load(builder, source, offset, width)
            wide = vector if same else builder.sext(vector, vector_of(number, width))
            store(builder, builder.mul(wide, spread(builder, narrow, width)), target, offset, width)

        along(builder, args[4], step)
        return context.get_dummy_value()

    return types.void(into, types.int64, values, types.int64, types.int64, types.int64), codegen


def _scale_row_plain(into: Any, at: int, values: Any, first: int, n: int, factor: int) -> None:
    into[at : at + n] = values[first : first + n].astype(into.dtype) * into.dtype.type(factor)


choose_lanes: Any = _choose_lanes_plain if JIT_DISABLED else intrinsic(_choose_lanes_compiled)
add_leaves: Any = _add_leaves_plain if JIT_DISABLED else intrinsic(_add_leaves_compiled)
lead: Any = _lead_plain if JIT_DISABLED else intrinsic(_lead_compiled)
scale_row: Any = _scale_row_plain if JIT_DISABLED else intrinsic(_scale_row_compiled)
place_values: Any = _place_values_plain if JIT_DISABLED else intrinsic(_place_values_compiled)
