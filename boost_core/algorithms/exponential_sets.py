"""The exponential vote loss on rows of several labels: exponential_votes, _odds and _columns for label sets.

    W(i,l) = c(i,l) exp(-Y(i,l) F(i,l)),  Y = +1 where row i has label l, -1 elsewhere      (Schapire & Singer 1999)

c depends on the sign of Y and either on how many labels the row has or on the label (set_weights.py). Rows of one label
each give the integers that single-label data give.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.base import Gains, Integers, Problem
from boost_core.algorithms.exponential_columns import Columns, ExponentialColumns
from boost_core.algorithms.exponential_odds import ExponentialOdds
from boost_core.algorithms.exponential_votes import ExponentialVotes, InitialWeights, shift_and_scale
from boost_core.algorithms.set_weights import SetWeights
from boost_core.gain_matrix import Reading
from boost_core.jit import counted_kernel, kernel
from boost_core.row_weights import new_gains
from boost_core.scores import NO_PAIR, UNIT, Scores

Sets = NDArray[np.uint8]


@kernel
def _peaks(scores, sets, sizes, grouped, rows, peaks):  # type: ignore[no-untyped-def]
    """peaks (IN/OUT, int64 [2, groups]): greatest exponent -Y F by sign, and by number of labels (grouped) or label."""
    for i in range(rows[0], rows[1]):
        for c in range(scores.shape[1]):
            sign = np.int64(sets[i, c])
            group = sizes[i] if grouped else c
            exponent = -np.int64(scores[i, c]) if sign == 1 else np.int64(scores[i, c])
            peaks[sign, group] = max(peaks[sign, group], exponent)


@counted_kernel
def _fill(scores, sets, sizes, tables, shift, rows, values):  # type: ignore[no-untyped-def]
    """values (OUT): gains of rows[0]..rows[1]; tables = (by_size times 2**scale, by_label). Returns their sum."""
    by_size, by_label = tables
    n_columns = scores.shape[1]
    total = np.int64(0)
    powers = np.empty(n_columns)
    for i in range(rows[0], rows[1]):
        for c in range(n_columns):
            exponent = -np.float64(scores[i, c]) if sets[i, c] == 1 else np.float64(scores[i, c])
            powers[c] = (exponent - shift) * UNIT
        for c in range(n_columns):
            powers[c] = ieee_math.exp(min(powers[c], 0.0))
        for c in range(n_columns):
            sign = np.int64(sets[i, c])
            gain = ieee_math.round_half_even(powers[c] * (by_size[sign, sizes[i]] * by_label[sign, c]))
            values[i, c] = gain if sign == 1 else -gain
            total += gain
        values[i, n_columns] = 1
    return total


@kernel
def _shift_and_scale(peaks, initial, limits):  # type: ignore[no-untyped-def]
    """shift_and_scale, for Python."""
    return shift_and_scale(peaks, initial, limits)


class SetVotes(ExponentialVotes):
    """ExponentialVotes for label sets; sets: uint8 [n_rows, K]."""

    def __init__(self, sets: Sets, weights: SetWeights, problem: Problem, reading: Reading = Reading.TOGETHER) -> None:
        unused = np.full(sets.shape[1], 1.0)
        super().__init__(np.empty(sets.shape[0], np.int32), InitialWeights(unused, unused), problem, reading)
        self._sets, self._weights = sets, weights
        self._sizes = sets.sum(axis=1, dtype=np.int64)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponents -Y F in score units, int64 [2 * groups]."""
        table = self._initial_of()

        def part(start: int, stop: int) -> Integers:
            peaks = np.full(table.shape, NO_PAIR, np.int64)
            _peaks(scores.values, self._sets, self._sizes, self._weights.grouped, (start, stop), peaks)
            return peaks

        found = self._team.over(self._sets.shape[0], self._sets.size, part)
        return np.asarray(np.max(found, axis=0).reshape(-1))

    def _initial_of(self) -> NDArray[np.float64]:
        """Initial weights by sign and group."""
        return self._weights.by_size if self._weights.grouped else self._weights.by_label

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponents over all members."""
        shift, scale = map(int, _shift_and_scale(peaks, self._initial_of(), self._limits))
        tables = (np.ldexp(self._weights.by_size, scale), self._weights.by_label)

        def part(start: int, stop: int) -> int:
            rows = (start, stop)
            return int(_fill(scores.values, self._sets, self._sizes, tables, float(shift), rows, self._values))

        n_rows = self._sets.shape[0]
        return self._weighed(scale, shift, sum(self._team.over(n_rows, 8 * self._sets.size, part)))

    def pace(self, scores: Scores, peaks: Integers) -> None:
        """Scores of label sets are not watched."""


class SetOdds(ExponentialOdds, SetVotes):
    """Real-valued leaves: the votes' gains are those of label sets."""

    def __init__(self, sets: Sets, weights: SetWeights, problem: Problem) -> None:
        SetVotes.__init__(self, sets, weights, problem)
        self.n_channels = 2 * self.n_columns
        self._pairs = new_gains(sets.shape[0], self.n_channels, problem.copies)


class SetColumns(ExponentialColumns):
    """A binary problem a label; rows of equal sets share a row of the code."""

    def __init__(self, sets: Sets, weights: SetWeights, problem: Problem, error_factor: float | None) -> None:
        patterns, pattern_of_row = np.unique(sets, axis=0, return_inverse=True)
        found = weights.pairs(patterns)
        # a scale needs the greatest weight of each column and sign over all members
        largest = np.stack([np.where(patterns == sign, found, 0.0).max(axis=0, initial=0.0) for sign in range(2)])
        negative, positive = problem.collective.max(largest)
        code = (2 * patterns.astype(np.int8) - 1).astype(np.int8)
        own = replace(problem, labels=pattern_of_row.reshape(-1).astype(np.int32))
        super().__init__(own, Columns(code, InitialWeights(positive, negative)), error_factor)
        self._weights = found

    def _rows_of(self, problem: Problem) -> Integers:
        """Every row is in every column."""
        return np.full(self.n_columns, problem.all_rows, np.int64)


def set_form(sets: Sets, weights: SetWeights, problem: Problem) -> SetVotes:
    """One step for all labels, or the steps that real-valued leaves are."""
    kind = problem.weak_learner.name if problem.weak_learner else ""
    return SetOdds(sets, weights, problem) if kind == "real_tree" else SetVotes(sets, weights, problem)
