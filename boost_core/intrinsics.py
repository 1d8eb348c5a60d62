"""LLVM intrinsics that plain Numba cannot express, each with its twin for when the JIT is off.

`add_lanes` adds one row of the gain matrix to rows of a histogram with explicit vector instructions. LLVM does
not vectorise the plain inner loop: it is short and its two arrays may alias (4 to 5 times slower, see
docs/performance.md). The lanes are the types of a tuple, hence part of a kernel's type, hence unrolled.
"""

import os
import platform
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core.aligned import CACHE_LINE
from boost_core.jit import JIT_DISABLED
from boost_core.vector_code import spread

LANE = 4  # channels of a lane that is an int; one that is a bool has a single channel
MOST_PADDING = 0.1  # of a row's channels: a few single ones at its end cost less than the memory of more padding
WIDEST = 8  # channels per vector instruction: 512 bits of int64, split by LLVM where registers are narrower

Lanes = tuple[int | bool, ...]


@cache
def lanes_for(n_channels: int) -> Lanes:
    """The lanes of rows of n_channels: filled up to whole lanes, or one or two single channels behind those."""
    whole, rest = divmod(n_channels, LANE)
    if rest in (1, 2) and LANE - rest > MOST_PADDING * n_channels:
        return (0,) * whole + (False,) * rest
    return (0,) * (whole + (rest > 0))


def width_for(n_channels: int) -> int:
    """Channels of a row of a histogram or of gains, with those that fill it up."""
    return _width_plain(lanes_for(n_channels))


def _vector(builder: Any, pointer: Any, offset: int, bits: int, width: int) -> Any:
    place = builder.gep(pointer, [ir.Constant(ir.IntType(64), offset)])
    return builder.bitcast(place, ir.VectorType(ir.IntType(bits), width).as_pointer())


