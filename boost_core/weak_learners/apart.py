"""Weak learners that treat every channel as a problem of its own: part c of the result speaks for column c.

The best stumps of all channels (W6; W1 on each) come from one histogram: it is searched once, with a record a channel.
In a gang each member searches its feature slice, and the channels' winners are gathered in one message.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boost_core.cut import (
    BIN,
    FEATURE,
    KIND,
    MASS,
    MISSING_LEFT,
    NO_CUT,
    RECORD_FIELDS,
    VALUE,
    slice_features,
)
from boost_core.fitted import Fitted, Part, Speech
from boost_core.forest import route
from boost_core.gain_matrix import GainMatrix
from boost_core.growth import Grower
from boost_core.histogram import HistogramBuilder
from boost_core.intrinsics import width_for
from boost_core.jit import counted_step, inner, kernel
from boost_core.tree import GAIN_SHIFT, NODE_FIELDS, Tree
from boost_core.weak_learners.limits import Limits

Integers = NDArray[np.int64]
LEFT_SUM = RECORD_FIELDS  # a channel's record ends with the sum of its gains on the left
FIELDS = RECORD_FIELDS + 1


@inner
def _consider(sums, left, cut, best):  # type: ignore[no-untyped-def]
    """Keep a cut for the channels it is better for; cut = (feature, kind, last bin left, missing left)."""
    for c in range(best.shape[0]):
        value = abs(sums[c] - 2 * left[c])
        if value > best[c, VALUE]:
            best[c, VALUE] = value
            best[c, FEATURE], best[c, KIND], best[c, BIN], best[c, MISSING_LEFT] = cut
            best[c, LEFT_SUM] = left[c]


@counted_step
def _search_feature(hist, sums, feature, n_thresholds, has_missing, best):  # type: ignore[no-untyped-def]
    """Best cut of one feature for each channel, in the order of ties: hist [bins of the feature, padded]."""
    n_channels = sums.shape[0] - 1
    n_rows = sums[n_channels]
    below = np.zeros(n_channels + 1, np.int64)
    left = np.zeros(n_channels + 1, np.int64)
    missing = n_thresholds + 1
    n_missing = hist[missing, n_channels] if has_missing else np.int64(0)
    for last_left in range(n_thresholds):
        if last_left > 0 and hist[last_left, n_channels] == 0:
            continue  # no row in the bin: the same cut as the one before, which wins the tie
        for c in range(n_channels + 1):
            below[c] += hist[last_left, c]
        if n_missing > 0:
            for c in range(n_channels + 1):
                left[c] = below[c] + hist[missing, c]
            if left[n_channels] < n_rows:
                _consider(sums, left, (feature, 0, last_left, 1), best)
        if 0 < below[n_channels] < n_rows:
            _consider(sums, below, (feature, 0, last_left, 0 if n_missing > 0 else 1), best)
    if 0 < n_missing < n_rows:
        _consider(sums, hist[missing], (feature, 1, 0, 1), best)


@kernel
def _search_features(hist, sums, layout, features, best):  # type: ignore[no-untyped-def]
    """best (OUT, int64 [n_channels, FIELDS]) of a range of features; hist, layout as in cut_search."""
    bin_start, n_thresholds, has_missing, origin = layout
    best[:, VALUE] = NO_CUT
    for j in range(features[0], features[1]):
        part = hist[bin_start[j] - origin : bin_start[j + 1] - origin]
        _search_feature(part, sums, j, n_thresholds[j], has_missing[j], best)


@kernel
def _channel_masses(values, start, stop, masses):  # type: ignore[no-untyped-def]
    """masses (IN/OUT, int64 [n_channels]) += absolute gains of rows start..stop."""
    for i in range(start, stop):
        for c in range(masses.shape[0]):
            masses[c] += abs(np.int64(values[i, c]))


class StumpsApart:
    """The best stump (W1) of every channel."""

    def __init__(self, grower: Grower) -> None:
        self._grower = grower
        collective = grower.collective
        self._slices = slice_features(grower.binning, collective.rank, collective.size)
        self._builder = HistogramBuilder(grower.shard.bins, grower.binning, grower.team)

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        """A part a channel; sums: of each channel and the row count, over all members."""
        own = self._own_records(gains, sums)
        own[:, MASS] = self._masses(gains)
        gathered = np.stack(self._grower.collective.all_gather(own))
        winners = gathered[:, :, VALUE].argmax(axis=0)  # the lowest rank among equals: its features come first
        masses = gathered[:, :, MASS].sum(axis=0)
        parts = [
            Part(self._stump(gathered[winners[c], c], int(sums[c]), int(masses[c])), c) for c in range(gains.n_channels)
        ]
        return Fitted(tuple(parts), Speech.VOTES)

    def _own_records(self, gains: GainMatrix, sums: Integers) -> Integers:
        """Best cuts in this member's slice of the features, int64 [n_channels, FIELDS]."""
        local = self._builder.empty(1, gains.values.shape[1])
        self._builder.add(gains, None, local[0])
        summed = self._grower.collective.reduce_scatter(local, self._slices.bins, gains.n_channels + 1)
        hist = np.ascontiguousarray(summed[0])
        (first, stop), origin = self._slices.own, int(self._slices.bins[self._slices.rank])
        binning = self._grower.binning
        layout = (binning.bin_start, binning.n_thresholds, binning.has_missing, origin)

        def part(start: int, end: int) -> Integers:
            best = np.zeros((gains.n_channels, FIELDS), np.int64)
            _search_features(hist, sums, layout, (first + start, first + end), best)
            return best

        found = np.stack(self._grower.team.over(stop - first, hist.size, part))
        self._builder.give_back(local)
        winners = found[:, :, VALUE].argmax(axis=0)
        return np.ascontiguousarray(found[winners, np.arange(gains.n_channels)])

    def _masses(self, gains: GainMatrix) -> Integers:
        """This member's sum of absolute gains of each channel."""

        def part(start: int, stop: int) -> Integers:
            masses = np.zeros(gains.n_channels, np.int64)
            _channel_masses(gains.values, start, stop, masses)
            return masses

        n_rows = gains.values.shape[0]
        return np.asarray(np.sum(self._grower.team.over(n_rows, n_rows * gains.n_channels, part), axis=0))

    def _stump(self, record: Integers, total: int, mass: int) -> Tree:
        """The constant, or the cut if that is better by more than rounding; mass: the channel's absolute gains."""
        value, below = int(record[VALUE]), int(record[LEFT_SUM])
        if value == NO_CUT or value - abs(total) <= mass >> GAIN_SHIFT:
            n_rows = self._grower.shard.n_rows
            payload = np.array([[1 if total >= 0 else -1]], np.int32)
            return Tree(np.empty((0, NODE_FIELDS), np.int64), payload, abs(total), np.zeros(n_rows, np.int32))
        cut = [int(record[field]) for field in (FEATURE, KIND, BIN, MISSING_LEFT)]
        nodes = np.array([[*cut, ~0, ~1]], np.int64)
        right = 1 if total - below >= below else -1
        payload = np.array([[-right], [right]], np.int32)
        tree = Tree(nodes, payload, value, np.empty(0, np.int32))
        leaves = route(tree, self._grower.shard.bins, self._grower.binning, self._grower.team)
        return Tree(nodes, payload, value, leaves)


class TreesApart:
    """A tree of any objective for every channel, grown one after another."""

    def __init__(self, grower: Grower, objective: Any, limits: Limits) -> None:
        self._grower, self._objective, self._limits = grower, objective, limits

    def fit(self, gains: GainMatrix, sums: Integers) -> Fitted:
        """A part a channel; sums: of each channel and the row count, over all members."""
        parts = []
        max_leaves, max_depth = self._limits
        for c in range(gains.n_channels):
            one, both = _channel(gains, c), np.array([sums[c], sums[-1]])
            tree = self._grower.grow(self._objective, one, both, max_leaves, 1, max_depth)
            parts.append(Part(tree, c))
        return Fitted(tuple(parts), Speech.VOTES)


def _channel(gains: GainMatrix, channel: int) -> GainMatrix:
    """A gain matrix of one channel."""
    values = np.zeros((gains.values.shape[0], width_for(2)), gains.values.dtype)
    values[:, 0] = gains.values[:, channel]
    values[:, 1] = gains.values[:, gains.n_channels]
    return GainMatrix(values, 1, gains.scale, int(np.abs(values[:, 0].astype(np.int64)).sum()))
