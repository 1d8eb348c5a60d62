"""Searches a node's histograms for its best cut, for any objective."""

from typing import Any

import numpy as np
from numba.extending import overload

from boost_core.cut import BIN, FEATURE, KIND, MISSING_LEFT, VALUE
from boost_core.jit import CHOSEN, JIT_DISABLED, inlined_step, inner, step
from boost_core.objective import cut_value, has, set_floors
from boost_core.row_vectors import EXCESS, add_row, greatest_excess, scan_bins

# Entries around what a thread adds to: the allocator puts arrays of several threads on one cache line, which they then
# take from each other at every addition. A search took twice as long.
APART = 8
ROOM_ROWS = 4  # of a search: its sides, and what each bin is worth
MOST_BINS = 256


@inlined_step  # though called from some places: as a step it was compiled for each kind of constant
def consider(best, value, kind, last_left, missing_left):  # type: ignore[no-untyped-def]
    """Keep a candidate if it is better than the best one so far (best: IN/OUT, a record's first fields)."""
    if value > best[VALUE]:
        best[VALUE] = value
        best[KIND] = kind
        best[BIN] = last_left
        best[MISSING_LEFT] = missing_left


def _start_by_values(objective, sums, n_padded, sides):  # type: ignore[no-untyped-def]
    """See start_search."""
    return np.int64(0)


def _by_values(objective, value, hist, sums, n_thresholds, has_missing, sides, excess, best):  # type: ignore[no-untyped-def]
    """See search_feature."""
    n_channels, width, flat = sums.shape[0] - 1, hist.shape[1], hist.reshape(-1)
    n_sums = min(n_channels + 1, width)
    below, left = sides
    for c in range(n_sums):
        below[c] = 0
    missing = n_thresholds + 1
    some_missing = has_missing and _filled(flat, missing * width, n_sums)
    for last_left in range(n_thresholds):
        if last_left > 0 and not _filled(flat, last_left * width, n_sums):
            continue  # the same cut as the one before, which wins the tie
        add_row(below, 0, flat, last_left * width, n_sums)
        if some_missing:
            for c in range(n_sums):
                left[c] = below[c]
            add_row(left, 0, flat, missing * width, n_sums)
            if _has_two_sides(sums, left, n_sums):
                consider(best, cut_value(objective, sums, left, n_channels), 0, last_left, 1)
        if _has_two_sides(sums, below, n_sums):
            worth = cut_value(objective, sums, below, n_channels)
            consider(best, worth, 0, last_left, 0 if some_missing else 1)
    if some_missing and _has_two_sides(sums, hist[missing], n_sums):
        consider(best, cut_value(objective, sums, hist[missing], n_channels), 1, 0, 1)


@inner
def _filled(hist, at, n_sums):  # type: ignore[no-untyped-def]
    """Whether a bin's sums, from `at` on, are not all 0; hist: flat."""
    either = np.int64(0)
    for c in range(n_sums):
        either |= hist[np.uint64(at + c)]
    return either != 0


@inner
def _has_two_sides(sums, left, n_sums):  # type: ignore[no-untyped-def]
    """Whether there are rows on both sides of a cut, if they were counted; else it does not matter (objective.py)."""
    n_channels = sums.shape[0] - 1
    return n_sums == n_channels or 0 < left[n_channels] < sums[n_channels]


def _start_by_floors(objective, sums, n_padded, sides):  # type: ignore[no-untyped-def]
    """See start_search. All channels are searched as they come: the one that counts rows, if any, is never beyond its
    floor, nor is what fills up. That floor is the number of rows where a cut with all rows on one side would be worth
    more than `value`, so that it has to be left out; one more, where it does not matter."""
    n_channels = sums.shape[0] - 1
    apart, floors = sides  # the left side's sums, none yet, less the right one's
    for c in range(n_channels, n_padded):
        apart[c] = floors[c] = 0
    for c in range(n_channels):
        apart[c] = -sums[c]
    set_floors(objective, sums, n_channels, floors)
    value, sided = np.int64(0), False
    for c in range(n_channels):
        value += floors[c]
        sided |= floors[c] < abs(sums[c])
    if n_padded > n_channels:
        apart[n_channels] = -sums[n_channels]
        floors[n_channels] = sums[n_channels] + (0 if sided else 1)
    return value


