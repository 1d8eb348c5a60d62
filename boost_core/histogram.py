"""Histograms of the gain matrix: for every bin of every feature the sum of its rows' gains.

Layout [n_bins, n_padded]: all features' bins one after another (Binning.bin_start), sums of a bin as lanes_for has
them: of the channels and, unless it is left out (objective.sums_in_bins), the count of rows. Rows are walked in tiles,
so that a tile's gains stay in the level 2 cache while the features read them, and features in blocks, whose bins come
back to the cache for every tile. Sums are int64; their order never matters.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.binning import Binning
from boost_core.gain_matrix import GainMatrix
from boost_core.intrinsics import add_lanes, lanes_for, prefetch_lanes, width_of
from boost_core.jit import bare_kernel
from boost_core.team import Team

Integers = NDArray[np.int64]
AHEAD = 12  # rows between the one that is added and the one that is fetched into the cache
TILE_CHANNELS = 1 << 15  # gains a tile holds: 128 KB of int32
BLOCK_SUMS = 1 << 17  # from which a block of features is full: 1 MB of int64


@bare_kernel
def add_rows(bins, rows, gains, bin_start, features, lanes, totals, afresh):  # type: ignore[no-untyped-def]
    """totals (OUT, flat int64) += gains of the rows, for some features (int64 [k]); afresh: whatever is there.

    bins uint8 [d, n]; rows int32 [m]; gains = (flat values, int64: how many are in a row), of which the lanes are added
    up. Features are taken by fours, so that a row's gains are read and widened once for
    four of them, and by blocks of fours, so that all rows are added to bins that stay in the cache. All of it is in one
    kernel: calls of others count references to the arrays, which threads share. Numbers of rows index as unsigned ones,
    since Numba asks of signed ones whether they count from the end.
    """
    n_rows, n_features = rows.shape[0], features.shape[0]
    values, pitch = gains
    width = width_of(lanes)
    tile = max(TILE_CHANNELS // width, 1)
    start = 0
    while start < n_features:
        stop, n_sums = start, np.int64(0)
        while stop < n_features and (stop < start + 4 or n_sums < BLOCK_SUMS):
            for j in range(stop, min(stop + 4, n_features)):
                n_sums += (bin_start[features[j] + 1] - bin_start[features[j]]) * width
            stop = min(stop + 4, n_features)
        if afresh:
            for at in range(start, stop):
                for k in range(bin_start[features[at]] * width, bin_start[features[at] + 1] * width):
                    totals[np.uint64(k)] = 0
        for tile_start in range(0, n_rows, tile):
            tile_stop = min(tile_start + tile, n_rows)
            at = start
            while at + 4 <= stop:
                j0, j1, j2, j3 = features[at], features[at + 1], features[at + 2], features[at + 3]
                b0, b1 = bin_start[j0] * width, bin_start[j1] * width
                b2, b3 = bin_start[j2] * width, bin_start[j3] * width
                codes0, codes1, codes2, codes3 = bins[j0], bins[j1], bins[j2], bins[j3]
                for k in range(tile_start, tile_stop):
                    i = np.uint64(rows[np.uint64(k)])
                    ahead = np.uint64(min(k + AHEAD, n_rows - 1))
                    prefetch_lanes(values, np.int64(rows[ahead]) * pitch, lanes)
                    places = (
                        b0 + np.int64(codes0[i]) * width,
                        b1 + np.int64(codes1[i]) * width,
                        b2 + np.int64(codes2[i]) * width,
                        b3 + np.int64(codes3[i]) * width,
                    )
                    add_lanes(totals, places, values, np.int64(i) * pitch, lanes)
                at += 4
            while at < stop:
                base, codes = bin_start[features[at]] * width, bins[features[at]]
                for k in range(tile_start, tile_stop):
                    i = np.uint64(rows[np.uint64(k)])
                    place = base + np.int64(codes[i]) * width
                    add_lanes(totals, (place,), values, np.int64(i) * pitch, lanes)
                at += 1
        start = stop


class HistogramBuilder:
    """Builds the histograms of one round's gain matrix over one member's rows."""

    def __init__(self, bins: NDArray[np.uint8], binning: Binning, team: Team) -> None:
        self._bins = bins
        self._rows, self._features = np.arange(bins.shape[1], dtype=np.int32), np.arange(bins.shape[0])
        self._bin_start = binning.bin_start
        self._n_bins = int(binning.bin_start[-1])
        self._team = team
        self._free: dict[tuple[int, int], list[Integers]] = {}

    def empty(self, n_nodes: int, n_padded: int) -> Integers:
        """A zeroed histogram array [n_nodes, n_bins, n_padded], reusing what `give_back` returned."""
        free = self._free.get((n_nodes, n_padded))
        if free:
            reused = free.pop()
            reused.fill(0)
            return reused
        return aligned_zeros((n_nodes, self._n_bins, n_padded), np.int64)

    def give_back(self, histogram: Integers) -> None:
        """Keep an array from `empty` for the next round."""
        self._free.setdefault((histogram.shape[0], histogram.shape[2]), []).append(histogram)

    def add(self, gains: GainMatrix, rows: NDArray[np.int32] | None, totals: Integers) -> None:
        """totals [n_bins, n_padded] += the rows' gains (None: all rows), with the count of rows where there is room."""
        chosen = self._rows if rows is None else rows
        flat_gains, flat_totals = gains.flat, totals.reshape(-1)
        lanes = lanes_for(totals.shape[1])

        def part(start: int, stop: int) -> None:
            features = self._features[start:stop]
            add_rows(self._bins, chosen, flat_gains, self._bin_start, features, lanes, flat_totals, False)

        n_features = self._bins.shape[0]
        self._team.over(n_features, chosen.shape[0] * n_features * len(lanes), part)
