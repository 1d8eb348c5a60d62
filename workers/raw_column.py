"""One column of a member's rows as Arrow decoded it, looked at a tile at a time.

Whole columns are never held as floats: a tile's floats stay in the nearest caches while they are counted or binned, and
values without nulls are looked at where Arrow holds them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boost_core.binning import Floats
from boost_core.tile import Tile

TILE_ROWS = 32_768  # 256 KB of floats: half of a level 2 cache


def to_floats(column: pa.ChunkedArray | pa.Array) -> Floats:
    """A numeric column as float64, missing values as NaN."""
    return np.asarray(pc.cast(column, pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def owned(part: pa.Array, n_rows: int) -> pa.Array:
    """A slice of n_rows rows that were decoded, without what lies around it where that is most of them."""
    if 2 * len(part) > n_rows:
        return part
    return pa.concat_arrays([part, part.slice(0, 0)])  # two arrays are put together by copying them


@dataclass(frozen=True)
class RawColumn:
    """Numeric values in the order of the rows. kept: bool [n rows in all], the rows that are in use; None = all."""

    parts: tuple[pa.Array, ...]
    kept: NDArray[np.bool_] | None

    @cached_property
    def edges(self) -> NDArray[np.int64]:
        """Where each part begins, and where the last ends."""
        return np.cumsum([0, *map(len, self.parts)], dtype=np.int64)

    @property
    def n_rows(self) -> int:
        """All rows, also those left out."""
        return int(self.edges[-1])

    def n_used(self, stop: int) -> int:
        """How many of the first rows are in use."""
        return stop if self.kept is None else int(np.count_nonzero(self.kept[:stop]))

    def tiles(self, start: int = 0, stop: int | None = None) -> Iterator[Tile]:
        """The rows from start to stop (numbers count all rows) that are in use, in the type that they have or as
        float64. A tile may be changed by nobody."""
        stop = self.n_rows if stop is None else stop
        for part, first in zip(self.parts, self.edges.tolist(), strict=False):
            low, high = max(start - first, 0), min(stop - first, len(part))
            for at in range(low, high, TILE_ROWS):
                size = min(TILE_ROWS, high - at)
                piece = part.slice(at, size)
                tile = piece.to_numpy(zero_copy_only=True) if is_plain(piece) else to_floats(piece)
                yield tile if self.kept is None else tile[self.kept[first + at : first + at + size]]

    def take(self, rows: NDArray[np.int64], values: Floats) -> None:
        """values (OUT, float64 like rows): of some rows; rows: ascending, counting those in use."""
        if self.kept is not None:
            rows = np.flatnonzero(self.kept)[rows]
        cuts = np.searchsorted(rows, self.edges)
        for part, first, low, high in zip(self.parts, self.edges, cuts[:-1], cuts[1:], strict=False):
            wanted = rows[low:high] - first
            if is_plain(part):
                values[low:high] = part.to_numpy(zero_copy_only=True)[wanted]
            else:
                values[low:high] = to_floats(part.take(pa.array(wanted)))


def is_plain(part: pa.Array) -> bool:
    """Whether NumPy can look at the values where they are."""
    return part.null_count == 0 and not pa.types.is_boolean(part.type)
