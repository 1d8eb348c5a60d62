"""From feature values to bins: exact thresholds where values are few, sampled quantiles elsewhere.

    value          NaN      x < t0     t0 <= x < t1   ...   x >= t[m-1]
    code           m + 1    0          1              ...   m               for the m thresholds of a feature

A cut at bin b sends codes 0..b left, so "x >= threshold[b] goes right". The code m + 1 means missing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from boost_core.bin_grid import make_grid
from boost_core.intrinsics import bits_of
from boost_core.jit import inner, kernel
from boost_core.team import Team

MAX_BINS = 255  # value bins; with the missing bin the codes fit uint8
SAMPLE_ROWS = 65_536  # about 257 rows a bin at 255 bins: quantiles within 6 % of a bin's mass
SAMPLE_CELLS = 1 << 25  # bounds the sample's memory (256 MB) where there are very many features
SLOTS = 1024  # of the table that counts distinct values: a power of two, at least 4 times MAX_BINS
HASH_TILE = 1024  # rows whose hashes are in work at a time: 8 KB

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Binning:
    """Thresholds of all features and which of them have missing values in the training rows.

    thresholds: float64, ascending within a feature; threshold_start: int64 [n_features + 1];
    has_missing: bool [n_features]. Histograms hold one bin a value bin and, if has_missing, one more.
    """

    thresholds: Floats
    threshold_start: NDArray[np.int64]
    has_missing: NDArray[np.bool_]

    @property
    def n_features(self) -> int:
        return int(self.has_missing.shape[0])

    @cached_property
    def n_thresholds(self) -> NDArray[np.int64]:
        """Thresholds of each feature, int64 [n_features]."""
        return np.diff(self.threshold_start)

    @cached_property
    def bin_start(self) -> NDArray[np.int64]:
        """First histogram bin of each feature, int64 [n_features + 1]."""
        sizes = self.n_thresholds + 1 + self.has_missing
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])

    def of_feature(self, feature: int) -> Floats:
        """Thresholds of one feature."""
        return self.thresholds[self.threshold_start[feature] : self.threshold_start[feature + 1]]


def make_binning(thresholds: Sequence[Floats], has_missing: Sequence[bool]) -> Binning:
    """Join the features' thresholds."""
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum([len(t) for t in thresholds], dtype=np.int64)])
    flat = np.concatenate([np.empty(0), *thresholds])
    return Binning(flat, starts, np.array(has_missing, np.bool_))


