"""The exponential loss of right answers on sparse scores (algorithms: exponential_hits.py).

A row's only gain is D_i at its own label, and depends on the score of that label only: an entry a row, and nothing is
added to a row's gains. D is rounded as the whole gain matrix rounds it, so all sums are the same integers.
"""

import numpy as np

from boost_core import ieee_math
from boost_core.algorithms.base import Integers, Problem
from boost_core.jit import kernel
from boost_core.scores import UNIT
from boost_core.sparse_gains import Entries, SparseGains, hot_places
from boost_core.sparse_scores import SparseScores

NO_ROW = -(1 << 62)


@kernel
def _peak(own, start, stop):  # type: ignore[no-untyped-def]
    """Greatest -F(i,y) in score units."""
    peak = np.int64(NO_ROW)
    for i in range(start, stop):
        peak = max(peak, -np.int64(own[i]))
    return peak


@kernel
def _fill(own, labels, counts, places, exponents, rows, out):  # type: ignore[no-untyped-def]
    """D of rows[0]..rows[1] times their counts; returns its sum. exponents = (2**scale, shift).

    out (OUT) = (mass, columns, cold_end, hot_end): D, the place of the row's class among the hot ones (-1: none), and
    where the row's entries end that begin at i.
    """
    factor, shift = exponents
    mass, columns, cold_end, hot_end = out
    total = np.int64(0)
    for i in range(rows[0], rows[1]):
        exponent = (-np.float64(own[i]) - shift) * UNIT
        gain = counts[i] * ieee_math.round_half_even(ieee_math.exp(min(exponent, 0.0)) * factor)
        columns[i] = places[labels[i]]
        mass[i] = gain
        cold_end[i] = i + (gain > 0 and columns[i] < 0)
        hot_end[i] = i + (gain > 0 and columns[i] >= 0)
        total += gain
    return total


class SparseHits:
    """What ExponentialHits does with its gain matrix, on sparse scores."""

    def __init__(self, problem: Problem) -> None:
        self._labels, self._team, self._n_classes = problem.labels, problem.team, problem.n_classes
        n_rows = self._labels.shape[0]
        self._counts = np.ones(n_rows, np.int64) if problem.copies is None else problem.copies
        self._begin, self._nothing = np.arange(n_rows), np.zeros(n_rows, np.int64)
        self._ends = (np.empty(n_rows, np.int64), np.empty(n_rows, np.int64))
        self._columns = np.empty(n_rows, np.int32)

    def peaks(self, scores: SparseScores) -> Integers:
        """This member's greatest exponent, int64 [1]."""
        n_rows = self._labels.shape[0]
        found = self._team.over(n_rows, n_rows, lambda a, b: int(_peak(scores.own, a, b)))
        return np.array([max(found)], np.int64)

    def gains(self, scores: SparseScores, shift: int, scale: int, mass: Integers) -> SparseGains:
        """The gain matrix; mass (OUT, int64 [n_rows]): D times copies."""
        hot_classes, places = hot_places(scores.answered)
        exponents, out = (float(np.ldexp(1.0, scale)), float(shift)), (mass, self._columns, *self._ends)
        state = (scores.own, self._labels, self._counts, places, exponents)
        n_rows = self._labels.shape[0]
        total = sum(self._team.over(n_rows, 8 * n_rows, lambda a, b: int(_fill(*state, (a, b), out))))
        return SparseGains(
            np.empty((0, 0), np.int32),
            self._n_classes,
            scale,
            total,
            mass=mass,
            cold=Entries(self._begin, self._ends[0], self._labels, mass),
            hot=Entries(self._begin, self._ends[1], self._columns, mass),
            hot_classes=hot_classes,
            counts=self._counts,
            added=self._nothing,
            offset=0,
        )
