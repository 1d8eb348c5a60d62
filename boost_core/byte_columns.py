"""Columns of one byte a value, binned where their bins will stand: many columns in one call of a kernel.

A call for each column costs as much as the work on 60,000 values of it, and calls of several threads, each of which
takes Python's lock again at its end, cost more than that: 47 million values of 784 columns took 0.15 s on two threads.

    rows of the matrix   raw bytes  ->  seen, counted  ->  thresholds agreed  ->  table [256] of each  ->  bins

An entry of 256 stands for a byte; signed numbers are shifted, so that entries are in the order of what they stand for.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import fill_midpoints, quantiles
from boost_core.jit import counted_kernel, inner, kernel
from boost_core.tile import Tile

ENTRIES = 256
LANES = 4  # tables that count in turns: equal values that follow each other do not wait for each other's count

MOST_STAYS = 16  # about as many as are faster than a table
TILE = 4096  # values of a row that stay in the nearest cache while stays are taken off one after another
ROOM = MOST_STAYS + TILE  # bytes that look_up needs
MARKED = 8192  # values that are marked before those found are counted


def is_bytes(tiles: tuple[Tile, ...]) -> bool:
    """Whether a column is one, none of whose values is missing."""
    return all(tile.values.dtype.itemsize == 1 and tile.valid is None for tile in tiles)


def place(tiles: tuple[Tile, ...], row: NDArray[np.uint8]) -> None:
    """row (OUT, [n_rows]): the entries of a column's values, which may lie there already if they are unsigned."""
    at = 0
    for tile in tiles:
        values = tile.values
        if values.dtype == np.int8:
            np.bitwise_xor(values.view(np.uint8), np.uint8(128), out=row[at : at + len(tile)])
        elif not np.may_share_memory(row, values):
            row[at : at + len(tile)] = values
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


@counted_kernel
def count(rows, columns, sample, start, stop, counts):  # type: ignore[no-untyped-def]
    """counts (IN, OUT, int64 [n_columns, 256]) of some columns' values; sample: int64, places of the values.

    Four columns at a time, so that places are loaded once for them; a table each for these, too.
    """
    lanes = np.zeros((LANES, ENTRIES), np.int64)
    fours = start + (stop - start) // LANES * LANES
    for column in range(start, fours, LANES):
        first, second = rows[columns[column]], rows[columns[column + 1]]
        third, fourth = rows[columns[column + 2]], rows[columns[column + 3]]
        lanes[:] = 0
        for i in range(sample.shape[0]):
            place = np.uint64(sample[i])
            lanes[0, first[place]] += 1
            lanes[1, second[place]] += 1
            lanes[2, third[place]] += 1
            lanes[3, fourth[place]] += 1
        for lane in range(LANES):
            for entry in range(ENTRIES):
                counts[column + lane, entry] += lanes[lane, entry]
    rounded = sample.shape[0] // LANES * LANES
    for column in range(fours, stop):
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


def new_room() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For the values of a column, and how often they occur."""
    return np.empty(ENTRIES), np.empty(ENTRIES, np.int64)


@kernel
def split(weights, lowest, max_bins, start, stop, room, thresholds, found):  # type: ignore[no-untyped-def]
    """thresholds (OUT, float64 [n_columns, >= max_bins]), found (OUT, int64 [n_columns]: how many) of the columns from
    start to stop; weights: int64 [n_columns, 256], how often each entry counts; lowest: float64 [n_columns], what entry
    0 stands for; room: new_room(). As binning.quantiles_of."""
    values, counts = room
    for column in range(start, stop):
        n_distinct, n = 0, np.int64(0)  # 0 by itself is a type of its own, for which quantiles would be compiled, too
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


@inner
def find_stays(table, stays):  # type: ignore[no-untyped-def]
    """(low, high, n): table[entry] is the entry, at least `low` and at most `high`, less `low` and the number of stays
    (OUT, uint8 [MOST_STAYS]: entries above low whose bin is that of the one before) up to it; n: how many, -1: not so.
    """
    low, high, n = 0, ENTRIES - 1, 0
    while low < ENTRIES - 1 and table[low + 1] == 0:
        low += 1
    while high > low and table[high] == table[high - 1]:
        high -= 1
    if table[low] != 0:
        return low, high, -1
    for entry in range(low + 1, high + 1):
        step = np.int64(table[entry]) - np.int64(table[entry - 1])
        if step > 1 or (step == 0 and n == MOST_STAYS):
            return low, high, -1
        if step == 0:
            stays[n] = entry
            n += 1
    return low, high, n


@inner
def step_down(row, low, high, stays, entries):  # type: ignore[no-untyped-def]
    """row (IN, OUT): entries, then what a table that find_stays has found to be one of few stays has of them; entries:
    (OUT, uint8 [TILE]), room."""
    for first in range(0, row.shape[0], TILE):
        part = row[first : first + TILE]
        for i in range(part.shape[0]):
            entries[i] = min(max(part[i], low), high)
            part[i] = entries[i] - low
        for stay in stays:
            for i in range(part.shape[0]):
                part[i] -= np.uint8(entries[i] >= stay)


@kernel
def look_up(rows, columns, tables, start, stop, room):  # type: ignore[no-untyped-def]
    """rows (IN, OUT): the entries of some columns' own tables, uint8 [n_columns, 256]; room: uint8 [ROOM].

    Most tables of many bins are close to the entries themselves: what they differ in, vectors take off faster than
    entries are looked up one by one.
    """
    stays, entries = room[:MOST_STAYS], room[MOST_STAYS:]
    for column in range(start, stop):
        row, table = rows[columns[column]], tables[column]
        low, high, n_stays = find_stays(table, stays)
        if n_stays >= 0:
            step_down(row, np.uint8(low), np.uint8(high), stays[:n_stays], entries)
        else:
            for i in range(row.shape[0]):
                row[i] = table[row[i]]
