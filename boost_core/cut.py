"""A cut: how one inner node sends rows left or right."""

import enum
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.jit import inner, step


class CutKind(enum.IntEnum):
    """In the order in which ties between candidates of one feature are broken."""

    THRESHOLD = 0  # codes up to the bin go left, higher ones right, missing ones to the side that is better
    MISSING = 1  # missing values go left, all others right


# Columns of a candidate's record (int64): what members exchange about a node's best cut. After them come the sums of
# the left side's rows, n_channels + 1 (the last one counts the rows).
VALUE, FEATURE, KIND, BIN, MISSING_LEFT, MASS = range(6)
RECORD_FIELDS = 6
NO_CUT = -(1 << 62)  # value of a record without a cut: below that of any cut, which may be negative

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class FeatureSlices:
    """Which features' histograms each member reduces and searches.

    features: int64 [size + 1], the slices' bounds; bins: int64 [size + 1], the same in histogram bins.
    """

    features: Integers
    bins: Integers
    rank: int

    @property
    def own(self) -> tuple[int, int]:
        """First feature and the one after the last of this member; may be empty."""
        return int(self.features[self.rank]), int(self.features[self.rank + 1])


def feature_edges(bin_start: Integers, parts: int) -> Integers:
    """Contiguous feature slices of about equal numbers of bins, int64 [parts + 1]; some may be empty."""
    total = int(bin_start[-1])
    wanted = np.array([total * part // parts for part in range(parts + 1)], np.int64)
    return np.searchsorted(bin_start, wanted, side="left").astype(np.int64)


def slice_bins(bin_start: Integers, rank: int, size: int) -> FeatureSlices:
    """The slices of the members of a gang, of about as many bins each."""
    features = feature_edges(bin_start, size)
    return FeatureSlices(features, bin_start[features], rank)


def slice_features(binning: Binning, rank: int, size: int) -> FeatureSlices:
    """Slices of all features."""
    return slice_bins(binning.bin_start, rank, size)


@dataclass(frozen=True)
class Offer:
    """The features that may be cut, int64 [k] in order, and where the bins of features begin if only these have any,
    int64 [n_features + 1]."""

    features: Integers
    bin_start: Integers

    @classmethod
    def of(cls, binning: Binning) -> "Offer":
        """Of all features that a binning has cuts for."""
        with_cuts = (binning.n_thresholds > 0) | binning.has_missing
        n_bins = np.where(with_cuts, np.diff(binning.bin_start), 0)
        return cls(np.flatnonzero(with_cuts), np.concatenate([[0], np.cumsum(n_bins)]))

    def within(self, first: int, stop: int) -> Integers:
        """Those of a range of features."""
        begin, end = np.searchsorted(self.features, [first, stop])
        return self.features[begin:end]


@inner
def goes_left(code, kind, last_left, missing_code, missing_left):  # type: ignore[no-untyped-def]
    """Whether a bin code goes left. The missing code is above every threshold's bin; no branches (see partition)."""
    return ((kind == 0) & (code <= last_left)) | (missing_left & (code == missing_code))


@inner
def left_span(kind, last_left, missing_code, missing_left):  # type: ignore[no-untyped-def]
    """(shift, bound): a code goes left where (code + shift) % 256 <= bound: one comparison for all kinds of cuts.

    The missing code is the greatest, so a shift by it makes it 0, and of the others the lowest ones come next.
    """
    if not missing_left:
        return np.int64(0), np.int64(last_left) if kind == 0 else np.int64(-1)
    shift = np.int64(256) - missing_code
    return shift, shift + last_left if kind == 0 else np.int64(0)


@step
def divide(order, codes, segment, cut, right_rows):  # type: ignore[no-untyped-def]
    """Move the left rows of order[segment[0]:segment[1]] (IN/OUT, row numbers) to its front, the right ones to
    right_rows (OUT), both in order.

    cut: (kind, bin, missing code, missing left). Returns how many rows are left, how many are right.
    Every row is written to both sides and one of them moves on: a branch would be guessed wrong for half of the rows.
    Indices are unsigned: of signed ones Numba asks whether they count from the end, which takes as long as the rest.
    """
    shift, bound = left_span(cut[0], cut[1], cut[2], cut[3])
    left = np.uint64(segment[0])
    for k in range(np.uint64(segment[0]), np.uint64(segment[1])):
        place = np.uint64(k)
        i = order[place]
        is_left = np.uint64(((np.int64(codes[np.uint64(i)]) + shift) & 255) <= bound)
        order[left] = i
        right_rows[place - left] = i
        left += is_left
    n_left = np.int64(left) - segment[0]
    return n_left, segment[1] - segment[0] - n_left


@step
def partition(order, codes, segment, cut, scratch):  # type: ignore[no-untyped-def]
    """Stable partition of order[segment[0]:segment[1]] (IN/OUT, row numbers) by a cut; scratch: room for the rows.

    Returns the first right position; cut: see divide.
    """
    n_left, n_right = divide(order, codes, segment, cut, scratch)
    left = segment[0] + n_left
    for k in range(n_right):
        order[np.uint64(left + k)] = scratch[np.uint64(k)]
    return left


@step
def join_sides(order, bounds, sizes, scratch):  # type: ignore[no-untyped-def]
    """Make one partition of segments that were divided each for itself; returns the first right position.

    bounds: int64 [n + 1], where they lie in order; sizes [n, >= 2]: left and right rows of each; the right ones are in
    scratch from where the segment begins.
    """
    place = bounds[0]
    for part in range(sizes.shape[0]):
        for k in range(sizes[part, 0]):
            order[np.uint64(place + k)] = order[np.uint64(bounds[part] + k)]
        place += sizes[part, 0]
    middle = place
    for part in range(sizes.shape[0]):
        for k in range(sizes[part, 1]):
            order[np.uint64(place + k)] = scratch[np.uint64(bounds[part] + k)]
        place += sizes[part, 1]
    return middle
