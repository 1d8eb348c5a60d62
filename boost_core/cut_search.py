"""Searches a node's histograms for its best cut, for any objective."""

import numpy as np

from boost_core.cut import BIN, FEATURE, KIND, MISSING_LEFT, NO_CUT, VALUE
from boost_core.jit import bare_kernel, bare_step, inner, step
from boost_core.objective import cut_value
from boost_core.row_vectors import add_row

# Entries around what a thread adds to: the allocator puts arrays of several threads on one cache line, which they then
# take from each other at every addition. A search took twice as long.
APART = 8


@inner
def consider(best, value, kind, last_left, missing_left):  # type: ignore[no-untyped-def]
    """Keep a candidate if it is better than the best one so far (best: IN/OUT, a record's first fields)."""
    if value > best[VALUE]:
        best[VALUE] = value
        best[KIND] = kind
        best[BIN] = last_left
        best[MISSING_LEFT] = missing_left


@bare_step
def search_feature(objective, hist, sums, n_thresholds, has_missing, sides, best):  # type: ignore[no-untyped-def]
    """Best cut of one feature, in the order of ties: hist [bins of the feature, padded], best: OUT (cut.py).

    sides: room for two rows of sums, [2, n_channels + 1].
    """
    n_channels = sums.shape[0] - 1
    n_rows = sums[n_channels]
    below, left = sides
    for c in range(n_channels + 1):
        below[c] = 0
    missing, flat, width = n_thresholds + 1, hist.reshape(-1), hist.shape[1]
    n_missing = hist[missing, n_channels] if has_missing else np.int64(0)
    for last_left in range(n_thresholds):
        if last_left > 0 and hist[last_left, n_channels] == 0:
            continue  # no row in the bin: the same cut as the one before, which wins the tie
        add_row(below, 0, flat, last_left * width, n_channels + 1)
        if n_missing > 0:
            for c in range(n_channels + 1):
                left[c] = below[c]
            add_row(left, 0, flat, missing * width, n_channels + 1)
            if left[n_channels] < n_rows:
                consider(best, cut_value(objective, sums, left, n_channels), 0, last_left, 1)
        if 0 < below[n_channels] < n_rows:
            value = cut_value(objective, sums, below, n_channels)
            consider(best, value, 0, last_left, 0 if n_missing > 0 else 1)
    if 0 < n_missing < n_rows:
        consider(best, cut_value(objective, sums, hist[missing], n_channels), 1, 0, 1)


@step
def room_for_sides(n_sums):  # type: ignore[no-untyped-def]
    """What a search needs to add up in, two arrays of n_sums."""
    room = np.empty(2 * (n_sums + APART), np.int64)
    return room[APART : APART + n_sums], room[APART + n_sums : APART + 2 * n_sums]


@bare_step
def search_next(objective, hist, sums, layout, j, sides, best):  # type: ignore[no-untyped-def]
    """Best cut of feature j and of those before it (best: IN/OUT); arguments as below."""
    bin_start, n_thresholds, has_missing, origin = layout
    before = best[VALUE]
    part = hist[bin_start[j] - origin : bin_start[j + 1] - origin]
    search_feature(objective, part, sums, n_thresholds[j], has_missing[j], sides, best)
    if best[VALUE] > before:
        best[FEATURE] = j


@bare_kernel
def search_features(objective, hist, sums, layout, features, sides, best):  # type: ignore[no-untyped-def]
    """Best cut of some features: the first one of the greatest value.

    hist int64 [n_bins, padded], its first row being bin layout[3] of all features; sums [n_channels + 1];
    layout = (bin_start, n_thresholds, has_missing, first bin); features: in order; sides: two rows
    of room, [n_channels + 1]; best: OUT [RECORD_FIELDS].
    """
    best[VALUE] = NO_CUT
    for j in features:
        search_next(objective, hist, sums, layout, j, sides, best)


@bare_kernel
def left_sums(hist, layout, record, sums):  # type: ignore[no-untyped-def]
    """sums (OUT) [n_channels + 1]: sums of the rows that a record's cut sends left; hist, layout as above."""
    bin_start, n_thresholds, has_missing, origin = layout
    j = record[FEATURE]
    first = bin_start[j] - origin
    for c in range(sums.shape[0]):
        sums[c] = 0
    if record[KIND] == 0:
        for b in range(first, first + record[BIN] + 1):
            for c in range(sums.shape[0]):
                sums[c] += hist[b, c]
    if record[MISSING_LEFT] == 1 and has_missing[j]:
        for c in range(sums.shape[0]):
            sums[c] += hist[first + n_thresholds[j] + 1, c]
