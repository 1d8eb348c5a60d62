"""Many rows down a compact forest: tile by tile of rows, a few trees at a time, so that all of it stays in the caches.

tile of rows --codes--> for every block of TREES trees:  leaves (bytes) --> sums of the tile's scores
                                                         now and then: rows that are settled leave the tile
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_empty
from boost_core.compact import HIGH, LEAVES, LOW, MISSING, Compact
from boost_core.jit import counted_kernel, counted_step, inner, kernel, step
from boost_core.settling import SAMPLE, clear, mark_settled, worth_leaving, write_label
from boost_core.tree_vectors import LANES, TREES, add_leaves, choose_lanes, place_values, scale_row

TILE_ROWS = 1024  # of a tile at most; fewer where
TILE_SUMS = 1 << 18  # scores of all its rows would be more (2 MB of int64): then a tile has LANES rows at least

REST = 8  # tiles until rows are looked at again after as many trees, where it was not worth it


class Tile(NamedTuple):
    """Room for a thread's tile of R rows. codes uint8 [n_codes, R]; slots uint8 [LEAVES + nodes of a tree, LANES], of
    which the leaves are filled with their numbers; leaves uint8 [TREES, R]; tables [TREES, most_leaves, pitch] and sums
    [R, pitch] of one integer type; origin int64 [R]: the rows' numbers;
    places int64 [R]: of a feature's values among its cuts, or of rows that stay;
    settled uint8 [R]."""

    codes: NDArray[np.uint8]
    slots: NDArray[np.uint8]
    leaves: NDArray[np.uint8]
    tables: NDArray[np.integer]
    sums: NDArray[np.integer]
    origin: NDArray[np.int64]
    places: NDArray[np.int64]
    settled: NDArray[np.uint8]


def new_tile(compact: Compact) -> Tile:
    """Room for a thread that predicts with the forest."""
    whole = TILE_SUMS // compact.pitch // LANES * LANES
    n_rows = min(max(whole, LANES), TILE_ROWS)
    kind = np.int64 if compact.wide else np.int32
    tables = compact.most_leaves if compact.trees.says.shape[1] == compact.pitch else 0
    slots = aligned_empty((LEAVES + compact.most_leaves, LANES), np.uint8)
    slots[:LEAVES] = np.arange(LEAVES, dtype=np.uint8)[:, np.newaxis]
    return Tile(
        codes=aligned_empty((max(compact.n_codes, 1), n_rows), np.uint8),
        slots=slots,
        leaves=aligned_empty((TREES, n_rows), np.uint8),
        tables=aligned_empty((TREES, tables, compact.pitch), kind),
        sums=aligned_empty((n_rows, compact.pitch), kind),
        origin=np.empty(n_rows, np.int64),
        places=np.empty(n_rows, np.int64),
        settled=np.empty(n_rows, np.uint8),
    )


@kernel
def code_rows(rows, strides, first, n_rows, coding, tile):  # type: ignore[no-untyped-def]
    """tile.codes (OUT) of n_rows rows from number `first` on; rows: flat float64, the strides of a row and of a
    feature."""
    places = tile.places[:n_rows]
    for f in range(coding.features.shape[0]):
        at, depth, start = first * strides[0] + coding.features[f] * strides[1], coding.depth[f], coding.cut_start[f]
        cuts = coding.cuts[start : coding.cut_start[f + 1]]
        place_values(rows, at, strides[0], cuts, np.int64(depth), places, n_rows)
        high, low = coding.columns[f, HIGH], coding.columns[f, LOW]
        if high >= 0:
            codes = tile.codes[high]
            for i in range(n_rows):
                codes[i] = places[i] & MISSING  # -1 becomes MISSING
        if low >= 0:
            codes = tile.codes[low]
            for i in range(n_rows):
                codes[i] = places[i] + 1


@counted_step
def find_leaves(trees, first, last, n_rows, tile):  # type: ignore[no-untyped-def]
    """tile.leaves (OUT) of the first n_rows rows in the trees first..last, and 0 in what is left of TREES trees."""
    room = tile.leaves.shape[1]
    codes, slots, leaves = tile.codes.reshape(-1), tile.slots.reshape(-1), tile.leaves.reshape(-1)
    nodes = trees.nodes
    for t in range(last - first):
        start, stop = trees.node_start[first + t], trees.node_start[first + t + 1]
        answer = (LEAVES + stop - start - 1 if stop > start else 0) * LANES
        for i in range(0, n_rows, LANES):
            into = LEAVES * LANES
            for j in range(start, stop):
                at = np.int64(nodes[j, 0]) * room + i
                choose_lanes(
                    codes, at, np.uint8(nodes[j, 1]), slots, np.int64(nodes[j, 2]), np.int64(nodes[j, 3]), into
                )
                into += LANES
            leaves[t * room + i : t * room + i + LANES] = slots[answer : answer + LANES]
    for t in range(last - first, TREES):
        tile.leaves[t, :n_rows] = 0


@step
def fill_tables(trees, first, last, tables):  # type: ignore[no-untyped-def]
    """tables (OUT): what each leaf of the trees first..last adds; of what is left of TREES trees, nothing."""
    size, pitch = tables.shape[1] * tables.shape[2], tables.shape[2]
    flat, says = tables.reshape(-1), trees.says.reshape(-1)
    for t in range(last - first):
        start, stop = trees.leaf_start[first + t] * pitch, trees.leaf_start[first + t + 1] * pitch
        scale_row(flat, t * size, says, start, stop - start, trees.multiplier[first + t])
    for t in range(last - first, TREES):
        tables[t, 0] = 0


@step
def add_says(n_rows, tile):  # type: ignore[no-untyped-def]
    """tile.sums (IN/OUT) of the first rows += what their leaves in TREES trees add."""
    pitch, room = tile.sums.shape[1], tile.leaves.shape[1]
    sums, tables, leaves = tile.sums.reshape(-1), tile.tables.reshape(-1), tile.leaves.reshape(-1)
    sizes = (pitch, tile.tables.shape[1] * pitch)
    for i in range(n_rows):
        add_leaves(sums, i * pitch, tables, sizes, leaves, i, room)


@step
def _add_block(trees, first, last, labels, n_rows, tile):  # type: ignore[no-untyped-def]
    """tile.sums (IN/OUT) += what the trees first..last, TREES at most, say of the tile's rows."""
    find_leaves(trees, first, last, n_rows, tile)
    pitch, sums = tile.sums.shape[1], tile.sums.reshape(-1)
    if not labels and trees.column[first] < 0:
        fill_tables(trees, first, last, tile.tables)
        add_says(n_rows, tile)
        return
    for t in range(first, last):
        start, multiplier, column = trees.leaf_start[t], trees.multiplier[t], trees.column[t]
        for i in range(n_rows):
            said = np.int64(trees.says[start + tile.leaves[t - first, i], 0])
            if labels:
                sums[i * pitch + said] += multiplier
            else:
                sums[i * pitch + column] += multiplier * said