def _emit_adds(builder: Any, totals: list[Any], row: Any, n_channels: int, row_bits: int) -> None:
    """Every total row += row, a vector of the row at a time: it is read and widened once for all of them."""
    offset = 0
    while offset < n_channels:
        width = min(WIDEST, n_channels - offset)
        added = builder.load(_vector(builder, row, offset, row_bits, width), align=row_bits // 8)
        if row_bits < 64:
            added = builder.sext(added, ir.VectorType(ir.IntType(64), width))
        for total in totals:
            total_at = _vector(builder, total, offset, 64, width)
            builder.store(builder.add(builder.load(total_at, align=8), added), total_at, align=8)
        offset += width


def width_of_type(lanes: Any) -> int:
    """The channels of a row of lanes of a type of Numba's."""
    return sum(1 if isinstance(lane, types.Boolean) else LANE for lane in lanes)


def _width_compiled(typingctx: Any, lanes: Any) -> Any:
    """The channels of a row of these lanes, int64: a constant."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return ir.Constant(ir.IntType(64), width_of_type(sig.args[0]))

    return types.int64(lanes), codegen


def _width_plain(lanes: Lanes) -> int:
    return sum(1 if isinstance(lane, bool) else LANE for lane in lanes)


def _add_lanes_compiled(typingctx: Any, totals: Any, places: Any, rows: Any, row_at: Any, lanes: Any) -> Any:
    """totals[at : at + C] += rows[row_at : row_at + C] for every at of the tuple places, C = width_of(lanes); flat
    int64 and int32/int64 arrays. The places must be apart."""
    n_channels = width_of_type(lanes)
    signature = types.void(totals, places, rows, row_at, lanes)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        total_array = context.make_array(sig.args[0])(context, builder, args[0])
        row_array = context.make_array(sig.args[2])(context, builder, args[2])
        unpack: Any = cgutils.unpack_tuple  # without types in Numba
        starts = unpack(builder, args[1], len(sig.args[1]))
        total_rows = [builder.gep(total_array.data, [start]) for start in starts]
        row = builder.gep(row_array.data, [args[3]])
        _emit_adds(builder, total_rows, row, n_channels, sig.args[2].dtype.bitwidth)
        return context.get_dummy_value()

    return signature, codegen


def _add_lanes_plain(totals: Any, places: tuple[int, ...], rows: Any, row_at: int, lanes: Lanes) -> None:
    n_channels = _width_plain(lanes)
    for at in places:
        totals[at : at + n_channels] += rows[row_at : row_at + n_channels]


def _add_cells_compiled(
    typingctx: Any, totals: Any, bases: Any, columns: Any, number: Any, rows: Any, row_at: Any, lanes: Any
) -> Any:
    """As add_lanes, for the places bases[j] + columns[j][number] * width_of(lanes) for every j of two tuples, of int64
    and of uint8 arrays."""
    n_channels = width_of_type(lanes)
    signature = types.void(totals, bases, columns, number, rows, row_at, lanes)

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        total_array = context.make_array(sig.args[0])(context, builder, args[0])
        row_array = context.make_array(sig.args[4])(context, builder, args[4])
        unpack: Any = cgutils.unpack_tuple  # without types in Numba
        starts, codes = (unpack(builder, args[place], len(sig.args[place])) for place in (1, 2))
        width, total_rows = ir.Constant(ir.IntType(64), n_channels), []
        for start, column in zip(starts, codes, strict=True):
            data = context.make_array(sig.args[2].dtype)(context, builder, column).data
            code = builder.zext(builder.load(builder.gep(data, [args[3]])), ir.IntType(64))
            total_rows.append(builder.gep(total_array.data, [builder.add(start, builder.mul(code, width))]))
        row = builder.gep(row_array.data, [args[5]])
        _emit_adds(builder, total_rows, row, n_channels, sig.args[4].dtype.bitwidth)
        return context.get_dummy_value()

    return signature, codegen


def _add_cells_plain(
    totals: Any, bases: tuple[int, ...], columns: tuple[Any, ...], number: int, rows: Any, row_at: int, lanes: Lanes
) -> None:
    width = _width_plain(lanes)
    places = [base + int(codes[number]) * width for base, codes in zip(bases, columns, strict=True)]
    _add_lanes_plain(totals, tuple(places), rows, row_at, lanes)


def _gain_row_compiled(typingctx: Any, into: Any, at: Any, values: Any, first: Any, n_channels: Any, lanes: Any) -> Any:
    """A row of the gain matrix, of width_of(lanes) numbers: into[at : at + n] = -values[first : first + n] for
    n = n_channels, then a 1 (gain_matrix.GainMatrix), then zeros. Flat arrays, apart: values int32, of which as many as
    a row has are read; into int32 or int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        target = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        source = builder.gep(context.make_array(sig.args[2])(context, builder, args[2]).data, [args[3]])
        all_lanes, bits = width_of_type(sig.args[5]), sig.args[0].dtype.bitwidth
        for offset in range(0, all_lanes, WIDEST):
            width = min(WIDEST, all_lanes - offset)
            vector = builder.load(_vector(builder, source, offset, 32, width), align=4)
            if bits > 32:
                vector = builder.sext(vector, ir.VectorType(ir.IntType(bits), width))
            vector = builder.neg(vector)
            if offset + width == all_lanes:  # what fills a row up is in its last vector (lanes_for)
                numbers = ir.Constant(vector.type, [offset + lane for lane in range(width)])
                count_at = spread(builder, builder.trunc(args[4], vector.type.element), width)
                counted = builder.zext(builder.icmp_signed("==", numbers, count_at), vector.type)
                vector = builder.select(builder.icmp_signed("<", numbers, count_at), vector, counted)
            builder.store(vector, _vector(builder, target, offset, bits, width), align=bits // 8)
        return context.get_dummy_value()

    return types.void(into, types.int64, values, types.int64, types.int64, lanes), codegen


def _gain_row_plain(into: Any, at: int, values: Any, first: int, n_channels: int, lanes: Lanes) -> None:
    into[at : at + _width_plain(lanes)] = 0
    into[at : at + n_channels] = -values[first : first + n_channels]
    into[at + n_channels] = 1


def _prefetch_compiled(typingctx: Any, rows: Any, row_at: Any, lanes: Any) -> Any:
    """Fetch rows[row_at : row_at + C] into the caches; the place may lie outside the array."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        array = context.make_array(sig.args[0])(context, builder, args[0])
        start = builder.bitcast(builder.gep(array.data, [args[1]]), ir.IntType(8).as_pointer())
        flags = [ir.Constant(ir.IntType(32), flag) for flag in (0, 3, 1)]  # to read, into all levels, data
        n_bytes = width_of_type(sig.args[2]) * sig.args[0].dtype.bitwidth // 8
        declared = ir.FunctionType(ir.VoidType(), [ir.IntType(8).as_pointer(), *(flag.type for flag in flags)])
        get: Any = cgutils.get_or_insert_function  # without types in Numba
        function = get(builder.module, declared, "llvm.prefetch.p0")
        for offset in range(0, n_bytes, CACHE_LINE):
            builder.call(function, [builder.gep(start, [ir.Constant(ir.IntType(64), offset)]), *flags])
        return context.get_dummy_value()

    return types.void(rows, types.int64, lanes), codegen


def _prefetch_plain(rows: Any, row_at: int, lanes: Lanes) -> None:
    """A hint only."""


def _bits_compiled(typingctx: Any, value: Any) -> Any:
    """The 64 bits of a float64 as int64."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(64))

    return types.int64(types.float64), codegen


def _from_bits_compiled(typingctx: Any, bits: Any) -> Any:
    """The float64 that has these 64 bits."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.DoubleType())

    return types.float64(types.int64), codegen


def _fused_compiled(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once (IEEE 754 fusedMultiplyAdd): the same bits on every processor, emulated or not."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float64(types.float64, types.float64, types.float64), codegen


def _fused_plain(a: float, b: float, c: float) -> float:
    return float(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)))


def _atomic(operation: str, description: str) -> Any:
    """An atomic read-modify-write on an entry of an int64 array; the intrinsic returns what it held before."""

    def compiled(typingctx: Any, array: Any, at: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            place = builder.gep(
                context.make_array(sig.args[0])(context, builder, args[0]).data,
                [args[1]],
            )
            return builder.atomic_rmw(operation, place, args[2], "seq_cst")

        return types.int64(array, types.int64, types.int64), codegen

    compiled.__doc__ = description
    return compiled


def _load_shared_compiled(typingctx: Any, array: Any, at: Any) -> Any:
    """Read an entry of an int64 array that another thread may be writing: what it wrote before is seen too."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = builder.gep(context.make_array(sig.args[0])(context, builder, args[0]).data, [args[1]])
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(array, types.int64), codegen


def _yield_compiled(typingctx: Any) -> Any:
    """Let another thread of the machine run, if one waits for this processor."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if os.name == "posix":
            declared = ir.FunctionType(ir.IntType(32), [])
            function: Any = cgutils.get_or_insert_function  # without types in Numba
            builder.call(function(builder.module, declared, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


def _pause_compiled(typingctx: Any) -> Any:
    """Wait a moment (some 20 to 50 ns) in a loop that looks for another thread, and leave the processor's units to a
    thread that shares its core."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if platform.machine() in ("x86_64", "AMD64"):
            declared = ir.FunctionType(ir.VoidType(), [])
            function: Any = cgutils.get_or_insert_function  # without types in Numba
            builder.call(function(builder.module, declared, "llvm.x86.sse2.pause"), [])
        return context.get_dummy_value()

    return types.void(), codegen


def _call_clock_compiled(typingctx: Any, address: Any, number: Any) -> Any:
    """Nanoseconds by the function at an address, int (int number, int64 [2] *seconds_and_nanoseconds); 0 where the
    address is 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide, narrow = ir.IntType(64), ir.IntType(32)
        utils: Any = cgutils  # without types in Numba
        room = utils.alloca_once(builder, wide, size=2)
        told = utils.alloca_once_value(builder, ir.Constant(wide, 0))
        with builder.if_then(builder.icmp_unsigned("!=", args[0], ir.Constant(wide, 0))):
            declared = ir.FunctionType(narrow, [narrow, wide.as_pointer()])
            function = builder.inttoptr(args[0], declared.as_pointer())
            builder.call(function, [builder.trunc(args[1], narrow), room])
            parts = [builder.load(builder.gep(room, [ir.Constant(wide, part)])) for part in range(2)]
            builder.store(builder.add(builder.mul(parts[0], ir.Constant(wide, 10**9)), parts[1]), told)
        return builder.load(told)

    return types.int64(types.int64, types.int64), codegen


def _call_clock_plain(address: int, number: int) -> int:
    """Uncompiled kernels are not timed."""
    return 0


def _yield_plain() -> None:
    """Python's threads take turns by themselves."""


def _fetch_add_plain(array: Any, at: int, value: int) -> int:
    before = int(array[at])
    array[at] += value
    return before


def _exchange_plain(array: Any, at: int, value: int) -> int:
    before = int(array[at])
    array[at] = value
    return before


def _load_shared_plain(array: Any, at: int) -> int:
    return int(array[at])


def _bits_plain(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def _from_bits_plain(bits: int) -> float:
    return float(np.int64(bits).view(np.float64))


def _pause_plain() -> None:
    """Nobody shares."""


width_of: Any = _width_plain if JIT_DISABLED else intrinsic(_width_compiled)
add_lanes: Any = _add_lanes_plain if JIT_DISABLED else intrinsic(_add_lanes_compiled)
add_cells: Any = _add_cells_plain if JIT_DISABLED else intrinsic(_add_cells_compiled)
gain_row: Any = _gain_row_plain if JIT_DISABLED else intrinsic(_gain_row_compiled)
prefetch_lanes: Any = _prefetch_plain if JIT_DISABLED else intrinsic(_prefetch_compiled)
bits_of: Any = _bits_plain if JIT_DISABLED else intrinsic(_bits_compiled)
from_bits: Any = _from_bits_plain if JIT_DISABLED else intrinsic(_from_bits_compiled)
fused: Any = _fused_plain if JIT_DISABLED else intrinsic(_fused_compiled)
fetch_add: Any = _fetch_add_plain if JIT_DISABLED else intrinsic(_atomic("add", "Add to an entry."))
exchange: Any = _exchange_plain if JIT_DISABLED else intrinsic(_atomic("xchg", "Set an entry."))
load_shared: Any = _load_shared_plain if JIT_DISABLED else intrinsic(_load_shared_compiled)
call_clock: Any = _call_clock_plain if JIT_DISABLED else intrinsic(_call_clock_compiled)
yield_processor: Any = _yield_plain if JIT_DISABLED else intrinsic(_yield_compiled)
pause: Any = _pause_plain if JIT_DISABLED else intrinsic(_pause_compiled)
