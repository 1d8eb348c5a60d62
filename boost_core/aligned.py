"""Arrays that start on a cache line: vector additions that cross one take twice as long (docs/performance.md)."""

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

CACHE_LINE = 64  # bytes
FETCHED_AHEAD = 4096  # bytes: a page, which no processor fetches beyond


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like numpy.empty, but the first entry is at a multiple of CACHE_LINE."""
    return _on_a_line(np.empty(_room(shape, dtype), np.uint8), shape, dtype)


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Like numpy.zeros, but the first entry is at a multiple of CACHE_LINE."""
    return _on_a_line(np.zeros(_room(shape, dtype), np.uint8), shape, dtype)


def aligned_rows(n_rows: int, n_columns: int, dtype: DTypeLike) -> NDArray[Any]:
    """Like aligned_empty, of that many columns and more: rows that a thread each writes are so far apart that what the
    processor fetches ahead of one thread is not another's."""
    a_line, apart = (size // np.dtype(dtype).itemsize for size in (CACHE_LINE, FETCHED_AHEAD))
    return aligned_empty((n_rows, -(-n_columns // a_line) * a_line + apart), dtype)


def _bytes(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize


def _room(shape: tuple[int, ...], dtype: DTypeLike) -> int:
    return _bytes(shape, dtype) + CACHE_LINE


def _on_a_line(room: NDArray[np.uint8], shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    start = -room.ctypes.data % CACHE_LINE
    return room[start : start + _bytes(shape, dtype)].view(dtype).reshape(shape)
