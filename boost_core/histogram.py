"""Histograms of the gain matrix: for every bin of every feature the sum of its rows' gains.

Layout [n_bins, n_padded]: all features' bins one after another (Binning.bin_start), channels padded to whole lanes.
Channel n_channels counts the rows. Rows are walked in tiles, so that a tile's gains stay in the level 2 cache while
all features read them. Sums are int64; their order never matters.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.gain_matrix import GainMatrix
from boost_core.intrinsics import LANE, add_lanes, lanes_for
from boost_core.jit import kernel
from boost_core.team import Team

Integers = NDArray[np.int64]
TILE_CHANNELS = 1 << 15  # gains a tile holds: 128 KB of int32


@kernel
def add_all_rows(bins, gains, bin_start, feature_range, lanes, totals):  # type: ignore[no-untyped-def]
    """totals (OUT, flat int64) += gains (flat) of every row, for features of feature_range; bins uint8 [d, n]."""
    n_rows = bins.shape[1]
    width = LANE * len(lanes)
    tile = max(TILE_CHANNELS // width, 1)
    for tile_start in range(0, n_rows, tile):
        tile_stop = min(tile_start + tile, n_rows)
        for j in range(feature_range[0], feature_range[1]):
            base = bin_start[j] * width
            codes = bins[j]
            for i in range(tile_start, tile_stop):
                add_lanes(totals, base + np.int64(codes[i]) * width, gains, i * width, lanes)


@kernel
def add_rows(bins, rows, gains, bin_start, feature_range, lanes, totals):  # type: ignore[no-untyped-def]
    """Like add_all_rows for the listed rows only (int32 [m])."""
    n_rows = rows.shape[0]
    width = LANE * len(lanes)
    tile = max(TILE_CHANNELS // width, 1)
    for tile_start in range(0, n_rows, tile):
        tile_stop = min(tile_start + tile, n_rows)
        for j in range(feature_range[0], feature_range[1]):
            base = bin_start[j] * width
            codes = bins[j]
            for k in range(tile_start, tile_stop):
                i = np.int64(rows[k])
                add_lanes(totals, base + np.int64(codes[i]) * width, gains, i * width, lanes)


class HistogramBuilder:
    """Builds the histograms of one round's gain matrix over one member's rows."""

    def __init__(self, bins: NDArray[np.uint8], binning: Binning, team: Team) -> None:
        self._bins = bins
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
        return np.zeros((n_nodes, self._n_bins, n_padded), np.int64)

    def give_back(self, histogram: Integers) -> None:
        """Keep an array from `empty` for the next round."""
        self._free.setdefault((histogram.shape[0], histogram.shape[2]), []).append(histogram)

    def add(self, gains: GainMatrix, rows: NDArray[np.int32] | None, totals: Integers) -> None:
        """totals [n_bins, n_padded] += the rows' gains (None: all rows)."""
        flat_gains, flat_totals = gains.values.reshape(-1), totals.reshape(-1)
        lanes = lanes_for(gains.n_channels + 1)
        n_rows = self._bins.shape[1] if rows is None else rows.shape[0]

        def part(start: int, stop: int) -> None:
            if rows is None:
                add_all_rows(
                    self._bins,
                    flat_gains,
                    self._bin_start,
                    (start, stop),
                    lanes,
                    flat_totals,
                )
            else:
                add_rows(
                    self._bins,
                    rows,
                    flat_gains,
                    self._bin_start,
                    (start, stop),
                    lanes,
                    flat_totals,
                )

        n_features = self._bins.shape[0]
        self._team.over(n_features, n_rows * n_features * len(lanes), part)
