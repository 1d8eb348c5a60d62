"""The exponential loss of how often a row was answered right, shared by adaboost_m1 and samme.

    D_i = exp(-F(i,y)) up to a factor: F(i,y) is the sum of the alphas of the rounds that answered row i right
    G(i,y) = D_i, 0 elsewhere: the sum of gains of a weak learner is the weight A+ of the rows it answers right
    loss = mean exp(-F(i,y)) * exp(share * sum_t alpha_t)

With share of alpha held against every row, right rounds count 1 - share and wrong ones -share. M1 has 1/2 (Freund &
Schapire 1997), SAMME 1/K (Zhu et al. 2009). A round multiplies the loss with
Z = (1 - err) exp(-(1 - share) alpha) + err exp(share alpha), err = A- / A.
"""

import math
from typing import ClassVar

import numpy as np

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ALPHA_CAP, ln, make_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.sparse_hits import SparseHits
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.jit import kernel
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import UNIT, Scores
from boost_core.sparse_rule import keeps_sparse
from boost_core.sparse_scores import as_sparse

LN2 = 0.6931471805599453
NO_ROW = -(1 << 62)


@kernel
def _peak(scores, labels, start, stop):  # type: ignore[no-untyped-def]
    """Greatest -F(i,y) in score units."""
    peak = np.int64(NO_ROW)
    for i in range(start, stop):
        peak = max(peak, -np.int64(scores[i, labels[i]]))
    return peak


@kernel
def _fill(scores, labels, factor, shift, rows, values):  # type: ignore[no-untyped-def]
    """The true labels' values (OUT) of rows[0]..rows[1]: D times factor = 2**scale. Returns their sum.

    The other values stay 0.
    """
    n_columns = scores.shape[1]
    total = np.int64(0)
    for i in range(rows[0], rows[1]):
        exponent = (-np.float64(scores[i, labels[i]]) - shift) * UNIT
        gain = ieee_math.round_half_even(ieee_math.exp(min(exponent, 0.0)) * factor)
        values[i, labels[i]] = gain
        values[i, n_columns] = 1
        total += gain
    return total


@kernel
def _right(values, labels, answers, leaf_of_row):  # type: ignore[no-untyped-def]
    """A+: the weight of the rows answered right; values: [n, padded]."""
    right = np.int64(0)
    for i in range(labels.shape[0]):
        if answers[leaf_of_row[i]] == labels[i]:
            right += values[i, labels[i]]
    return right


@kernel
def _right_of(mass, labels, answers, leaf_of_row):  # type: ignore[no-untyped-def]
    """The same from D of every row, int64 [n]."""
    right = np.int64(0)
    for i in range(labels.shape[0]):
        if answers[leaf_of_row[i]] == labels[i]:
            right += mass[i]
    return right


class ExponentialHits:
    """An algorithm of this loss, complete but for its share and its edge; totals of its gains: [A]."""

    ln_initial = 0.0
    touched_gains: ClassVar[bool] = False

    def __init__(self, problem: Problem, share: float) -> None:
        n_rows, self.n_columns = problem.labels.shape[0], problem.n_classes
        self._labels, self._team, self._share = problem.labels, problem.team, share
        self._all_rows, self._copies = problem.all_rows, problem.copies
        self._alphas = 0  # sum of the steps taken, in score units
        self.sparse = keeps_sparse(problem.weak_learner, self.n_columns)
        self._hits = SparseHits(problem) if self.sparse else None
        self._values = new_gains(0 if self.sparse else n_rows, self.n_columns, problem.copies)
        self._mass = np.zeros(n_rows if self.sparse else 0, np.int64)  # D of every row, beside lists

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponent, int64 [1]."""
        if self._hits is not None:
            return self._hits.peaks(as_sparse(scores))
        n_rows = self._labels.shape[0]
        found = self._team.over(n_rows, n_rows, lambda a, b: int(_peak(scores.values, self._labels, a, b)))
        return np.array([max(found)], np.int64)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponent over all members."""
        shift = int(peaks[0])
        scale = scale_for(1.0, self._all_rows)
        if self._hits is not None:
            lists = self._hits.gains(as_sparse(scores), shift, scale, self._mass)
            return Gains(lists, np.array([lists.total_mass], np.int64), shift)
        factor = float(np.ldexp(1.0, scale))

        def part(start: int, stop: int) -> int:
            rows = (start, stop)
            return int(_fill(scores.values, self._labels, factor, float(shift), rows, self._values))

        n_rows = self._labels.shape[0]
        total = sum(self._team.over(n_rows, 8 * n_rows, part))
        if self._copies is not None:
            total = int(weigh(self._values, self._copies, self.n_columns, self._team).sum())
        matrix = GainMatrix(self._values, self.n_columns, scale, total)
        return Gains(matrix, np.array([total], np.int64), shift)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of mean D_i exp(share * sum of alphas)."""
        held = gains.shift * UNIT + self._share * (self._alphas * UNIT)
        return ln(int(totals[0])) - gains.matrix.scale * LN2 + held - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """A+ on this member's rows. The tree's own value need not be it: it may have grown by impurity."""
        tree = fitted.parts[0].tree
        said = (self._labels, tree.payload[:, 0].copy(), tree.leaf_of_row)
        right = _right_of(self._mass, *said) if self.sparse else _right(self._values, *said)
        return np.array([right], np.int64)

    def along(self, edge: float, ln_odds: float, totals: Integers, outcomes: Integers) -> Step:
        """The step alpha = ln((1 - err) / err) + ln_odds, at most twice the cap of half-steps."""
        right, total = int(outcomes[0]), int(totals[0])
        wrong = total - right
        if edge <= 0:
            return make_step(edge, 0.0, 0.0, 0.0)
        alpha = min(ln(right) - ln(wrong) + ln_odds, 2.0 * ALPHA_CAP) if wrong else 2.0 * ALPHA_CAP
        grown = float(ieee_math.exp(self._share * alpha))
        factor = (right * float(ieee_math.exp((self._share - 1.0) * alpha)) + wrong * grown) / total
        # every weight is rounded by half a unit, and a wrong row's grows
        units = 0.5 * self._all_rows * (1.0 + grown)
        slack = math.log1p(units / (factor * total))
        return make_step(edge, alpha, float(ieee_math.log(factor)), slack, perfect=wrong == 0)

    def taken(self, fitted: Fitted, step: Step) -> None:
        """The loss needs the sum of all steps."""
        self._alphas += int(step.multipliers[0])
