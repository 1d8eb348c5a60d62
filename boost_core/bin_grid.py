"""Finds the bin of a value without a search over all thresholds: a grid of cells says where to begin.

    cell       of a value, by its size or by its exponent       0         1         2    ...   CELLS: missing
    first      thresholds in the cells before                   0         1         1    ...   m + 1
    bin        first[cell of x] + those of the few thresholds in x's cell that are at or below x

Cells never fall as values grow, whatever is rounded: a value at or above a threshold lies in its cell or in a later
one. So the bins are exactly those of a search. A search costs a mispredicted branch every second step (35 ns a cell
with 255 bins of normal values on an EPYC); here no branch depends on a value (1.1 ns).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.intrinsics import bits_of
from boost_core.jit import counted_kernel, inner, kernel

CELLS = 4096  # one byte each: they stay in the nearest cache beside the thresholds
BY_EXPONENT = -1.0  # in place of a scale
CHUNK = 1024  # values whose cells are found before their thresholds are looked up
EVERY = np.empty(0, np.bool_)  # in place of a mask: nothing is left out
FINE = 40  # bits of a float that the finest cells by exponent leave out
LEAST_SCALE = float(np.finfo(np.float64).tiny)  # not 0: infinity times 0 is NaN

Floats = NDArray[np.float64]
Layout = tuple[float, float, int, int]


@dataclass(frozen=True)
class BinGrid:
    """Thresholds of one feature (at most 254, ascending), ready to be looked up.

    padded: the thresholds and NaN behind them, so that the longest search stays inside, also one for a missing value;
    first: uint8 [CELLS + 1];
    layout: origin and scale of equal cells (or the least threshold and BY_EXPONENT), the bits that cells by exponent
    leave out, halvings that find a place among the thresholds of the fullest cell.
    """

    padded: Floats
    first: NDArray[np.uint8]
    layout: Layout

    def bins(self, values: NDArray[Any], codes: NDArray[np.uint8], valid: NDArray[np.bool_] = EVERY) -> bool:
        """codes (OUT, like values): the bin of each value; whether one was missing.

        values: float64 or float32; valid: bool like values, false where one is missing; empty: none but NaN.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # both mean an end of the grid
            return bool(_look_up(values, valid, self.padded, self.first, self.layout, codes))


def make_grid(thresholds: Floats) -> BinGrid:
    """Equal cells between the finite thresholds; cells by exponent where these keep skewed thresholds further apart."""
    thresholds = np.ascontiguousarray(thresholds, np.float64)
    m = thresholds.shape[0]
    first, fullest, place = np.zeros(CELLS + 1, np.uint8), 0, (0.0, LEAST_SCALE, 0)
    if m > 0:
        with np.errstate(over="ignore", divide="ignore"):  # both mean an end of the grid
            place = _equal(thresholds)
            fullest = int(_count(thresholds, place, first))
    if fullest > 1:
        other = np.zeros(CELLS + 1, np.uint8)
        skewed = float(thresholds[0]), BY_EXPONENT, int(_dropped_bits(thresholds))
        if (fewer := int(_count(thresholds, skewed, other))) < fullest:
            first, fullest, place = other, fewer, skewed
    steps = fullest.bit_length()
    padded = np.concatenate([thresholds, np.full((1 << steps) + 1, np.nan)])
    first[CELLS] = m + 1
    return BinGrid(padded, first, (*place, steps))


def _equal(thresholds: Floats) -> tuple[float, float, int]:
    """Where there is no finite span most values share a cell, and the search is over all thresholds."""
    finite = thresholds[np.isfinite(thresholds)]
    if finite.shape[0] < 2:
        return 0.0, LEAST_SCALE, 0
    scale = float((CELLS - 1) / (finite[-1] - finite[0]))
    return float(finite[0]), max(scale, LEAST_SCALE) if np.isfinite(scale) else LEAST_SCALE, 0


@inner
def equal_cell(value, origin, scale, n_cells):  # type: ignore[no-untyped-def]
    """The cell of a value among n_cells (float64) equal ones; n_cells of NaN. scale: above 0.

    n_cells must be none of the kernel's constants, nor the cell be unsigned at once: then LLVM makes integers of all
    that may be chosen and chooses afterwards, in four times as many instructions. Each choice here is one.
    """
    x, top = (value - origin) * scale, n_cells - 1.0
    x = 0.0 if x < 0.0 else x
    x = top if x > top else x
    x = x if x < n_cells else n_cells
    return np.uint32(np.int32(x))


