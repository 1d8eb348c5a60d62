"""Thresholds at the quantiles of a sample without sorting all of it.

    cell      of a value, by its size: 0 ... CELLS - 1, CELLS: missing
    ranks     wanted ones, max_bins - 1 in all: they lie in few cells
    taken     values of these cells, and of the cell before each: sorted

Cells never fall as values grow, so sorted values of some cells are a part of the sorted sample. 65,536 values were
sorted in 1.6 to 2.2 ms; here 0.3 suffice if they are spread somehow evenly, and about as much as before if not.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import equal_cell
from boost_core.jit import counted_kernel, inner, kernel

CELLS = 8192  # 8 values each: counts of 4 bytes fill the nearest cache
LOOKED_AT = 1024  # of the sample's values, for the range of the cells between the two at its ends

Floats = NDArray[np.float64]


@inner
def between(low, high):  # type: ignore[no-untyped-def]
    """The midpoint of low < high if it is finite and above low, else high."""
    middle = low * 0.5 + high * 0.5
    return middle if np.isfinite(middle) and low < middle <= high else high


@inner
def _range_of(sample):  # type: ignore[no-untyped-def]
    """Least and greatest of some values; what lies beyond shares the outer cells."""
    low, high = np.inf, -np.inf
    for i in range(0, sample.shape[0], max(sample.shape[0] // LOOKED_AT, 1)):
        low = sample[i] if sample[i] < low else low
        high = sample[i] if sample[i] > high else high
    return low, high


@inner
def _mark(counts, n, max_bins, starts):  # type: ignore[no-untyped-def]
    """starts (OUT): where a cell's values begin among those taken, from 1 on, 0: not taken; counts: of each cell, n in
    all. Returns where the last ones end; 0 where there may be no more than max_bins different values."""
    part, before, after, held = 1, -1, 0, 0
    for cell in range(CELLS):
        if counts[cell] > 0:
            held, after = held + 1, after + counts[cell]
            if part < max_bins and part * n // max_bins < after:
                starts[cell] = 1
                if before >= 0:
                    starts[before] = 1
            while part < max_bins and part * n // max_bins < after:
                part += 1
            before = cell
    if held <= max_bins:
        return 0
    end = 1
    for cell in range(CELLS):
        if starts[cell] > 0:
            starts[cell] = end
            end += counts[cell]
    return end


@counted_kernel
def take(sample, max_bins, counts, taken):  # type: ignore[no-untyped-def]
    """taken (OUT, float64 [1 + n]): behind the first entry, values of the cells that ranks lie in and of those before,
    cell by cell; counts (OUT, int64 [CELLS + 1]): by cell, negative where its values are taken. Returns where those
    taken end, or 0: as above, or there is no range."""
    low, high = _range_of(sample)
    scale = (CELLS - 1) / (high - low) if high > low else 0.0
    if not 0.0 < scale < np.inf:
        return 0
    cells, n_cells = np.empty(sample.shape[0], np.uint32), np.float64(counts.shape[0] - 1)
    for i in range(sample.shape[0]):
        cells[i] = equal_cell(sample[i], low, scale, n_cells)
    sizes, starts = np.zeros(CELLS + 1, np.int32), np.zeros(CELLS + 1, np.int32)
    for i in range(cells.shape[0]):
        sizes[np.uint64(cells[i])] += np.int32(1)
    end = _mark(sizes, sample.shape[0] - sizes[CELLS], max_bins, starts)
    if end == 0:
        return 0
    steps = np.empty(CELLS + 1, np.int32)
    for cell in range(CELLS + 1):
        steps[cell] = starts[cell] > 0
        counts[cell] = -sizes[cell] if starts[cell] > 0 else sizes[cell]
    for i in range(cells.shape[0]):  # without a branch: what is not taken goes to the first entry
        own_cell = np.uint64(cells[i])
        taken[np.uint64(starts[own_cell])] = sample[i]
        starts[own_cell] += steps[own_cell]
    return end


@kernel
def at_ranks(taken, counts, n, max_bins, thresholds):  # type: ignore[no-untyped-def]
    """thresholds (OUT): one before each different value that holds a wanted rank and is not the least of all; returns
    how many there are. taken, counts: as above, but sorted; n: values in all."""
    part, found, before, first = 1, 0, 0, 1
    last = np.nan
    for cell in range(CELLS):
        size = -counts[cell]
        if size > 0:
            while part < max_bins and part * n // max_bins < before + size:
                place = first + part * n // max_bins - before
                value = taken[place] + 0.0  # -0.0 and 0.0 are one value
                if value != last:
                    while place > 0 and taken[place] == value:
                        place -= 1
                    if place > 0:
                        thresholds[found] = between(taken[place] + 0.0, value)
                        found += 1
                    last = value
                part += 1
            first += size
        before += abs(counts[cell])
    return found


def thresholds_by_cells(sample: Floats, max_bins: int) -> Floats | None:
    """Of a sample, unsorted; NaN is left out. None where its values are too few, too equal or too far apart for it."""
    counts, taken = np.empty(CELLS + 1, np.int64), np.empty(len(sample) + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        end = int(take(sample, max_bins, counts, taken))
        if end == 0:
            return None
        taken[1:end].sort()
        thresholds = np.empty(max_bins - 1)
        n = len(sample) - int(counts[CELLS])
        return thresholds[: int(at_ranks(taken, counts, n, max_bins, thresholds))]
