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

from boost_core.intrinsics import bits_of
from boost_core.jit import inner, kernel

MAX_BINS = 255  # value bins; with the missing bin the codes fit uint8
SAMPLE_ROWS = 65_536  # about 257 rows a bin at 255 bins: quantiles within 6 % of a bin's mass
SAMPLE_CELLS = 1 << 25  # bounds the sample's memory (256 MB) where there are very many features
SLOTS = 1024  # of the table that counts distinct values: a power of two, at least 4 times MAX_BINS

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


@kernel
def _collect_distinct(values, limit, table, used):  # type: ignore[no-untyped-def]
    """Collect up to `limit` + 1 distinct non-NaN values in an open-addressed table (table, used: OUT).

    Returns (count, saw NaN); the scan for values stops when the limit is passed.
    """
    count = 0
    missing = False
    for i in range(values.shape[0]):
        value = values[i] + 0.0  # -0.0 and 0.0 are one value
        if value != value:
            missing = True
        elif count <= limit:
            slot = np.int64(mix64(np.uint64(np.int64(bits_of(value)))) & np.uint64(SLOTS - 1))
            while used[slot] and table[slot] != value:
                slot = (slot + 1) & (SLOTS - 1)
            if not used[slot]:
                used[slot] = True
                table[slot] = value
                count += 1
    return count, missing


def distinct_values(values: Floats, limit: int) -> tuple[Floats, bool]:
    """Sorted distinct values of a column, and whether it has missing ones.

    More than `limit` distinct values are reported by a result longer than `limit` (its values then mean nothing).
    """
    table = np.zeros(SLOTS)
    used = np.zeros(SLOTS, np.bool_)
    with np.errstate(over="ignore"):  # the hash wraps around
        _, missing = _collect_distinct(np.ascontiguousarray(values, np.float64), limit, table, used)
    return np.sort(table[used]), bool(missing)


def midpoints(distinct: Floats) -> Floats:
    """A threshold between each two neighbours a < b: their midpoint if it is finite and above a, else b."""
    low, high = distinct[:-1], distinct[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        middle = low * 0.5 + high * 0.5
    usable = np.isfinite(middle) & (middle > low) & (middle <= high)
    return np.asarray(np.where(usable, middle, high))


def quantile_thresholds(sample: Floats, max_bins: int) -> Floats:
    """At most max_bins - 1 thresholds that split a sample (unsorted, no NaN) into bins of about equal mass."""
    ordered = np.sort(sample) + 0.0
    n = ordered.shape[0]
    distinct, first = np.unique(ordered, return_index=True)
    if distinct.shape[0] <= max_bins:
        return midpoints(distinct)
    targets = (np.arange(1, max_bins, dtype=np.int64) * n) // max_bins
    # the boundary before the distinct value that holds the target rank
    boundaries = np.unique(np.searchsorted(first, targets, side="right") - 1)
    chosen: Floats = midpoints(distinct)[boundaries[boundaries > 0] - 1]
    return chosen


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


@kernel
def bin_column(values, thresholds, codes):  # type: ignore[no-untyped-def]
    """codes (OUT, uint8 [n]): the bin of each value; float64 values [n], thresholds [m], m <= 254."""
    m = thresholds.shape[0]
    for i in range(values.shape[0]):
        value = values[i]
        low, high = 0, m
        while low < high:  # first threshold above the value
            middle = (low + high) >> 1
            if value >= thresholds[middle]:
                low = middle + 1
            else:
                high = middle
        codes[i] = low if value == value else m + 1


@kernel
def _row_hashes(bins, labels, row_numbers):  # type: ignore[no-untyped-def]
    """Wrap-around sum over rows of a hash of (global row number, bins, label)."""
    total = np.uint64(0)
    for i in range(labels.shape[0]):
        state = mix64(np.uint64(row_numbers[i]) + np.uint64(0x9E3779B97F4A7C15))
        for j in range(bins.shape[0]):
            state = (state ^ np.uint64(bins[j, i])) * np.uint64(0x100000001B3)
        total += mix64(state ^ (np.uint64(labels[i]) << np.uint64(32)))
    return total


def fingerprint(
    bins: NDArray[np.uint8],
    labels: NDArray[np.int32],
    row_numbers: NDArray[np.int64],
    weights: NDArray[np.int64] | None = None,
    sets: NDArray[np.uint8] | None = None,
) -> int:
    """This member's part of the data fingerprint; parts are added modulo 2**64.

    weights: copies of weighted rows; sets: uint8 [n_rows, n_labels] of multi-label data.
    """
    with np.errstate(over="ignore"):
        found = int(_row_hashes(bins, labels, row_numbers))
        # the rows' weights and sets like tables of their own, told apart by what stands for their labels
        if weights is not None:
            bytes_ = np.ascontiguousarray(weights.astype("<i8")).view(np.uint8).reshape(-1, 8)
            found += int(_row_hashes(np.ascontiguousarray(bytes_.T), labels + np.int32(1), row_numbers))
        if sets is not None:
            found += int(_row_hashes(np.ascontiguousarray(sets.T), labels + np.int32(2), row_numbers))
        return found % (1 << 64)
