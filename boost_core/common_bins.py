"""Features most of whose rows are in one bin: these rows are not added one by one, but found as what is left of all.

Features are taken by fours. A row that is in the commonest bin of all four is passed over; in the end the sum of all
rows less that of the rows that were added goes to those bins. Sums are integers, so they are the same either way.
Of mnist's cells 80 % are 0, and 70 % of the fours of neighbouring ones.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.histogram import AHEAD, TILE_CHANNELS
from boost_core.intrinsics import add_lanes, prefetch_lanes, width_of
from boost_core.jit import counted_step, inner, step

Integers = NDArray[np.int64]
FOUR = 4
SAMPLED = 512  # rows from which it is said which bins are common
# Rows that a four may have to add and still be quicker: to look at a row takes a third as long as to add it.
MOST_ADDED = 0.6
BYTE = 255
BLOCK_SUMS = 1 << 15  # of a block of fours, as in histogram.py: 256 KB, as fewer rows are added for each
NO_FOURS = (np.empty((0, FOUR), np.int64), np.empty(0, np.int64))  # and no common bins


class CommonBins:
    """The commonest bin of each feature (common: int64 [d]), and which features are worth taking by fours."""

    def __init__(self, bins: NDArray[np.uint8]) -> None:
        """bins: uint8 [d, n]."""
        n_rows = bins.shape[1]
        picked = np.arange(min(n_rows, SAMPLED)) * n_rows // max(min(n_rows, SAMPLED), 1)
        self._sample = bins[:, picked]
        most = [np.bincount(own, minlength=1).argmax() for own in self._sample]
        self.common = np.array(most, np.int64)

    def fours(self, features: Integers) -> tuple[Integers, Integers]:
        """Of features (int64 [k], in order) the fours that are worth it, int64 [n, 4], and the features that are left,
        in order. It only decides how long sums take, not what they are."""
        n_in_fours = len(features) // FOUR * FOUR
        fours = features[:n_in_fours].reshape(-1, FOUR)
        uncommon = self._sample[fours] != self.common[fours][..., None]
        worth = uncommon.any(axis=1).sum(axis=1) <= MOST_ADDED * self._sample.shape[1]
        return fours[worth], np.concatenate([fours[~worth].reshape(-1), features[n_in_fours:]])


@counted_step
def add_uncommon(bins, rows, gains, bin_start, fours, common, lanes, totals):  # type: ignore[no-untyped-def]
    """totals (OUT, flat int64) = gains of the rows, for fours of features; other arguments: see add_gains."""
    n_rows, n_fours, width = rows.shape[0], fours.shape[0], width_of(lanes)
    values, pitch = gains
    tile = max(TILE_CHANNELS // width, 1)
    listed, whole = np.empty(tile, np.int64), np.zeros(width, np.int64)
    for k in range(n_rows if n_fours > 0 else 0):
        add_lanes(whole, (0,), values, np.int64(rows[k]) * pitch, lanes)
    start = 0
    while start < n_fours:
        stop, n_sums = start, np.int64(0)
        while stop < n_fours and n_sums < BLOCK_SUMS:
            for j in fours[stop]:
                n_sums += (bin_start[j + 1] - bin_start[j]) * width
                for k in range(bin_start[j] * width, bin_start[j + 1] * width):
                    totals[k] = 0
            stop += 1
        for tile_start in range(0, n_rows, tile):
            some = rows[tile_start : min(tile_start + tile, n_rows)]
            for four in range(start, stop):
                n_listed = _list(bins, some, fours[four], common, listed)
                _add(gains, bin_start, fours[four], listed[:n_listed], lanes, totals)
        for four in range(start, stop):
            _add_the_rest(whole, bin_start, fours[four], common, lanes, totals)
        start = stop


@inner
def _joined(code0, code1, code2, code3):  # type: ignore[no-untyped-def]
    """Four codes as one number."""
    return np.int64(code0) | np.int64(code1) << 8 | np.int64(code2) << 16 | np.int64(code3) << 24


@step
def _list(bins, rows, four, common, listed):  # type: ignore[no-untyped-def]
    """listed (OUT): a row and its four codes in one number, of rows that are not in the commonest bin of all four;
    returns how many these are. No branch: it would be guessed wrong too often."""
    codes0, codes1, codes2, codes3 = bins[four[0]], bins[four[1]], bins[four[2]], bins[four[3]]
    passed_over = _joined(common[four[0]], common[four[1]], common[four[2]], common[four[3]])
    n = np.int64(0)
    for k in range(rows.shape[0]):
        i = np.uint64(rows[k])  # unsigned: see cut.divide
        codes = _joined(codes0[i], codes1[i], codes2[i], codes3[i])
        listed[np.uint64(n)] = np.int64(i) << 32 | codes
        n += np.int64(codes != passed_over)
    return n


@step
def _add(gains, bin_start, four, listed, lanes, totals):  # type: ignore[no-untyped-def]
    """totals (IN/OUT) += gains of what is listed."""
    width, last = width_of(lanes), listed.shape[0] - 1
    values, pitch = gains
    base0, base1 = bin_start[four[0]] * width, bin_start[four[1]] * width
    base2, base3 = bin_start[four[2]] * width, bin_start[four[3]] * width
    for k in range(listed.shape[0]):
        each = listed[k]
        prefetch_lanes(values, (listed[np.uint64(min(k + AHEAD, last))] >> 32) * pitch, lanes)
        places = (
            base0 + (each & BYTE) * width,
            base1 + (each >> 8 & BYTE) * width,
            base2 + (each >> 16 & BYTE) * width,
            base3 + (each >> 24 & BYTE) * width,
        )
        add_lanes(totals, places, values, (each >> 32) * pitch, lanes)


@counted_step
def _add_the_rest(whole, bin_start, four, common, lanes, totals):  # type: ignore[no-untyped-def]
    """Add to the commonest bins what is missing from the whole, which is the same in all four features."""
    width, first = width_of(lanes), four[0]
    left = np.zeros(width, np.int64)
    for at in range(bin_start[first], bin_start[first + 1]):
        add_lanes(left, (0,), totals, at * width, lanes)
    for c in range(width):
        left[c] = whole[c] - left[c]
    for j in four:
        add_lanes(totals, ((bin_start[j] + common[j]) * width,), left, 0, lanes)
