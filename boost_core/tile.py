"""Distinct values and bins of a tile: some of a column's rows, of any numeric type.

Whole numbers that lie close together, as they mostly do, are told apart by a table of their offsets from the least one:
no floats, no hashes, no search. The table is made for each tile, so that nothing need be known of the others.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import BinGrid
from boost_core.binning import Distinct, Floats
from boost_core.jit import kernel

Tile = NDArray[Any]
SPAN = 4096  # offsets in a table; one of more would cost as much as the tile of 32,768 rows itself


def add_tile(distinct: Distinct, tile: Tile) -> None:
    """Add the distinct values of a tile."""
    offsets = offsets_of(tile)
    if offsets is None:
        distinct.add(floats(tile))
        return
    seen = np.zeros(SPAN, np.bool_)
    _mark(offsets, seen)
    distinct.add(floats(np.flatnonzero(seen).astype(tile.dtype) + tile.min()))


def bin_tile(grid: BinGrid, tile: Tile, codes: NDArray[np.uint8]) -> bool:
    """codes (OUT, like tile): the bins; whether a value is missing (NaN)."""
    offsets = offsets_of(tile)
    if offsets is None:
        return grid.bins(floats(tile), codes)
    least = tile.min()
    every = np.arange(int(tile.max()) - int(least) + 1).astype(tile.dtype) + least
    table = np.empty(len(every), np.uint8)
    grid.bins(floats(every), table)
    _look_up(offsets, table, codes)
    return False


def floats(tile: Tile) -> Floats:
    """As float64; a tile of these as it is."""
    return np.ascontiguousarray(tile, np.float64)


def offsets_of(tile: Tile) -> NDArray[np.uint16] | None:
    """How far above the least value each is; None where the tile does not hold whole numbers close together."""
    if tile.dtype.kind not in "iu" or not len(tile):
        return None
    least = tile.min()
    if int(tile.max()) - int(least) >= SPAN:
        return None
    # a difference that wraps around in its signed type is right in the unsigned one
    offsets: NDArray[np.uint16] = np.subtract(tile, least).view(f"u{tile.dtype.itemsize}").astype(np.uint16, copy=False)
    return offsets


@kernel
def _mark(offsets, seen):  # type: ignore[no-untyped-def]
    """seen: IN, OUT."""
    for i in range(offsets.shape[0]):
        seen[offsets[i]] = True


@kernel
def _look_up(offsets, table, codes):  # type: ignore[no-untyped-def]
    """codes (OUT): the table's entry of each offset."""
    for i in range(offsets.shape[0]):
        codes[i] = table[offsets[i]]