def _by_floors(objective, value, hist, sums, n_thresholds, has_missing, sides, excess, best):  # type: ignore[no-untyped-def]
    """See search_feature. A bin without rows has the value of the bin before, which wins the tie."""
    n_channels, width, flat = sums.shape[0] - 1, hist.shape[1], hist.reshape(-1)
    missing, (apart, floors) = (n_thresholds + 1) * width, sides
    sided = width > n_channels and floors[n_channels] == sums[n_channels]
    without, with_missing = excess
    some_missing = has_missing and _filled(flat, missing, width)
    scan_bins(apart, flat, 0, width, n_thresholds, floors, without)
    if not (some_missing or sided):
        _take_first(value, without, n_thresholds, best)
        return
    if some_missing:
        only = with_missing[n_thresholds * EXCESS :]  # missing values to the left, all others to the right
        scan_bins(apart, flat, missing, width, 1, floors, only)
        for c in range(width):
            apart[c] += 2 * flat[missing + c]
        scan_bins(apart, flat, 0, width, n_thresholds, floors, with_missing)
        for c in range(width):
            apart[c] -= 2 * flat[missing + c]
    n_rows, n_left, n_missing = sums[n_channels], np.int64(0), np.int64(0)
    if sided and some_missing:
        n_missing = flat[missing + n_channels]
    for last_left in range(n_thresholds):
        if sided:
            n_left += flat[np.uint64(last_left * width + n_channels)]
        if some_missing and (not sided or n_left + n_missing < n_rows):
            consider(best, value + _excess(with_missing, last_left), 0, last_left, 1)
        if not sided or 0 < n_left < n_rows:
            consider(best, value + _excess(without, last_left), 0, last_left, 0 if some_missing else 1)
    if some_missing and (not sided or n_missing < n_rows):
        consider(best, value + _excess(with_missing, n_thresholds), 1, 0, 1)


@inner
def _take_first(value, excess, n_bins, best):  # type: ignore[no-untyped-def]
    """Keep the first of the cuts of the greatest excess, if it is better than the best one so far."""
    whole = n_bins // EXCESS * EXCESS
    most = greatest_excess(excess, whole)
    for place in range(whole, n_bins):
        most = max(most, _excess(excess, place))
    if n_bins > 0 and value + most > best[VALUE]:
        first = np.int64(0)
        while _excess(excess, first) != most:
            first += 1
        consider(best, value + most, 0, first, 1)


@inner
def _excess(excess, place):  # type: ignore[no-untyped-def]
    total = np.int64(0)
    for k in range(EXCESS):
        total += excess[np.uint64(place * EXCESS + k)]
    return total


def start_search(objective: Any, *arguments: Any) -> Any:
    """(sums, n_padded, sides) -> what search_feature is given as `value`; sides: OUT.

    sums: int64 [n_channels + 1] of a node; n_padded: channels of its histograms; sides: two arrays int64 [n_padded].
    """
    chosen: Any = _start_by_floors if has(set_floors, type(objective)) else _start_by_values
    return chosen(objective, *arguments)


def search_feature(objective: Any, *arguments: Any) -> None:
    """(value, hist, sums, n_thresholds, has_missing, sides, excess, best): the best cut of one feature, in the order of
    ties.

    value, sides: by start_search; hist [bins of the feature, n_padded]; excess: two arrays of room, int64
    [MOST_BINS * EXCESS]; best: IN/OUT (cut.py).
    """
    chosen: Any = _by_floors if has(set_floors, type(objective)) else _by_values
    chosen(objective, *arguments)


if not JIT_DISABLED:

    @overload(start_search, strict=False, jit_options=CHOSEN)
    def _start_chosen(objective, sums, n_padded, sides):  # type: ignore[no-untyped-def]
        return _start_by_floors if has(set_floors, objective.instance_class) else _start_by_values

    @overload(search_feature, strict=False, jit_options=CHOSEN)
    def _search_chosen(objective, value, hist, sums, n_thresholds, has_missing, sides, excess, best):  # type: ignore[no-untyped-def]
        return _by_floors if has(set_floors, objective.instance_class) else _by_values


def room_for_search(n_padded: int) -> tuple[int, int]:
    """Shape of the room that a search of histograms of so many channels needs, int64."""
    return ROOM_ROWS, max(n_padded, MOST_BINS * EXCESS) + APART


@step
def search_next(objective, value, hist, sums, layout, j, sides, excess, best):  # type: ignore[no-untyped-def]
    """Best cut of feature j and of those before it: the first one of the greatest value.

    hist int64 [n_bins, padded], its first row being bin layout[3] of all features; layout = (bin_start, n_thresholds,
    has_missing, first bin); best: IN/OUT [RECORD_FIELDS], its value NO_CUT before any feature; see search_feature.
    """
    bin_start, n_thresholds, has_missing, origin = layout
    before = best[VALUE]
    part = hist[bin_start[j] - origin : bin_start[j + 1] - origin]
    search_feature(objective, value, part, sums, n_thresholds[j], has_missing[j], sides, excess, best)
    if best[VALUE] > before:
        best[FEATURE] = j


@inlined_step
def left_sums(hist, layout, record, sums):  # type: ignore[no-untyped-def]
    """sums (OUT) [n_channels + 1]: sums of the rows that a record's cut sends left, and how many they are if histograms
    count them, else 0; hist, layout as above."""
    bin_start, n_thresholds, has_missing, origin = layout
    j, n_sums = record[FEATURE], min(sums.shape[0], hist.shape[1])
    first = bin_start[j] - origin
    for c in range(sums.shape[0]):
        sums[c] = 0
    if record[KIND] == 0:
        for b in range(first, first + record[BIN] + 1):
            for c in range(n_sums):
                sums[c] += hist[b, c]
    if record[MISSING_LEFT] == 1 and has_missing[j]:
        for c in range(n_sums):
            sums[c] += hist[first + n_thresholds[j] + 1, c]
