"""The best cut for +-1 vote vectors (W3 of Kegl 2013), shared by stump and hamming_tree.

With S the sums of the gains per label over a node's rows, a cut splits S into L (left) and R (right):

    factorised   leaves vote -v and +v with v = sgn(R - L):   value = sum_l |R_l - L_l|
    free         leaves vote sgn(L) and sgn(R):               value = sum_l |L_l| + sum_l |R_l|

Both are sums of integers, so equal values are true ties; the first candidate in the order of cut.CutKind, bin and
"missing goes left" wins.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boost_core.binning import Binning
from boost_core.cut import BIN, FEATURE, KIND, MISSING_LEFT, NO_CUT, RECORD_FIELDS, VALUE, FeatureSlices
from boost_core.jit import inner, kernel
from boost_core.team import Team

Integers = NDArray[np.int64]
Votes = NDArray[np.int8]


@inner
def _value(totals, left, n_channels, free):  # type: ignore[no-untyped-def]
    value = np.int64(0)
    if free:
        for c in range(n_channels):
            value += abs(left[c]) + abs(totals[c] - left[c])
    else:
        for c in range(n_channels):
            value += abs(totals[c] - 2 * left[c])
    return value


@inner
def _consider(best, value, kind, last_left, missing_left):  # type: ignore[no-untyped-def]
    """Keep a candidate if it is better than the best one so far (best: IN/OUT, a record's first fields)."""
    if value > best[VALUE]:
        best[VALUE] = value
        best[KIND] = kind
        best[BIN] = last_left
        best[MISSING_LEFT] = missing_left


@kernel
def _search_feature(hist, totals, n_thresholds, has_missing, n_channels, free, best):  # type: ignore[no-untyped-def]
    """Best cut of one feature: hist [bins of the feature, padded], totals [n_channels + 1], best: OUT."""
    n_rows = totals[n_channels]
    below = np.zeros(n_channels + 1, np.int64)
    left = np.zeros(n_channels + 1, np.int64)
    missing = n_thresholds + 1
    n_missing = hist[missing, n_channels] if has_missing else np.int64(0)
    for last_left in range(n_thresholds):
        for c in range(n_channels + 1):
            below[c] += hist[last_left, c]
        if n_missing > 0:
            for c in range(n_channels + 1):
                left[c] = below[c] + hist[missing, c]
            if 0 < left[n_channels] < n_rows:
                _consider(best, _value(totals, left, n_channels, free), 0, last_left, 1)
        if 0 < below[n_channels] < n_rows:
            _consider(best, _value(totals, below, n_channels, free), 0, last_left, 0 if n_missing > 0 else 1)
    if 0 < n_missing < n_rows:
        _consider(best, _value(totals, hist[missing], n_channels, free), 1, 0, 1)


@kernel
def _search(hist, totals, layout, features, n_channels, free, best):  # type: ignore[no-untyped-def]
    """Best cut of each feature of a range, for one node.

    hist int64 [bins of the slice, padded]; totals [n_channels + 1]; layout = (bin_start, n_thresholds, has_missing,
    first bin of the slice); features = (first of the slice, start, stop); best: OUT [slice's features, RECORD_FIELDS].
    """
    bin_start, n_thresholds, has_missing, origin = layout
    for j in range(features[1], features[2]):
        part = hist[bin_start[j] - origin : bin_start[j + 1] - origin]
        found = best[j - features[0]]
        found[VALUE] = NO_CUT
        found[FEATURE] = j
        _search_feature(part, totals, n_thresholds[j], has_missing[j], n_channels, free, found)


@kernel
def _left_sums(hist, n_thresholds, record, n_channels, sums):  # type: ignore[no-untyped-def]
    """sums (OUT) [n_channels + 1]: sums of the rows that a record's cut sends left; hist of the cut's feature."""
    if record[KIND] == 0:
        for b in range(record[BIN] + 1):
            for c in range(n_channels + 1):
                sums[c] += hist[b, c]
    if record[MISSING_LEFT] == 1 and hist.shape[0] > n_thresholds + 1:
        for c in range(n_channels + 1):
            sums[c] += hist[n_thresholds + 1, c]


@kernel
def _vote(left, right, free, votes):  # type: ignore[no-untyped-def]
    """votes (OUT, int8 [2, n_channels]) of the left and the right leaf; returns their values."""
    left_value, right_value = np.int64(0), np.int64(0)
    for c in range(left.shape[0]):
        if free:
            votes[0, c] = 1 if left[c] >= 0 else -1
            votes[1, c] = 1 if right[c] >= 0 else -1
        else:
            votes[1, c] = 1 if right[c] >= left[c] else -1
            votes[0, c] = -votes[1, c]
        left_value += votes[0, c] * left[c]
        right_value += votes[1, c] * right[c]
    return left_value, right_value


@dataclass(frozen=True)
class VoteCuts:
    """Searches a member's feature slice and says what the two sides of a cut vote."""

    binning: Binning
    slices: FeatureSlices
    free: bool

    def best_record(self, hist: Integers, sums: Integers, team: Team) -> Integers:
        """A node's best cut in this member's slice, int64 [RECORD_FIELDS + n_channels + 1] (layout: cut.py).

        hist: [bins of the slice, padded]; sums: the node's, [n_channels + 1]. Without features: no cut.
        """
        n_channels = sums.shape[0] - 1
        record = np.zeros(RECORD_FIELDS + n_channels + 1, np.int64)
        record[VALUE] = NO_CUT
        first, stop = self.slices.own
        if first == stop:
            return record
        origin = int(self.slices.bins[self.slices.rank])
        best = np.empty((stop - first, RECORD_FIELDS), np.int64)
        layout = (self.binning.bin_start, self.binning.n_thresholds, self.binning.has_missing, origin)

        def part(start: int, end: int) -> None:
            _search(hist, sums, layout, (first, first + start, first + end), n_channels, self.free, best)

        team.over(stop - first, hist.size, part)
        record[:RECORD_FIELDS] = best[best[:, VALUE].argmax()]  # the first of equal values
        if record[VALUE] > NO_CUT:
            j = int(record[FEATURE])
            own = hist[self.binning.bin_start[j] - origin : self.binning.bin_start[j + 1] - origin]
            _left_sums(own, self.binning.n_thresholds[j], record, n_channels, record[RECORD_FIELDS:])
        return record

    def root(self, totals: Integers) -> tuple[Votes, int]:
        """Votes and value of the constant (totals without the count)."""
        return signs(totals), int(np.abs(totals).sum())

    def children(self, left: Integers, right: Integers) -> tuple[Votes, int, Votes, int]:
        """Votes and values of the left and the right side of a cut (sums without the count)."""
        votes = np.empty((2, left.shape[0]), np.int8)
        left_value, right_value = _vote(left, right, self.free, votes)
        return votes[0], int(left_value), votes[1], int(right_value)


def signs(sums: Integers) -> Votes:
    """+1 where a sum is >= 0, else -1."""
    return np.where(sums >= 0, 1, -1).astype(np.int8)
