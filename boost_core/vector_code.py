"""Vector instructions over a stretch of a flat array: what row_vectors.py and tree_vectors.py are made of.

LLVM's own loops over short stretches take 16 or 32 numbers at a time after a check whether arrays overlap, so most of a
stretch is left to their scalar rest (docs/performance.md). These take WIDTH numbers at a time.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils

WIDTH = 8  # 256 bits of int32; LLVM splits what the processor has no register for
INT64 = ir.IntType(64)
INDEX = ir.IntType(32)


def along(builder: Any, n: Any, step: Callable[[Any, int], None]) -> None:
    """Call step(offset, width) for whole vectors of a row of n numbers, then for halves of one, down to a single
    number."""
    whole = builder.and_(n, ir.Constant(INT64, -WIDTH))
    ranged: Any = cgutils.for_range_slice  # without types in Numba
    with ranged(builder, ir.Constant(INT64, 0), whole, ir.Constant(INT64, WIDTH)) as (offset, _):
        step(offset, WIDTH)
    done, width = whole, WIDTH // 2
    while width > 0:
        has = builder.and_(n, ir.Constant(INT64, width))
        with builder.if_then(builder.icmp_unsigned("!=", has, ir.Constant(INT64, 0))):
            step(done, width)
        done, width = builder.add(done, has), width // 2


def start_of(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Pointer to an entry of a flat array."""
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def vector_of(number: Any, width: int) -> Any:
    return ir.VectorType(number, width)


def place_of(builder: Any, start: Any, offset: Any, width: int) -> Any:
    """Pointer to a vector of a row."""
    pointer = builder.gep(start, [offset])
    return builder.bitcast(pointer, vector_of(pointer.type.pointee, width).as_pointer())


def _bytes(number: Any) -> int:
    return 8 if isinstance(number, ir.DoubleType) else int(number.width) // 8


def load(builder: Any, start: Any, offset: Any, width: int) -> Any:
    return builder.load(place_of(builder, start, offset, width), align=_bytes(start.type.pointee))


def store(builder: Any, vector: Any, start: Any, offset: Any, width: int) -> None:
    builder.store(vector, place_of(builder, start, offset, width), align=_bytes(start.type.pointee))


def spread(builder: Any, number: Any, width: int) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(vector_of(number.type, width), ir.Undefined)
    first = builder.insert_element(nothing, number, ir.Constant(INDEX, 0))
    return builder.shuffle_vector(first, nothing, ir.Constant(vector_of(INDEX, width), None))


def halves(builder: Any, vector: Any, width: int) -> tuple[Any, Any]:
    nothing = ir.Constant(vector.type, ir.Undefined)
    masks = (list(range(width // 2)), list(range(width // 2, width)))
    low, high = (
        builder.shuffle_vector(vector, nothing, ir.Constant(vector_of(INDEX, width // 2), mask)) for mask in masks
    )
    return low, high


def to_width(builder: Any, vector: Any, width: int, wanted: int) -> Any:
    """A vector of the wanted width and the same sum: filled up with zeros, or its halves added up."""
    while width > wanted:
        vector, width = builder.add(*halves(builder, vector, width)), width // 2
    if width == wanted:
        return vector
    lanes = [*range(width), *[width] * (wanted - width)]  # the second vector's first number, which is 0
    mask = ir.Constant(vector_of(INDEX, wanted), lanes)
    return builder.shuffle_vector(vector, ir.Constant(vector.type, None), mask)


def total_of(builder: Any, vector: Any, width: int) -> Any:
    """The sum of a vector's numbers."""
    return builder.extract_element(to_width(builder, vector, width, 1), ir.Constant(INDEX, 0))
