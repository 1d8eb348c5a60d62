"""One column of a member's rows as Arrow decoded it, looked at where Arrow holds the values.

Whole columns are never held as floats: kernels convert a few values at a time, in the nearest cache.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boost_core.binning import Floats, Tally, tally_of
from boost_core.tile import Tile, Window, sample_floats, window_of

UINT8 = pa.uint8()


def to_floats(column: pa.ChunkedArray | pa.Array) -> Floats:
    """A numeric column as float64, missing values as NaN."""
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def owned(part: pa.Array, n_rows: int) -> pa.Array:
    """A slice of n_rows rows that were decoded, without what lies around it where that is most of them."""
    if 2 * len(part) > n_rows:
        return part
    return pa.concat_arrays([part, part.slice(0, 0)])  # two arrays are put together by copying them


def tile_of(part: pa.Array) -> Tile:
    """The values of a numeric array, not copied where they are of a type that kernels know and none is missing."""
    if pa.types.is_boolean(part.type):
        part = part.cast(pa.uint8())
    elif pa.types.is_float16(part.type):
        part = part.cast(pa.float32())
    if part.null_count == 0:
        tile = Tile(part.to_numpy(zero_copy_only=True))
        _ = tile.span  # is wanted later, and found fastest while the values are in the nearest caches
        return tile
    bits, buffer = part.buffers()
    values = pa.Array.from_buffers(part.type, len(part), [None, buffer], 0, part.offset).to_numpy(zero_copy_only=True)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), count=part.offset + len(part), bitorder="little")
    valid = flags[part.offset :].view(np.bool_)
    if values.dtype.kind != "f":  # what stands in place of a missing number may be any
        values = np.where(valid, values, values[np.argmax(valid)] if valid.any() else 0).astype(values.dtype)
    return Tile(values, valid)


def copied(column: pa.ChunkedArray, room: NDArray[np.uint8]) -> Tile | None:
    """The values of a column of unsigned bytes, none missing, in one array, as `moved` has them, in a fourth of the
    time; None where it is not such, or not all of its rows are wanted. room: (OUT, [n_rows])."""
    if column.num_chunks != 1 or column.type != UINT8:
        return None
    part = column.chunk(0)
    if len(part) != len(room) or part.null_count > 0:
        return None
    room[:] = np.frombuffer(part.buffers()[1], np.uint8, len(part), part.offset)
    return Tile(room)


def moved(tiles: Sequence[Tile], room: NDArray[np.uint8]) -> list[Tile]:
    """A column's tiles; those of unsigned bytes, none missing, are copied to their place in its room (OUT, [n_rows]).

    They are in the nearest caches still, and Arrow's memory is free for the next columns.
    """
    found, at = [], 0
    for tile in tiles:
        if tile.values.dtype == np.uint8 and tile.valid is None:
            own = room[at : at + len(tile)]
            own[:] = tile.values
            found.append(Tile(own))
        else:
            found.append(tile)
        at += len(tile)
    return found


@dataclass(frozen=True)
class RawColumn:
    """Numeric values in the order of the rows. kept: bool [n rows in all], the rows that are in use; None = all."""

    parts: tuple[Tile, ...]
    kept: NDArray[np.bool_] | None

    @cached_property
    def edges(self) -> list[int]:
        """Where each part begins, and where the last ends."""
        return [0, *accumulate(map(len, self.parts))]

    @cached_property
    def window(self) -> Window | None:
        """The whole numbers that the values are among; None where they are not, or not close together."""
        return window_of(self.parts)

    @property
    def n_rows(self) -> int:
        """All rows, also those left out."""
        return self.edges[-1]

    def n_used(self, stop: int) -> int:
        """How many of the first rows are in use."""
        return stop if self.kept is None else int(np.count_nonzero(self.kept[:stop]))

    def tiles(self, start: int = 0, stop: int | None = None) -> Iterator[Tile]:
        """The rows from start to stop (numbers count all rows) that are in use."""
        stop = self.n_rows if stop is None else stop
        for part, first in zip(self.parts, self.edges, strict=False):
            low, high = max(start - first, 0), min(stop - first, len(part))
            if low < high:
                tile = part.rows(low, high)
                yield tile if self.kept is None else tile.taken(self.kept[first + low : first + high])

    def _places(self, rows: NDArray[np.int64]) -> Iterator[tuple[Tile, NDArray[np.int64], int]]:
        """By part which of its rows are among some, counted from the column's first, and which is the part's first;
        rows: ascending, counting those in use."""
        if self.kept is not None:
            rows = np.flatnonzero(self.kept)[rows]
        low, ends = 0, np.searchsorted(rows, self.edges[1:]).tolist()
        for part, first, high in zip(self.parts, self.edges, ends, strict=False):
            yield part, rows[low:high], first
            low = high

    def sample(self, rows: NDArray[np.int64], values: Floats) -> None:
        """values (OUT, float64 like rows): of some rows; rows: ascending, counting those in use."""
        at = 0
        for part, found, first in self._places(rows):
            out = values[at : at + len(found)]
            if part.values.dtype.kind == "f":
                sample_floats(part, found, first, out)
            else:
                out[:] = part.taken(found - first).floats()
            at += len(found)

    def tally(self, rows: NDArray[np.int64]) -> Tally:
        """Distinct values of some rows, and how often each occurs; rows: ascending, counting those in use."""
        if self.window is None:
            values = np.empty(len(rows))
            self.sample(rows, values)
            return tally_of(values)
        return self.window.tally(*zip(*self._places(rows), strict=True))
