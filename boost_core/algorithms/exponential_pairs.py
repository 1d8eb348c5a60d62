"""The exponential loss over pairs of a row's true label and a wrong one, shared by the AdaBoost.MM family.

    E(i,l) = exp(F(i,l) - F(i,y)) for l != y,   P_i = sum_l E(i,l),   loss = mean P_i       (Mukherjee & Schapire 2010)
    G(i,l) = -E(i,l),   G(i,y) = P_i:   rows sum to 0 exactly, since P_i is the integer sum of the row's rounded E

A step alpha known in advance wants G(i,y) = P_i exp(-alpha) instead (eq. 6 there, up to a factor).

Exponents are relative to the greatest one of all members. The greatest gain is a P_i, at most K - 1 times the greatest
E, which is what the scale is chosen by.
"""

import math
from typing import ClassVar

import numpy as np

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ALPHA_CAP, atanh_step, ln, make_step
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.sparse_pairs import SparsePairs
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.jit import counted_kernel, kernel, step
from boost_core.row_weights import new_gains, weigh
from boost_core.scores import UNIT, Scores
from boost_core.sparse_rule import keeps_sparse
from boost_core.sparse_scores import as_sparse

TILE_ROWS = 64
LN2 = 0.6931471805599453
NO_ROW = -(1 << 62)


@kernel
def _peak(scores, labels, start, stop):  # type: ignore[no-untyped-def]
    """Greatest F(i,l) - F(i,y) over rows and wrong labels, in score units."""
    peak = np.int64(NO_ROW)
    for i in range(start, stop):
        own = np.int64(scores[i, labels[i]])
        for c in range(scores.shape[1]):
            if c != labels[i]:
                peak = max(peak, np.int64(scores[i, c]) - own)
    return peak


@counted_kernel
def _fill(scores, labels, exponents, own_share, rows, values):  # type: ignore[no-untyped-def]
    """values (OUT): gains of rows[0]..rows[1]; a true label's is own_share times the row's P_i.

    exponents = (2**scale, shift, unit of a score). Returns the sum of absolute gains and that of all P_i.
    """
    factor, shift, unit = exponents
    n_columns, n_padded = scores.shape[1], values.shape[1]
    flat, out = scores.reshape(-1), values.reshape(-1)
    weights = np.empty(TILE_ROWS * n_columns)
    absolute, total = np.int64(0), np.int64(0)
    for tile in range(rows[0], rows[1], TILE_ROWS):
        stop = min(tile + TILE_ROWS, rows[1])
        for i in range(tile, stop):
            own = np.float64(scores[i, labels[i]]) + shift
            for c in range(n_columns):
                weights[(i - tile) * n_columns + c] = (np.float64(flat[i * n_columns + c]) - own) * unit
        for k in range((stop - tile) * n_columns):
            weights[k] = ieee_math.exp(min(weights[k], 0.0))
        for i in range(tile, stop):
            row = out[i * n_padded : i * n_padded + n_columns]
            weight = weights[(i - tile) * n_columns : (i - tile + 1) * n_columns]
            row_mass = np.int64(0)
            for c in range(n_columns):
                gain = ieee_math.round_half_even(weight[c] * factor)
                row[c] = -gain
                row_mass += gain
            row_mass -= ieee_math.round_half_even(weight[labels[i]] * factor)
            own_gain = ieee_math.round_half_even(np.float64(row_mass) * own_share)
            row[labels[i]] = own_gain
            out[i * n_padded + n_columns] = 1
            absolute += row_mass + own_gain
            total += row_mass
    return absolute, total


@step
def _pairs_of(row, label, n_columns):  # type: ignore[no-untyped-def]
    """P_i: the sum of the absolute gains of a row's wrong labels."""
    total = np.int64(row[label])
    for c in range(n_columns):
        total -= row[c]
    return total


@kernel
def _pair_sum(values, n_columns, labels):  # type: ignore[no-untyped-def]
    """Sum of all P_i."""
    total = np.int64(0)
    for i in range(labels.shape[0]):
        total += _pairs_of(values[i], labels[i], n_columns)
    return total


@kernel
def _outcomes(values, n_columns, labels, answers, leaf_of_row, sums):  # type: ignore[no-untyped-def]
    """sums (OUT, int64 [2]): A+ = sum of P_i over rows answered right, A- = sum of E(i, answer) over the others."""
    for i in range(labels.shape[0]):
        answer = answers[leaf_of_row[i]]
        if answer == labels[i]:
            sums[0] += _pairs_of(values[i], answer, n_columns)
        else:
            sums[1] -= values[i, answer]