@inner
def _ordered(value):  # type: ignore[no-untyped-def]
    """An integer that grows with the value: the bits, those of negative values upside down."""
    bits = np.int64(bits_of(value + 0.0))
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)


@inner
def _cell_by_exponent(value, lowest, dropped):  # type: ignore[no-untyped-def]
    """lowest: the ordered integer of the least threshold, without its dropped bits."""
    x = (_ordered(value) >> dropped) - lowest
    return np.uint32(min(max(x, 0), CELLS - 1))


@kernel
def _dropped_bits(thresholds):  # type: ignore[no-untyped-def]
    """The fewest bits to leave out for which all thresholds have cells."""
    low, high = _ordered(thresholds[0]), _ordered(thresholds[-1])
    dropped = FINE
    while (high >> dropped) - (low >> dropped) >= CELLS:
        dropped += 1
    return dropped


@counted_kernel
def _count(thresholds, place, first):  # type: ignore[no-untyped-def]
    """first (OUT, zeros): thresholds in the cells before each; returns how many the fullest cell has."""
    origin, scale, dropped = place
    lowest, n_cells = _ordered(origin) >> dropped, np.float64(first.shape[0] - 1)
    counts = np.zeros(first.shape[0], np.int64)
    for i in range(thresholds.shape[0]):
        by_exponent = scale == BY_EXPONENT
        value = thresholds[i]
        counts[
            _cell_by_exponent(value, lowest, dropped) if by_exponent else equal_cell(value, origin, scale, n_cells)
        ] += 1
    before, fullest = 0, 0
    for cell in range(first.shape[0]):
        first[cell] = before
        before += counts[cell]
        fullest = max(fullest, counts[cell])
    return fullest


@inner
def _search(value, padded, place, most):  # type: ignore[no-untyped-def]
    """The place of a value among the most - 1 thresholds from `place` on; both uint64, most: a power of two."""
    half = most >> np.uint64(1)
    while half > 0:
        place += half * np.uint64(value >= padded[place + half - np.uint64(1)])
        half >>= np.uint64(1)
    return place


@inner
def _cells_of(values, layout, n_cells, cells):  # type: ignore[no-untyped-def]
    """cells (OUT, uint32 like values). Loops that vectorise: nothing is looked up."""
    origin, scale, dropped, _ = layout
    lowest = _ordered(origin) >> dropped
    if scale == BY_EXPONENT:
        for i in range(values.shape[0]):
            value = np.float64(values[i])
            cells[i] = _cell_by_exponent(value, lowest, dropped) if value == value else np.uint32(CELLS)
    else:
        for i in range(values.shape[0]):
            cells[i] = equal_cell(np.float64(values[i]), origin, scale, n_cells)


@inner
def _drop(valid, cells):  # type: ignore[no-untyped-def]
    """cells (IN, OUT): CELLS where not valid."""
    for i in range(valid.shape[0]):
        cells[i] = cells[i] if valid[i] else np.uint32(CELLS)


@counted_kernel
def _look_up(values, valid, padded, first, layout, codes):  # type: ignore[no-untyped-def]
    """codes (OUT, uint8 [n]): bins of values [n]; returns whether one is missing. valid: bool [n], or empty; layout:
    see BinGrid. Places are unsigned: one that may be negative takes longer to look up."""
    most = np.uint64(1) << np.uint64(layout[3])
    room, n_cells = np.empty(CHUNK, np.uint32), np.float64(first.shape[0] - 1)
    missing = 0
    for start in range(0, values.shape[0], CHUNK):
        part, out = values[start : start + CHUNK], codes[start : start + CHUNK]
        cells = room[: part.shape[0]]
        _cells_of(part, layout, n_cells, cells)
        if valid.shape[0] > 0:
            _drop(valid[start : start + CHUNK], cells)
        for i in range(cells.shape[0]):
            missing += cells[i] == CELLS
        if most == 2:  # no two thresholds share a cell
            for i in range(part.shape[0]):
                place = np.uint64(first[np.uint64(cells[i])])
                out[i] = np.uint8(place) + np.uint8(np.float64(part[i]) >= padded[place])
        else:
            for i in range(part.shape[0]):
                place = np.uint64(first[np.uint64(cells[i])])
                out[i] = _search(np.float64(part[i]), padded, place, most)
    return missing > 0
