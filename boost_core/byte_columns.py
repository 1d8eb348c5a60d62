"""Columns of one byte a value, binned where their bins will stand: many columns in one call of a kernel.

A call for each column costs as much as the work on 60,000 values of it, and calls of several threads, each of which
takes Python's lock again at its end, cost more than that: 47 million values of 784 columns took 0.15 s on two threads.

    rows of the matrix   raw bytes  ->  seen, counted  ->  thresholds agreed  ->  table [256] of each  ->  bins

An entry of 256 stands for a byte; signed numbers are shifted, so that entries are in the order of what they stand for.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import fill_midpoints, quantiles
from boost_core.jit import kernel
from boost_core.tile import Tile

ENTRIES = 256
LANES = 4  # tables that count in turns: equal values that follow each other do not wait for each other's count

MARKED = 8192  # values that are marked before those found are counted


def is_bytes(tiles: tuple[Tile, ...]) -> bool:
    """Whether a column is one, none of whose values is missing."""
    return all(tile.values.dtype.itemsize == 1 and tile.valid is None for tile in tiles)


def place(tiles: tuple[Tile, ...], row: NDArray[np.uint8]) -> None:
    """row (OUT, [n_rows]): the entries of a column's values."""
    at = 0
    for tile in tiles:
        out, values = row[at : at + len(tile)], tile.values
        if values.dtype == np.int8:
            np.bitwise_xor(values.view(np.uint8), np.uint8(128), out=out)
        else:
            out[:] = values
        at += len(tile)


@kernel
def mark(rows, columns, limit, start, stop, seen):  # type: ignore[no-untyped-def]
    """seen (OUT, bool [n_columns, 256]) of the columns from start to stop; of one that has more than `limit` entries,
    more than so many. rows: uint8 [>= n_columns, n_rows]; columns: int64 [n_columns], their rows."""
    for column in range(start, stop):
        row, own = rows[columns[column]], seen[column]
        for first in range(0, row.shape[0], MARKED):
            part = row[first : first + MARKED]
            for i in range(part.shape[0]):
                own[part[i]] = True
            n_found = 0
            for entry in range(ENTRIES):
                n_found += own[entry]
            if n_found > limit:
                break


@kernel
def count(rows, columns, sample, start, stop, counts):  # type: ignore[no-untyped-def]
    """counts (IN, OUT, int64 [n_columns, 256]) of some columns' values; sample: int64, places of the values."""
    lanes = np.zeros((LANES, ENTRIES), np.int64)
    rounded = sample.shape[0] // LANES * LANES
    for column in range(start, stop):
        row = rows[columns[column]]
        lanes[:] = 0
        for i in range(0, rounded, LANES):
            for lane in range(LANES):
                lanes[lane, row[np.uint64(sample[i + lane])]] += 1
        for i in range(rounded, sample.shape[0]):
            lanes[0, row[np.uint64(sample[i])]] += 1
        for lane in range(LANES):
            for entry in range(ENTRIES):
                counts[column, entry] += lanes[lane, entry]


@kernel
def split(weights, lowest, max_bins, start, stop, thresholds, found):  # type: ignore[no-untyped-def]
    """thresholds (OUT, float64 [n_columns, >= max_bins]), found (OUT, int64 [n_columns]: how many) of the columns from
    start to stop; weights: int64 [n_columns, 256], how often each entry counts; lowest: float64 [n_columns], what entry
    0 stands for. As binning.quantiles_of."""
    values, counts = np.empty(ENTRIES, np.float64), np.empty(ENTRIES, np.int64)
    for column in range(start, stop):
        n_distinct, n = 0, 0
        for entry in range(ENTRIES):
            if weights[column, entry] > 0:
                values[n_distinct], counts[n_distinct] = lowest[column] + entry, weights[column, entry]
                n_distinct += 1
                n += weights[column, entry]
        if n_distinct > max_bins:
            found[column] = quantiles(values, counts, n, max_bins, thresholds[column])
        else:
            found[column] = max(n_distinct - 1, 0)
            fill_midpoints(values, thresholds[column, : found[column]])


@kernel
def make_tables(thresholds, thresholds_at, lowest, start, stop, tables):  # type: ignore[no-untyped-def]
    """tables (OUT, uint8 [n_columns, 256]): the bin of each entry; thresholds: of all columns; thresholds_at: int64
    [n_columns + 1], where each column's begin."""
    for column in range(start, stop):
        place, end = thresholds_at[column], thresholds_at[column + 1]
        for entry in range(ENTRIES):
            while place < end and lowest[column] + entry >= thresholds[place]:
                place += 1
            tables[column, entry] = place - thresholds_at[column]


@kernel
def look_up(rows, columns, tables, start, stop):  # type: ignore[no-untyped-def]
    """rows (IN, OUT): the entries of some columns' own tables, uint8 [n_columns, 256]."""
    for column in range(start, stop):
        row, table = rows[columns[column]], tables[column]
        for i in range(row.shape[0]):
            row[i] = table[row[i]]