class ExponentialPairs:
    """An algorithm of the exponential pair loss with single-label weak learners, complete but for its step rule.

    totals of its gains: [sum of absolute gains, sum of all P_i]. The gain matrix's arrays are reused every round.
    """

    error_factor: float | None = 1.0
    unit: ClassVar[float] = UNIT  # what a score unit adds to an exponent
    touched_gains: ClassVar[bool] = True
    may_be_sparse: bool = True  # whether its weak learners can be fitted to sparse gains

    def __init__(self, problem: Problem) -> None:
        n_rows, self.n_columns = problem.labels.shape[0], problem.n_classes
        self._labels, self._team, self._copies = problem.labels, problem.team, problem.copies
        self._all_rows = problem.all_rows
        self.n_pairs = self._all_rows * (self.n_columns - 1)
        self.sparse = self.may_be_sparse and keeps_sparse(problem.weak_learner, self.n_columns)
        self._pairs = SparsePairs(problem) if self.sparse else None
        self._values = new_gains(0 if self.sparse else n_rows, self.n_columns, problem.copies)
        self.ln_initial = ln(self.n_columns - 1)

    @staticmethod
    def refusal(n_classes: int) -> str | None:
        """Any number of classes can be learnt."""
        return None

    def peaks(self, scores: Scores) -> Integers:
        """This member's greatest exponent, int64 [1]."""
        if self._pairs is not None:
            return self._pairs.peaks(as_sparse(scores))
        n_rows = self._labels.shape[0]
        work = n_rows * self.n_columns
        found = self._team.over(n_rows, work, lambda a, b: int(_peak(scores.values, self._labels, a, b)))
        return np.array([max(found)], np.int64)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix; peaks: the greatest exponent over all members."""
        shift = int(peaks[0])
        scale = scale_for(float(self.n_columns - 1), self._all_rows * self.n_columns)
        exponents = (float(np.ldexp(1.0, scale)), float(shift), self.unit)
        own_share = self.own_share()
        if self._pairs is not None:
            return self._pairs.gains(as_sparse(scores), exponents, own_share, scale)

        def part(start: int, stop: int) -> tuple[int, int]:
            rows = (start, stop)
            found = _fill(scores.values, self._labels, exponents, own_share, rows, self._values)
            return int(found[0]), int(found[1])

        n_rows = self._labels.shape[0]
        sums = self._team.over(n_rows, 8 * n_rows * self.n_columns, part)
        absolute, total = (sum(each[k] for each in sums) for k in range(2))
        if self._copies is not None:
            absolute = int(weigh(self._values, self._copies, self.n_columns, self._team).sum())
            total = int(_pair_sum(self._values, self.n_columns, self._labels))
        matrix = GainMatrix(self._values, self.n_columns, scale, absolute)
        return Gains(matrix, np.array([absolute, total], np.int64), shift)

    def own_share(self) -> float:
        """A true label's gain over P_i in this round."""
        return 1.0

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of mean P_i."""
        return ln(int(totals[1])) - gains.matrix.scale * LN2 + gains.shift * self.unit - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """A+ and A- of the weak learner on this member's rows."""
        if self._pairs is not None:
            return self._pairs.outcomes(fitted)
        sums = np.zeros(2, np.int64)
        tree = fitted.parts[0].tree
        _outcomes(self._values, self.n_columns, self._labels, tree.payload[:, 0].copy(), tree.leaf_of_row, sums)
        return sums

    def taken(self, fitted: Fitted, step: Step) -> None:
        """The scores say it all."""

    def atanh(self, totals: Integers, outcomes: Integers) -> Step:
        """alpha = artanh(delta), delta = (A+ - A-) / A; the loss shrinks by at most sqrt(1 - delta**2)."""
        return atanh_step(int(outcomes[0] - outcomes[1]), int(totals[1]), self.n_pairs)

    def exact(self, totals: Integers, outcomes: Integers, share: float = 1.0) -> Step:
        """alpha = 0.5 ln(A+ / A-), the minimum of the loss; its factor is (A0 + 2 sqrt(A+ A-)) / A.

        share: as in make_step.
        """
        right, wrong, total = int(outcomes[0]), int(outcomes[1]), int(totals[1])
        edge = (right - wrong) / total
        if right <= wrong:
            return make_step(edge, 0.0, 0.0, 0.0)
        alpha = min(0.5 * (ln(right) - ln(wrong)), ALPHA_CAP) if wrong else ALPHA_CAP
        ln_factor = float(ieee_math.log(self.factor(alpha, totals, outcomes)))
        slack = self.slack(alpha, ln_factor, totals)
        return make_step(edge, alpha, ln_factor, slack, perfect=right == total, share=share)

    def factor(self, alpha: float, totals: Integers, outcomes: Integers) -> float:
        """What a step of any length multiplies the loss with: (A0 + A+ exp(-alpha) + A- exp(alpha)) / A."""
        right, wrong, total = int(outcomes[0]), int(outcomes[1]), int(totals[1])
        shrunk = float(ieee_math.exp(-alpha))
        return ((total - right - wrong) + right * shrunk + wrong / shrunk) / total

    def slack(self, alpha: float, ln_factor: float, totals: Integers) -> float:
        """How far rounding can move ln of the factor: half a unit a pair, which grows by exp(alpha) at most."""
        units = 0.5 * self.n_pairs * (1.0 + math.exp(alpha))
        return math.log1p(units / (math.exp(ln_factor) * int(totals[1])))
