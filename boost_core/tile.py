"""Some of a column's rows, of any numeric type: their distinct values, how often each occurs, and their bins.

Whole numbers that lie close together, as they mostly do, are told apart by a table of their offsets from the least one:
no floats, no hashes, no search. Kernels see them as signed: a difference that wraps around is right in its own bits.

    value          least   least + 1   ...   least + size - 1
    offset         0       1           ...   size - 1              of a window, for one column of one member
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import EVERY, BinGrid, make_grid
from boost_core.binning import Distinct, Floats, Tally
from boost_core.jit import kernel

FIRST_ROWS = 1024
FEW_ROWS = 32_768  # converted to float64 at a time: 256 KB, an eighth to a half of a level 2 cache
LEAST_SPAN, MOST_SPAN = 4096, 65_536  # offsets in a table however few rows there are, and however many
EXACT = 1 << 53  # beyond, two numbers may be one float64
LANES = 4  # tables that count in turns: equal values that follow each other do not wait for each other's count
BYTE_SPANS = {"i": (-128, 127), "u": (0, 255)}
FEW_NUMBERS = 1024  # beyond, equal values seldom follow each other, and one table stays in nearer caches than four


@dataclass(frozen=True)
class Tile:
    """values: integers or floats of 4 or 8 bytes [n], C-contiguous; valid: bool [n], None = none is missing but NaN.

    Of integers also those that are not valid lie among the others.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        values = self.values.view()
        values.flags.writeable = False  # as Arrow's are: kernels are compiled once
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """The least and the greatest of integers; None of floats and of no values."""
        if self.values.dtype.kind not in "iu" or not len(self):
            return None
        if self.values.dtype.itemsize == 1:  # as good as any
            return BYTE_SPANS[self.values.dtype.kind]
        return int(self.values.min()), int(self.values.max())

    def rows(self, start: int, stop: int) -> "Tile":
        """Those from start to stop."""
        if start == 0 and stop == len(self.values):
            return self
        return Tile(self.values[start:stop], None if self.valid is None else self.valid[start:stop])

    def taken(self, rows: NDArray[Any]) -> "Tile":
        """Some rows: their numbers, or a mask of them."""
        return Tile(self.values[rows], None if self.valid is None else self.valid[rows])

    def floats(self) -> Floats:
        """As float64, missing ones as NaN; a tile of these as it is."""
        found = np.ascontiguousarray(self.values, np.float64)
        return found if self.valid is None else np.where(self.valid, found, np.nan)

    def pieces(self, first: int = 0) -> Iterator["Tile"]:
        """Its rows from the first one on, in tiles of few rows."""
        for start in range(first, len(self), FEW_ROWS):
            yield self.rows(start, min(start + FEW_ROWS, len(self)))