@inner
def mix64(x):  # type: ignore[no-untyped-def]
    """Bijective 64-bit mixer (the finaliser of splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inner
def _slot(value):  # type: ignore[no-untyped-def]
    """Where a value is looked for first among SLOTS: the upper bits of a product depend on all bits below them."""
    return np.int64((np.uint64(np.int64(bits_of(value))) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(54))


@kernel
def add_distinct(values, limit, table, count):  # type: ignore[no-untyped-def]
    """Add the distinct values of float64 `values` to an open-addressed table (IN, OUT; NaN = free) that holds `count`.

    Returns how many it holds then; the scan stops when they are more than `limit`. NaN is skipped.
    """
    for i in range(values.shape[0]):
        value = values[i] + 0.0  # -0.0 and 0.0 are one value
        slot = _slot(value)
        if table[slot] == value:
            continue
        if value != value:
            continue
        while table[slot] == table[slot] and table[slot] != value:
            slot = (slot + 1) & (SLOTS - 1)
        if table[slot] != value:
            table[slot] = value
            count += 1
            if count > limit:
                break
    return count


class Distinct:
    """Collects the distinct values of a column a part at a time, up to `limit` + 1 of them."""

    def __init__(self, limit: int) -> None:
        self._limit, self._table, self._count = limit, np.full(SLOTS, np.nan), 0

    def add(self, values: Floats) -> None:
        """float64 values; NaN is skipped."""
        with np.errstate(over="ignore"):  # the hash wraps around
            self._count = int(add_distinct(values, self._limit, self._table, self._count))

    @property
    def crowded(self) -> bool:
        """Whether there are more than `limit`: then nothing more need be added."""
        return self._count > self._limit

    def values(self) -> Floats:
        """Sorted; if there are too many, those that came first."""
        return np.sort(self._table[~np.isnan(self._table)])


def distinct_values(values: Floats, limit: int) -> tuple[Floats, bool]:
    """Sorted distinct values of a column, and whether it has missing ones.

    More than `limit` distinct values are reported by a result longer than `limit` (its values then mean nothing).
    """
    distinct = Distinct(limit)
    distinct.add(np.ascontiguousarray(values, np.float64))
    return distinct.values(), bool(np.isnan(values).any())


def midpoints(distinct: Floats) -> Floats:
    """A threshold between each two neighbours a < b: their midpoint if it is finite and above a, else b."""
    return _between(distinct[:-1], distinct[1:])


def _between(low: Floats, high: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        middle = low * 0.5 + high * 0.5
    usable = np.isfinite(middle) & (middle > low) & (middle <= high)
    return np.asarray(np.where(usable, middle, high))


@kernel
def _count_distinct(values, table, counts):  # type: ignore[no-untyped-def]
    """How often each value occurs, in an open-addressed table (table: OUT, NaN = free; counts: OUT); NaN is skipped.

    Returns how many distinct ones there are, or -1 if they are more than half of the table's slots.
    """
    n_distinct = 0
    for i in range(values.shape[0]):
        value = values[i] + 0.0  # -0.0 and 0.0 are one value
        if value != value:
            continue
        slot = _slot(value)
        while table[slot] == table[slot] and table[slot] != value:
            slot = (slot + 1) & (SLOTS - 1)
        if table[slot] != value:
            table[slot] = value
            n_distinct += 1
            if n_distinct > SLOTS // 2:
                return -1
        counts[slot] += 1
    return n_distinct


def _ranked(sample: Floats) -> tuple[Floats, NDArray[np.int64], int]:
    """Distinct values of a sample in order, how many lie before each, and how many there are in all; without NaN.

    Few are counted, which takes a third of the time of sorting all; many are sorted.
    """
    table, counts = np.full(SLOTS, np.nan), np.zeros(SLOTS, np.int64)
    with np.errstate(over="ignore"):  # the hash wraps around
        n_distinct = int(_count_distinct(sample, table, counts))
    if n_distinct >= 0:
        order = np.argsort(table)[:n_distinct]  # NaN comes last
        ends = np.cumsum(counts[order])
        return table[order], ends - counts[order], int(counts.sum())
    ordered = np.sort(sample)
    ordered = ordered[: np.searchsorted(ordered, np.inf, side="right")] + 0.0
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return ordered[first], first, len(ordered)


def quantile_thresholds(sample: Floats, max_bins: int) -> Floats:
    """At most max_bins - 1 thresholds that split a sample into bins of about equal mass. sample: unsorted; NaN is left
    out."""
    distinct, first, n = _ranked(np.ascontiguousarray(sample, np.float64))
    if distinct.shape[0] <= max_bins:
        return midpoints(distinct)
    targets = (np.arange(1, max_bins, dtype=np.int64) * n) // max_bins
    # the boundary before the distinct value that holds the target rank
    boundaries = np.unique(np.searchsorted(first, targets, side="right") - 1)
    above = boundaries[boundaries > 0]
    return _between(distinct[above - 1], distinct[above])


@kernel
def _sample_mask(row_numbers, limit, seed, mask):  # type: ignore[no-untyped-def]
    for i in range(row_numbers.shape[0]):
        mask[i] = mix64(np.uint64(row_numbers[i]) ^ seed) < limit


def sample_rows(row_numbers: NDArray[np.int64], n_rows: int, n_features: int, seed: int) -> NDArray[np.bool_]:
    """Which rows are in the sample for quantiles, bool like row_numbers.

    A row is in if the hash of its global number is below wanted / n_rows: the choice needs no other row, so any
    split of the rows over members gives the same sample, of about SAMPLE_ROWS rows.
    """
    wanted = max(4 * MAX_BINS, min(SAMPLE_ROWS, SAMPLE_CELLS // max(n_features, 1)))
    mask = np.ones(row_numbers.shape[0], np.bool_)
    if n_rows > wanted:
        limit = np.uint64((wanted << 64) // n_rows)
        with np.errstate(over="ignore"):  # the hash wraps around
            _sample_mask(row_numbers, limit, np.uint64(seed & 0xFFFFFFFFFFFFFFFF), mask)
    return mask


def bin_column(values: Floats, thresholds: Floats, codes: NDArray[np.uint8]) -> bool:
    """codes (OUT, uint8 [n]): the bin of each value of a column [n]; whether one is missing."""
    return make_grid(thresholds).bins(values, codes)


@kernel
def _row_hashes(bins, labels, row_numbers, start, stop):  # type: ignore[no-untyped-def]
    """Wrap-around sum over the rows from start to stop of a hash of (global row number, bins, label).

    A tile of rows at a time, its features one after another: each is then read along its rows.
    """
    total = np.uint64(0)
    states = np.empty(HASH_TILE, np.uint64)
    for first in range(start, stop, HASH_TILE):
        n = min(stop - first, HASH_TILE)
        for i in range(n):
            states[i] = mix64(np.uint64(row_numbers[first + i]) + np.uint64(0x9E3779B97F4A7C15))
        for j in range(bins.shape[0]):
            for i in range(n):
                states[i] = (states[i] ^ np.uint64(bins[j, first + i])) * np.uint64(0x100000001B3)
        for i in range(n):
            total += mix64(states[i] ^ (np.uint64(labels[first + i]) << np.uint64(32)))
    return total


def _hashes(table: tuple[NDArray[np.uint8], NDArray[np.int32]], row_numbers: NDArray[np.int64], team: Team) -> int:
    """The same of a table (bins, labels), by parts of its rows."""
    bins, labels = table

    def part(start: int, stop: int) -> int:
        with np.errstate(over="ignore"):  # the hash wraps around
            return int(_row_hashes(bins, labels, row_numbers, start, stop))

    return sum(team.over(len(labels), 2 * bins.size + 16 * len(labels), part))


def fingerprint(
    bins: NDArray[np.uint8],
    labels: NDArray[np.int32],
    row_numbers: NDArray[np.int64],
    weights: NDArray[np.int64] | None = None,
    sets: NDArray[np.uint8] | None = None,
    team: Team | None = None,
) -> int:
    """This member's part of the data fingerprint; parts are added modulo 2**64.

    weights: copies of weighted rows; sets: uint8 [n_rows, n_labels] of multi-label data.
    """
    team = team or Team(1)
    found = _hashes((bins, labels), row_numbers, team)
    # the rows' weights and sets like tables of their own, told apart by what stands for their labels
    if weights is not None:
        bytes_ = np.ascontiguousarray(weights.astype("<i8")).view(np.uint8).reshape(-1, 8)
        found += _hashes((np.ascontiguousarray(bytes_.T), labels + np.int32(1)), row_numbers, team)
    if sets is not None:
        found += _hashes((np.ascontiguousarray(sets.T), labels + np.int32(2)), row_numbers, team)
    return found % (1 << 64)
