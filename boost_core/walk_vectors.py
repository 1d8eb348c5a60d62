"""Instructions for a row that walks down a forest (walks.py), each with its twin for when the JIT is off."""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from boost_core.jit import JIT_DISABLED
from boost_core.vector_code import INT64, WIDTH, load, spread, start_of, store, vector_of

GROUP = 8  # trees that are walked down side by side
BOUND_AT, LEAF_AT, CHILD_AT = 16, 24, 32  # bits of a record below these fields; below the first one is the code column


def _walk_group_compiled(
    typingctx: Any, records: Any, places: Any, first: Any, codes: Any, code_at: Any, steps: Any
) -> Any:
    """places[first : first + GROUP], numbers of records: from each so many steps down its tree by the codes from
    code_at on; then the numbers of the leaves there. Flat arrays, int64 but for codes (uint8)."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        ranged: Any = cgutils.for_range  # without types in Numba
        byte, column_bits = ir.IntType(8), ir.IntType(BOUND_AT)
        table = start_of(context, builder, sig.args[0], args[0], ir.Constant(INT64, 0))
        own = start_of(context, builder, sig.args[3], args[3], args[4])
        begin = start_of(context, builder, sig.args[1], args[1], args[2])
        slots = [builder.gep(begin, [ir.Constant(INT64, number)]) for number in range(GROUP)]
        found = [once(builder, builder.load(slot)) for slot in slots]

        def record_at(place: Any) -> Any:
            return builder.load(builder.gep(table, [builder.load(place)]))

        def field(record: Any, at: int) -> Any:
            return builder.ashr(record, ir.Constant(INT64, at))

        with ranged(builder, args[5]):
            for place in found:
                record = record_at(place)
                column = builder.zext(builder.trunc(record, column_bits), INT64)
                bound = builder.trunc(field(record, BOUND_AT), byte)
                goes_right = builder.icmp_unsigned(">=", builder.load(builder.gep(own, [column])), bound)
                builder.store(builder.add(field(record, CHILD_AT), builder.zext(goes_right, INT64)), place)
        for place, slot in zip(found, slots, strict=True):
            leaf = builder.trunc(field(record_at(place), LEAF_AT), byte)
            builder.store(builder.zext(leaf, INT64), slot)
        return context.get_dummy_value()

    number = types.int64
    return types.void(records, places, number, codes, number, number), codegen


def _walk_group_plain(records: Any, places: Any, first: int, codes: Any, code_at: int, steps: int) -> None:
    for slot in range(first, first + GROUP):
        place = int(places[slot])
        for _ in range(steps):
            record = int(records[place])
            column, bound = record & ((1 << BOUND_AT) - 1), record >> BOUND_AT & 255
            place = (record >> CHILD_AT) + int(codes[code_at + column] >= bound)
        places[slot] = int(records[place]) >> LEAF_AT & 255


def _add_said_compiled(typingctx: Any, sums: Any, pitch: Any, says: Any, places: Any, factors: Any, n: Any) -> Any:
    """sums[:pitch] += factors[t] * says[places[t] : places[t] + pitch], for n trees t.

    Flat arrays: sums and factors of one integer type at least as wide as that of says, places int64; the pitch a
    multiple of WIDTH. A stretch of the sums stays in registers while all trees add to it.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        once: Any = cgutils.alloca_once_value  # without types in Numba
        ranged: Any = cgutils.for_range_slice  # without types in Numba
        nothing, one = ir.Constant(INT64, 0), ir.Constant(INT64, 1)
        into, said, starts, given = (start_of(context, builder, sig.args[at], args[at], nothing) for at in (0, 2, 3, 4))
        number = into.type.pointee
        same = number.width == said.type.pointee.width
        done: Any = nothing
        for width in (4 * WIDTH, 2 * WIDTH, WIDTH):
            end = builder.add(done, builder.and_(builder.sub(args[1], done), ir.Constant(INT64, -width)))
            with ranged(builder, done, end, ir.Constant(INT64, width)) as (offset, _):
                total = once(builder, load(builder, into, offset, width))
                with ranged(builder, nothing, args[5], one) as (tree, _):
                    start = builder.load(builder.gep(starts, [tree]))
                    vector = load(builder, said, builder.add(start, offset), width)
                    wide = vector if same else builder.sext(vector, vector_of(number, width))
                    factor = spread(builder, builder.load(builder.gep(given, [tree])), width)
                    builder.store(builder.add(builder.load(total), builder.mul(wide, factor)), total)
                store(builder, builder.load(total), into, offset, width)
            done = end
        return context.get_dummy_value()

    return types.void(sums, types.int64, says, places, factors, types.int64), codegen


def _add_said_plain(sums: Any, pitch: int, says: Any, places: Any, factors: Any, n: int) -> None:
    for tree in range(n):
        start = int(places[tree])
        sums[:pitch] += says[start : start + pitch].astype(sums.dtype) * factors[tree]


walk_group: Any = _walk_group_plain if JIT_DISABLED else intrinsic(_walk_group_compiled)
add_said: Any = _add_said_plain if JIT_DISABLED else intrinsic(_add_said_compiled)