@dataclass(frozen=True)
class Window:
    """The whole numbers of a column of one type: size of them from `least` on."""

    type_: np.dtype[Any]
    least: int
    size: int

    def numbers(self, offsets: NDArray[np.int64]) -> Floats:
        """What stands at offsets, as float64. A sum that wraps around is right in its type."""
        found: Floats = (offsets.astype(self.type_) + np.array(self.least).astype(self.type_)).astype(np.float64)
        return found

    @property
    def signed(self) -> tuple[str, int, int]:
        """The signed type of as many bytes, the least number in it, and the mask of its bits."""
        n_bytes = self.type_.itemsize
        least = int(np.array([self.least], self.type_).view(f"i{n_bytes}")[0])
        return f"i{n_bytes}", least, -1 if n_bytes == 8 else (1 << 8 * n_bytes) - 1

    def mark(self, tile: Tile, limit: int, seen: NDArray[np.bool_]) -> bool:
        """seen (IN, OUT, [size]): true at the tile's values; whether they are more than limit. It ends then."""
        type_, least, mask = self.signed
        values = tile.values if tile.valid is None else tile.taken(tile.valid).values
        with np.errstate(over="ignore"):
            return bool(_mark(values.view(type_), least, mask, limit, seen))

    def tally(self, tiles: Sequence[Tile], places: Sequence[NDArray[np.int64]], first: Sequence[int]) -> Tally:
        """How often each value occurs among some rows of each tile: `places`, less `first`."""
        type_, least, mask = self.signed
        counts = np.zeros((LANES if self.size <= FEW_NUMBERS else 1, self.size), np.int64)
        with np.errstate(over="ignore"):
            for tile, rows, start in zip(tiles, places, first, strict=True):
                used = rows if tile.valid is None else rows[tile.valid[rows - start]]
                _count(tile.values.view(type_), used, start, least, mask, counts)
        total = counts.sum(axis=0)
        found = np.flatnonzero(total)
        return Tally(self.numbers(found), total[found])

    def table(self, thresholds: Floats) -> NDArray[np.uint8]:
        """The bin of each number, uint8 [size]."""
        table = np.empty(self.size, np.uint8)
        _bins_in_order(self.numbers(np.arange(self.size)), thresholds, table)
        return table

    def translated(
        self, tiles: Sequence[Tile], meanings: Mapping[int | float, int], found: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """found (OUT, [rows of all tiles]), which it returns: what the values mean; -1: nothing."""
        table, at = np.full(self.size, -1, np.int32), 0
        for number, meaning in meanings.items():
            if 0 <= (offset := number - self.least) < self.size and offset == int(offset):
                table[int(offset)] = meaning
        type_, least, mask = self.signed
        with np.errstate(over="ignore"):
            for tile in tiles:
                _look_up(tile.values.view(type_), least, mask, table, found[at : at + len(tile)])
                at += len(tile)
        return found

    def bins(self, tile: Tile, table: NDArray[np.uint8], codes: NDArray[np.uint8]) -> None:
        """codes (OUT, like tile): the table's entry of each value, whether valid or not."""
        type_, least, mask = self.signed
        with np.errstate(over="ignore"):
            _look_up(tile.values.view(type_), least, mask, table, codes)


def window_of(tiles: Sequence[Tile]) -> Window | None:
    """Of a column; None where it does not hold whole numbers close together."""
    held = [tile for tile in tiles if len(tile)]
    spans = [tile.span for tile in held if tile.span is not None]
    if not held or len(spans) < len(held) or any(tile.values.dtype != held[0].values.dtype for tile in held):
        return None
    least, most = min(low for low, _ in spans), max(high for _, high in spans)
    if most - least >= max(min(sum(map(len, held)) // 2, MOST_SPAN), LEAST_SPAN) or max(-least, most) > EXACT:
        return None
    return Window(held[0].values.dtype, least, most - least + 1)


def add_tile(distinct: Distinct, tile: Tile) -> None:
    """Add the distinct values of a tile. Of most columns of floats the first rows have too many of them."""
    for piece in chain([tile.rows(0, min(FIRST_ROWS, len(tile)))], tile.pieces(FIRST_ROWS)):
        distinct.add(piece.floats())
        if distinct.crowded:
            break


def sample_floats(tile: Tile, places: NDArray[np.int64], first: int, values: Floats) -> None:
    """values (OUT, float64 like places): of some rows of a tile of floats, NaN where one is missing; places: less
    `first`."""
    _take(tile.values, EVERY if tile.valid is None else tile.valid, places, first, values)


TileBinner = Callable[[Tile, NDArray[np.uint8]], bool]  # codes (OUT, like tile): the bins; whether a value is missing


def tile_binner(window: Window | None, thresholds: Floats) -> TileBinner:
    """What bins the tiles of a column by its thresholds; window: of the column."""
    if window is None:
        return partial(bin_tile, make_grid(thresholds))
    return partial(_bin_numbers, window, window.table(thresholds), len(thresholds) + 1)


def bin_tile(grid: BinGrid, tile: Tile, codes: NDArray[np.uint8]) -> bool:
    """codes (OUT, like tile): the bins; whether a value is missing."""
    if tile.values.dtype.kind == "f":
        return grid.bins(tile.values, codes, EVERY if tile.valid is None else tile.valid)
    missing, start = False, 0
    for piece in tile.pieces():
        missing |= grid.bins(piece.floats(), codes[start : start + len(piece)])
        start += len(piece)
    return missing


def _bin_numbers(
    window: Window, table: NDArray[np.uint8], missing_code: int, tile: Tile, codes: NDArray[np.uint8]
) -> bool:
    window.bins(tile, table, codes)
    if tile.valid is None:
        return False
    codes[~tile.valid] = missing_code
    return not bool(tile.valid.all())


@kernel
def _take(values, valid, places, first, taken):  # type: ignore[no-untyped-def]
    """taken (OUT): see sample_floats; valid: bool, or empty."""
    for i in range(places.shape[0]):
        taken[i] = values[np.uint64(places[i] - first)]
    if valid.shape[0] > 0:
        for i in range(places.shape[0]):
            taken[i] = taken[i] if valid[np.uint64(places[i] - first)] else np.nan


@kernel
def _mark(values, least, mask, limit, seen):  # type: ignore[no-untyped-def]
    """seen (IN, OUT): what was found; returns whether that is more than limit. Values are counted now and then."""
    step = max(4096, seen.shape[0] // 4)
    for start in range(0, values.shape[0], step):
        part = values[start : start + step]
        for i in range(part.shape[0]):
            seen[np.uint64((np.int64(part[i]) - least) & mask)] = True
        n_found = 0
        for offset in range(seen.shape[0]):
            n_found += seen[offset]
        if n_found > limit:
            return True
    return False


@kernel
def _count(values, rows, first, least, mask, counts):  # type: ignore[no-untyped-def]
    """counts (IN, OUT, [1 or LANES, size]): of the values at rows, int64, less `first`."""
    if counts.shape[0] == 1:
        for i in range(rows.shape[0]):
            counts[0, np.uint64((np.int64(values[np.uint64(rows[i] - first)]) - least) & mask)] += 1
        return
    rounded = rows.shape[0] // LANES * LANES
    for i in range(0, rounded, LANES):
        for lane in range(LANES):
            value = np.int64(values[np.uint64(rows[i + lane] - first)])
            counts[lane, np.uint64((value - least) & mask)] += 1
    for i in range(rounded, rows.shape[0]):
        counts[0, np.uint64((np.int64(values[np.uint64(rows[i] - first)]) - least) & mask)] += 1


@kernel
def _bins_in_order(numbers, thresholds, table):  # type: ignore[no-untyped-def]
    """table (OUT): bins of ascending numbers."""
    place = 0
    for i in range(numbers.shape[0]):
        while place < thresholds.shape[0] and numbers[i] >= thresholds[place]:
            place += 1
        table[i] = place


@kernel
def _look_up(values, least, mask, table, codes):  # type: ignore[no-untyped-def]
    """codes (OUT): the table's entry of each offset."""
    for i in range(values.shape[0]):
        codes[i] = table[np.uint64((np.int64(values[i]) - least) & mask)]