@inner
def _fill_holes(n_rows, n_kept, tile):  # type: ignore[no-untyped-def]
    """Move rows that are not settled from behind the first n_kept to the places of settled ones among those."""
    pitch, sums, settled, half = tile.sums.shape[1], tile.sums.reshape(-1), tile.settled, tile.places.shape[0] // 2
    into, out_of, n_moved, last = tile.places[:half], tile.places[half:], 0, n_rows
    for i in range(n_kept):
        if settled[i]:
            last -= 1
            while settled[last]:
                last -= 1
            into[n_moved], out_of[n_moved] = i, last
            n_moved += 1
    for k in range(n_moved):
        tile.origin[into[k]] = tile.origin[out_of[k]]
        at, source = into[k] * pitch, out_of[k] * pitch
        for c in range(pitch):
            sums[at + c] = sums[source + c]
    for column in range(tile.codes.shape[0]):
        codes = tile.codes[column]
        for k in range(n_moved):
            codes[into[k]] = codes[out_of[k]]


@step
def _keep_unsettled(n_rows, n_columns, bounds, look, tile, classes, sets):  # type: ignore[no-untyped-def]
    """Write the labels of settled rows and keep the others at the tile's front, if a sample says that it is worth it;
    returns how many there are then."""
    pitch, sums, settled = tile.sums.shape[1], tile.sums.reshape(-1), tile.settled
    sampled = mark_settled(tile.sums, n_rows, SAMPLE, n_columns, bounds, look, settled)
    if not worth_leaving(n_rows, min(sampled * SAMPLE, n_rows), bounds, look):
        return n_rows
    n_kept, lowest = n_rows - mark_settled(tile.sums, n_rows, 1, n_columns, bounds, look, settled), bounds.lowest[look]
    for i in range(n_rows):
        if settled[i]:
            write_label(sums, i * pitch, n_columns, bounds.by, lowest, tile.origin[i], classes, sets)
    _fill_holes(n_rows, n_kept, tile)
    return n_kept


@counted_kernel
def label_span(rows, strides, coding, trees, kind, bounds, span, tile, classes, sets):  # type: ignore[no-untyped-def]
    """classes or sets (OUT, see settling.write_label) of the rows span[0]..span[1]; kind: (labels, n_columns)."""
    n_trees, nothing = trees.multiplier.shape[0], np.zeros(0, np.int64)
    labels, n_columns = kind
    room, asleep = tile.sums.shape[0], np.zeros(bounds.stops.shape[0], np.int64)  # up to which row
    for begin in range(span[0], span[1], room):
        n_rows, look = min(room, span[1] - begin), 0
        clear(tile.sums, n_rows, n_columns)
        for i in range(n_rows):
            tile.origin[i] = begin + i
        code_rows(rows, strides, begin, n_rows, coding, tile)
        for first in range(0, n_trees, TREES):
            _add_block(trees, first, min(first + TREES, n_trees), labels, n_rows, tile)
            if look < bounds.stops.shape[0] and bounds.stops[look] == first + TREES:
                if asleep[look] <= begin:
                    n_kept = _keep_unsettled(n_rows, n_columns, bounds, look, tile, classes, sets)
                    asleep[look] = begin + REST * room if n_kept == n_rows else 0
                    n_rows = n_kept
                look += 1
            if n_rows == 0:
                break
        for i in range(n_rows):
            at = i * tile.sums.shape[1]
            write_label(tile.sums.reshape(-1), at, n_columns, bounds.by, nothing, tile.origin[i], classes, sets)


@kernel
def score_span(rows, strides, coding, trees, kind, span, tile, scores):  # type: ignore[no-untyped-def]
    """scores (OUT, int64 [n, n_columns]) of the rows span[0]..span[1]; kind: (labels, n_columns)."""
    n_trees = trees.multiplier.shape[0]
    for begin in range(span[0], span[1], tile.sums.shape[0]):
        n_rows = min(tile.sums.shape[0], span[1] - begin)
        clear(tile.sums, n_rows, kind[1])
        code_rows(rows, strides, begin, n_rows, coding, tile)
        for first in range(0, n_trees, TREES):
            _add_block(trees, first, min(first + TREES, n_trees), kind[0], n_rows, tile)
        for i in range(n_rows):
            for c in range(kind[1]):
                scores[begin + i, c] = tile.sums[i, c]
