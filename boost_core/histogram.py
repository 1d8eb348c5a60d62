"""Histograms of the gain matrix: for every bin of every feature the sum of its rows' gains.

Layout [n_bins, n_padded]: all features' bins one after another (Binning.bin_start), sums of a bin as lanes_for has
them: of the channels and, unless it is left out (objective.sums_in_bins), the count of rows. Rows are walked in tiles,
so that a tile's gains stay in the level 2 cache while the features read them, and features in blocks, whose bins come
back to the cache for every tile. Sums are int64; their order never matters.
"""

from typing import Any

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from boost_core.aligned import aligned_zeros
from boost_core.binning import Binning
from boost_core.gain_matrix import GainMatrix
from boost_core.intrinsics import add_cells, lanes_for, prefetch_lanes, width_of, width_of_type
from boost_core.jit import CHOSEN, JIT_DISABLED, inner, kernel, step
from boost_core.team import Team

Integers = NDArray[np.int64]
AHEAD = 12  # rows between the one that is added and the one that is fetched into the cache
NEAR = 1 << 17  # gains that stay in the level 2 cache by themselves: 512 KB of int32
WIDE = 16  # channels from which a row is so much work that fetching the next ones costs nothing
TILE_CHANNELS = 1 << 15  # gains a tile holds: 128 KB of int32
BLOCK_SUMS = 1 << 17  # from which a block of features is full: 1 MB of int64


def features_a_pass(width: int) -> int:
    """How many features, of histograms of so many channels, a pass over the rows takes: the addresses of three stay in
    the processor's registers, four are worth more where a row is long."""
    return 4 if width >= WIDE else 3


_together: Any = inner(features_a_pass)


@inner
def _add_pass(rows, gains, cells, span, fetch, lanes, totals):  # type: ignore[no-untyped-def]
    """totals += gains of rows span[0]..span[1], for a few features; cells: tuples of where their bins begin in totals,
    and of their codes; fetch: a constant, whether gains of the next rows are fetched into the nearest cache."""
    values, pitch = gains
    bases, columns = cells
    for k in range(span[0], span[1]):
        i = np.uint64(rows[np.uint64(k)])
        if fetch:
            ahead = np.uint64(min(k + AHEAD, rows.shape[0] - 1))
            prefetch_lanes(values, np.int64(rows[ahead]) * pitch, lanes)
        add_cells(totals, bases, columns, i, values, np.int64(i) * pitch, lanes)


def _add_wide(bins, rows, gains, bin_start, features, place, span, lanes, totals):  # type: ignore[no-untyped-def]
    """See add_some."""
    at, width = place[0], width_of(lanes)
    j0 = features[at]
    if place[1] - at < 4:
        _add_pass(rows, gains, ((bin_start[j0] * width,), (bins[j0],)), span, False, lanes, totals)
        return 1
    j1, j2, j3 = features[at + 1], features[at + 2], features[at + 3]
    bases = (bin_start[j0] * width, bin_start[j1] * width, bin_start[j2] * width, bin_start[j3] * width)
    _add_pass(rows, gains, (bases, (bins[j0], bins[j1], bins[j2], bins[j3])), span, True, lanes, totals)
    return 4


def _add_narrow(bins, rows, gains, bin_start, features, place, span, lanes, totals):  # type: ignore[no-untyped-def]
    """See add_some."""
    at, left, width = place[0], place[1] - place[0], width_of(lanes)
    j0, j1, j2 = features[at], features[min(at + 1, place[1] - 1)], features[min(at + 2, place[1] - 1)]
    b0, b1, b2 = bin_start[j0] * width, bin_start[j1] * width, bin_start[j2] * width
    if left >= 3:
        three = (b0, b1, b2), (bins[j0], bins[j1], bins[j2])
        if place[2]:
            _add_pass(rows, gains, three, span, True, lanes, totals)
        else:
            _add_pass(rows, gains, three, span, False, lanes, totals)
        return 3
    if left == 2:
        _add_pass(rows, gains, ((b0, b1), (bins[j0], bins[j1])), span, False, lanes, totals)
        return 2
    _add_pass(rows, gains, ((b0,), (bins[j0],)), span, False, lanes, totals)
    return 1


def add_some(*arguments: Any) -> Any:
    """(bins, rows, gains, bin_start, features, place, span, lanes, totals): rows span[0]..span[1] for the next features
    from place[0] on, of which those up to place[1] may be taken together; place[2]: whether gains have to be fetched.
    Returns how many were taken. What a row's width rules out is not compiled."""
    chosen: Any = _add_wide if width_of(arguments[-2]) >= WIDE else _add_narrow
    return chosen(*arguments)


if not JIT_DISABLED:

    @overload(add_some, strict=False, jit_options=CHOSEN)
    def _some_chosen(bins, rows, gains, bin_start, features, place, span, lanes, totals):  # type: ignore[no-untyped-def]
        return _add_wide if width_of_type(lanes) >= WIDE else _add_narrow


@step
def add_gains(bins, rows, gains, bin_start, features, lanes, totals, afresh):  # type: ignore[no-untyped-def]
    """totals (OUT, flat int64) += gains of the rows, for some features (int64 [k]); afresh: whatever is there.

    bins uint8 [d, n]; rows int32 [m]; gains = (flat values, int64: how many are in a row), of which the lanes are added
    up. Features are taken together (features_a_pass), so that a row's gains are read and widened once for all of them,
    and by blocks, so that all rows are added to bins that stay in the cache. Gains of narrow rows are fetched ahead for
    the first features of a tile alone, as the others find them in the level 2 cache. Numbers of rows index as unsigned
    ones, since Numba asks of signed ones whether they count from the end.
    """
    n_rows, n_features = rows.shape[0], features.shape[0]
    width, far = width_of(lanes), gains[0].shape[0] > NEAR
    tile, together = max(TILE_CHANNELS // width, 1), _together(width)
    start = 0
    while start < n_features:
        stop, n_sums = start, np.int64(0)
        while stop < n_features and (stop == start or n_sums < BLOCK_SUMS):
            for j in range(stop, min(stop + together, n_features)):
                n_sums += (bin_start[features[j] + 1] - bin_start[features[j]]) * width
            stop = min(stop + together, n_features)
        if afresh:
            for at in range(start, stop):
                for k in range(bin_start[features[at]] * width, bin_start[features[at] + 1] * width):
                    totals[np.uint64(k)] = 0
        for tile_start in range(0, n_rows, tile):
            span, at = (tile_start, min(tile_start + tile, n_rows)), start
            while at < stop:
                place = np.int64(at), stop, far and at == start  # a plain 0 would be a type of its own
                at += add_some(bins, rows, gains, bin_start, features, place, span, lanes, totals)
        start = stop


@kernel
def add_rows(bins, rows, gains, bin_start, features, lanes, totals, afresh):  # type: ignore[no-untyped-def]
    """add_gains, for Python."""
    add_gains(bins, rows, gains, bin_start, features, lanes, totals, afresh)


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
