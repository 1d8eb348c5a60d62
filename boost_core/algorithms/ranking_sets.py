"""AdaBoost.MR on rows of several labels (Schapire & Singer 1999): ranks a row's labels above the others.

    w0_i = 1 / (n p (K - p)) for a row of p labels,  v+ = exp(-F) on its labels,  v- = exp(F) on the others
    A = sum_i w0_i s+_i s-_i,   s+ and s- being the row's sums of v+ and v-: the exponential loss of all pairs
    G(i,l) = 0.5 w0_i v+ s-_i on the labels, -0.5 w0_i v- s+_i on the others;   r = sum G H / A,   F += artanh(r) / 2 H

Pairs are never listed. Exponents are taken relative to the greatest one of a pair, over all members.
"""

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import atanh_step, ln
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import LN2, NO_ROW
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.jit import counted_kernel, step
from boost_core.label_sets import ranked_mass
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import UNIT, Scores


@step
def _extremes(scores, sets, i, found):  # type: ignore[no-untyped-def]
    """found (OUT, int64 [3]): the least score of a label, the greatest of the others, and how many labels there are."""
    found[0], found[1], found[2] = np.int64(1) << 62, NO_ROW, 0
    for c in range(scores.shape[1]):
        if sets[i, c] == 1:
            found[0] = min(found[0], np.int64(scores[i, c]))
            found[2] += 1
        else:
            found[1] = max(found[1], np.int64(scores[i, c]))


@counted_kernel
def _peak(scores, sets, start, stop):  # type: ignore[no-untyped-def]
    """Greatest F(other) - F(label) of a row, in score units."""
    peak, found = np.int64(NO_ROW), np.empty(3, np.int64)
    for i in range(start, stop):
        _extremes(scores, sets, i, found)
        if 0 < found[2] < scores.shape[1]:
            peak = max(peak, found[1] - found[0])
    return peak


@counted_kernel
def _fill(scores, sets, factor, shift, rows, values):  # type: ignore[no-untyped-def]
    """values (OUT): gains of rows[0]..rows[1] times factor = 2**scale. Returns the sum of absolute gains."""
    n_columns = scores.shape[1]
    powers, found, total = np.empty(n_columns), np.empty(3, np.int64), np.int64(0)
    for i in range(rows[0], rows[1]):
        _extremes(scores, sets, i, found)
        values[i, :] = 0
        values[i, n_columns] = 1
        if found[2] == 0 or found[2] == n_columns:
            continue
        ours, others = 0.0, 0.0
        for c in range(n_columns):
            below = found[0] - np.int64(scores[i, c]) if sets[i, c] == 1 else np.int64(scores[i, c]) - found[1]
            powers[c] = ieee_math.exp(np.float64(below) * UNIT)
            if sets[i, c] == 1:
                ours += powers[c]
            else:
                others += powers[c]
        pairs = np.float64(found[2] * (n_columns - found[2]))
        row = ieee_math.exp(min(np.float64(found[1] - found[0] - shift) * UNIT, 0.0)) * (0.5 * factor / pairs)
        for c in range(n_columns):
            gain = ieee_math.round_half_even(row * powers[c] * (others if sets[i, c] == 1 else ours))
            values[i, c] = gain if sets[i, c] == 1 else -gain
            total += gain
    return total


class RankingSets:
    """The loss is the mean over rows of their pairs' exponential loss; totals of the gains: [A]."""

    error_factor: float | None = 1.0
    ln_initial = 0.0

    def __init__(self, sets: NDArray[np.uint8], problem: Problem) -> None:
        n_rows, self.n_columns = sets.shape
        self._sets, self._team, self._copies = sets, problem.team, problem.copies
        own = np.array([ranked_mass(sets, problem.copies)], np.int64)
        self._all_rows = max(int(problem.collective.sum(own)[0]), 1)
        self._values = new_gains(n_rows, self.n_columns, problem.copies)

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponent, int64 [1]."""
        n_rows, sets = self._sets.shape[0], self._sets
        found = self._team.over(n_rows, sets.size, lambda a, b: int(_peak(scores.values, sets, a, b)))
        return np.array([max(found)], np.int64)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponent over all members."""
        shift = int(peaks[0])
        scale = scale_for(1.0, self._all_rows)  # of a row's pairs together
        factor = float(np.ldexp(1.0, scale))

        def part(start: int, stop: int) -> int:
            return int(_fill(scores.values, self._sets, factor, shift, (start, stop), self._values))

        n_rows = self._sets.shape[0]
        total = sum(self._team.over(n_rows, 8 * self._sets.size, part))
        if self._copies is not None:
            total = int(weigh(self._values, self._copies, self.n_columns, self._team).sum())
        matrix = GainMatrix(self._values, self.n_columns, scale, total)
        return Gains(matrix, np.array([total], np.int64), shift)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of A."""
        return ln(max(int(totals[0]), 1)) - gains.matrix.scale * LN2 + gains.shift * UNIT - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """The edge is all that the step needs."""
        return np.empty(0, np.int64)

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """alpha = artanh(r); both labels of a pair move by half of it."""
        step = atanh_step(fitted.value, int(totals[0]), self._all_rows * self.n_columns, 0.5)
        return step._replace(multipliers=np.repeat(step.multipliers, len(fitted.parts)))

    def taken(self, fitted: Fitted, step: Step) -> None:
        """The scores say it all."""
