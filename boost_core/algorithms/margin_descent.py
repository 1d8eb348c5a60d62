"""Descent of a margin loss along weak learners that move all classes' scores (MCBoost, Saberian & Vasconcelos 2011).

With margins m(i,k) = (s(i,y) - s(i,k)) / 2 of the wrong classes k, R = sum_i loss(m(i,.)) and weights q = -dR/dm,

    -dR/ds(i,k) = -q(i,k) / 2,   -dR/ds(i,y) = sum_k q(i,k) / 2              (eqs. 24 and 31, times the codewords)

Twice these are the gains. The exponential loss sum_k exp(-m(i,k)) has q = exp(-m): the pairs of AdaBoost.MM for scores
of double size. A step alpha adds alpha times a weak learner's outputs to the scores. It minimises R along them,
rounded to the grid of scores; R is then taken again at the rounded moves, and must have fallen.

The exponential loss along a line needs the sums of q over each (leaf, class y, class k) only, or over kinds of classes
that move alike; other losses take a pass over the rows a trial, with one exchange of three integers.
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms import margin_losses
from boost_core.algorithms.atanh_step import ALPHA_CAP, ln
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_pairs import LN2, ExponentialPairs
from boost_core.algorithms.line_search import least_along
from boost_core.fitted import Fitted, Speech, one_tree
from boost_core.gain_matrix import GainMatrix, scale_for
from boost_core.jit import kernel
from boost_core.model import SCORE_UNITS
from boost_core.parameters import Parameter
from boost_core.records import StopReason
from boost_core.row_weights import weigh
from boost_core.scores import UNIT, Scores

Floats = NDArray[np.floating[Any]]
Figures = tuple[float, float, float]  # the loss and its first two derivatives
Look = Callable[[Floats, float], Figures]  # at a step (the second argument) along outputs (the first)
LOSS = Parameter(
    "loss",
    "string",
    "exponential",
    "of a row's margins m; exponential: sum exp(-m); logistic: ln(1 + sum exp(-m)); "
    "tangent: sum (2 arctan m - 1)^2, which outliers cannot dominate",
    choices=("exponential", "logistic", "tangent"),
)


class Line(NamedTuple):
    """Where a weak learner leads.

    outputs: float64 [n_leaves, n_kinds], what a step of 1 adds to the score of a class of that kind; it moves no margin
    by more than 1; kinds: int64 [n_classes], each class's kind; leaf_of_row: int32 [n_rows] of this member.
    """

    outputs: Floats
    kinds: Integers
    leaf_of_row: NDArray[np.int32]


@kernel
def _weigh(values, labels, kinds, leaf_of_row, rows, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [leaves, kinds, kinds]) += weights of rows[0]..rows[1] by leaf, kind of y and kind of k."""
    for i in range(rows[0], rows[1]):
        part = sums[leaf_of_row[i], kinds[labels[i]]]
        for k in range(kinds.shape[0]):
            if k != labels[i]:
                part[kinds[k]] -= values[i, k]


@kernel
def _exponential_along(sums, outputs, alpha):  # type: ignore[no-untyped-def]
    """Loss and its two derivatives, from the sums of the weights before the step."""
    loss, slope, curve = 0.0, 0.0, 0.0
    for leaf in range(sums.shape[0]):
        for a in range(sums.shape[1]):
            for b in range(sums.shape[2]):
                if sums[leaf, a, b] > 0:
                    move = 0.5 * (outputs[leaf, a] - outputs[leaf, b])
                    weight = np.float64(sums[leaf, a, b]) * ieee_math.exp(-alpha * move)
                    loss += weight
                    slope -= weight * move
                    curve += weight * move * move
    return loss, slope, curve


@kernel
def _standing_weight(sums, outputs):  # type: ignore[no-untyped-def]
    """Sum of the weights of margins that do not grow along the line."""
    standing = np.int64(0)
    for leaf in range(sums.shape[0]):
        for a in range(sums.shape[1]):
            for b in range(sums.shape[2]):
                if outputs[leaf, a] <= outputs[leaf, b]:
                    standing += sums[leaf, a, b]
    return standing


class MarginDescent(ExponentialPairs):
    """Complete but for `line` and `edge`, which say where a weak learner leads and how steep that is.

    totals of the gains: [sum of absolute gains, sum of absolute weights, sum of losses]; the last two are one for the
    exponential loss, whose recorded loss is sum_k exp(-m): R / n - 1 with the R of the paper, which counts k = y too.
    """

    unit: ClassVar[float] = 0.5 * UNIT

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem)
        self._collective = problem.collective
        self._row_copies = np.empty(0, np.int64) if problem.copies is None else problem.copies
        self._exponential = parameters["loss"] == "exponential"
        self._logistic = parameters["loss"] == "logistic"
        self._shrinkage = float(parameters.get("shrinkage", 1.0))
        if self._logistic:
            self.ln_initial = ln_of(ln(self.n_columns))
            self.error_factor = 1.0 / LN2  # of a wrong row some margin is 0 or less: it loses ln 2 at least
        self._scores: Scores | None = None
        self._exponent, self._loss_factor = 0.0, 1.0

    def line(self, fitted: Fitted) -> Line:
        """Where the weak learner leads."""
        raise NotImplementedError

    def edge(self, fitted: Fitted, totals: Integers) -> float:
        """Minus the derivative of the loss along it over the greatest that such a line could have."""
        raise NotImplementedError

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gain matrix of all classes; peaks: the greatest exponent over all members."""
        self._scores, self._exponent = scores, int(peaks[0]) * self.unit
        if self._exponential:
            return super().gains(scores, peaks)
        n_rows, logistic = self._labels.shape[0], self._logistic
        limits = margin_losses.row_limits(logistic, self._exponent, self.n_columns)
        scale = scale_for(limits.weight, self._all_rows * self.n_columns)
        self._loss_factor = margin_losses.sum_factor(limits.loss, self._all_rows)
        units = (math.ldexp(1.0, scale), self._loss_factor, self.unit)

        def part(start: int, stop: int) -> Integers:
            rows = (start, stop)
            found = margin_losses.fill(
                logistic, scores.values, self._labels, units, rows, self._row_copies, self._values
            )
            return np.array(found, np.int64)

        totals = np.sum(self._team.over(n_rows, 16 * n_rows * self.n_columns, part), axis=0)
        if self._copies is not None:
            weigh(self._values, self._copies, self.n_columns, self._team)
        matrix = GainMatrix(self._values, self.n_columns, scale, int(totals[0]))
        return Gains(matrix, totals, 0)

    def ln_loss(self, gains: Gains, totals: Integers) -> float:
        """ln of the mean loss."""
        if self._exponential:
            return super().ln_loss(gains, totals)
        return ln(max(int(totals[2]), 1)) - ln_of(self._loss_factor) - ln(self._all_rows)

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """Exponential: sums of weights by leaf and kinds; else how many margins do not grow, int64 [1]."""
        line = self.line(fitted)
        n_leaves, n_kinds = line.outputs.shape
        n_rows, exponential = self._labels.shape[0], self._exponential

        def part(start: int, stop: int) -> Integers:
            if not exponential:
                return np.array([margin_losses.standing_pairs(self._labels, tuple(line), start, stop)], np.int64)
            sums = np.zeros((n_leaves, n_kinds, n_kinds), np.int64)
            _weigh(self._values, self._labels, line.kinds, line.leaf_of_row, (start, stop), sums)
            return sums.reshape(-1)

        return np.asarray(np.sum(self._team.over(n_rows, n_rows * self.n_columns, part), axis=0))

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The least loss along the weak learner; less where that lies beyond a rise, so that the loss always falls."""
        edge, line = self.edge(fitted, totals), self.line(fitted)
        if edge <= 0:
            return _refused(edge, StopReason.EDGE_ZERO)
        look, standing = self._look(line, outcomes)
        before = look(line.outputs, 0.0)[0]
        alpha = least_along(lambda at: look(line.outputs, at)[1:])
        perfect = alpha >= ALPHA_CAP and standing == 0
        units = round(alpha * (1 << SCORE_UNITS))
        while units > 0:
            moves = np.rint(line.outputs * float(units)).astype(np.int64)
            factor = self._factor(look, moves, before)
            if factor < 1.0 and self._seen(units * UNIT, factor, totals):
                ln_factor = ln_of(factor)
                step = Step(edge, units * UNIT, np.ones(1, np.int64), ln_factor, 0.0, perfect)
                return self._moving(fitted, moves[:, line.kinds], step, totals)
            units //= 2
        return _refused(edge, StopReason.ALPHA_ZERO)

    def _seen(self, alpha: float, factor: float, totals: Integers) -> bool:
        """Whether the loss falls by more than what long steps may bring up of weights that were rounded away.

        Half a unit of every pair grows by exp(alpha) at most. It matters where nothing that is seen opposes a step, so
        that it goes to its cap for next to no gain. Other losses are taken of the scores themselves.
        """
        if not self._exponential or alpha <= 1.0:
            return True
        return (1.0 - factor) * int(totals[1]) > 0.5 * self.n_pairs * (float(ieee_math.exp(alpha)) - 1.0)

    def _factor(self, look: Look, moves: Integers, before: float) -> float:
        """What the moves multiply the loss with.

        A learning rate v makes them shorter, and the loop takes (1 - v) + v factor for the factor of the rest, as holds
        for convex losses; where the tangent loss bends the other way, a factor is found for which it does.
        """
        factor = look(moves * UNIT, 1.0)[0] / before
        if self._exponential or self._logistic or self._shrinkage == 1.0:
            return factor
        shorter = look(np.rint(moves * self._shrinkage) * UNIT, 1.0)[0] / before
        return max(factor, 1.0 - (1.0 - shorter) / self._shrinkage)

    def _look(self, line: Line, outcomes: Integers) -> tuple[Look, int]:
        """The loss and its derivatives along the line, and how much does not gain by it."""
        if not self._exponential:
            return self._looking_at_rows(line), int(outcomes[0])
        sums = outcomes.reshape(*line.outputs.shape, -1)
        return _looking_at_sums(sums), int(_standing_weight(sums, line.outputs))

    def _looking_at_rows(self, line: Line) -> Look:
        """A pass over all members' rows a look."""
        assert self._scores is not None
        values, n_rows, logistic = self._scores.values, self._labels.shape[0], self._logistic

        def look(outputs: Floats, alpha: float) -> Figures:
            reach = 0.5 * float(np.max(outputs.max(axis=1) - outputs.min(axis=1)))  # of a margin, by a step of 1
            limits = margin_losses.row_limits(logistic, self._exponent + alpha * reach, self.n_columns)
            bounds = (limits.loss, limits.weight * max(reach, 1.0), limits.curve * max(reach, 1.0) ** 2)
            factors = tuple(margin_losses.sum_factor(bound, self._all_rows) for bound in bounds)
            along, units = (outputs, line.kinds, line.leaf_of_row, alpha), (factors, self.unit)
            labels, copies = self._labels, self._row_copies

            def part(start: int, stop: int) -> Integers:
                found = margin_losses.along(logistic, values, labels, along, units, (start, stop), copies)
                return np.array(found, np.int64)

            sums = np.sum(self._team.over(n_rows, 16 * n_rows * self.n_columns, part), axis=0)
            summed = self._collective.sum(np.asarray(sums))
            loss, slope, curve = (int(each) / factor for each, factor in zip(summed, factors, strict=True))
            return loss, slope, curve

        return look

    def _moving(self, fitted: Fitted, moves: Integers, step: Step, totals: Integers) -> Step:
        """The step, with the moves that it makes (int64 [leaves, classes], in score units)."""
        slack = self._rounding(step, totals)
        if not moves.any():
            return _refused(step.edge, StopReason.ALPHA_ZERO)
        if fitted.speech is Speech.LABEL:
            return step._replace(ln_slack=slack, multipliers=np.array([moves.max()], np.int64))
        tree = fitted.parts[0].tree._replace(payload=moves.astype(np.int32))
        return step._replace(ln_slack=slack, moved=one_tree(tree, Speech.VALUES))

    def _rounding(self, step: Step, totals: Integers) -> float:
        """How far rounding can move ln of the step's factor."""
        if self._exponential:
            return self.slack(step.alpha, step.ln_factor, totals)
        units = 0.5 * self._all_rows * (1.0 + math.exp(step.alpha))
        return math.log1p(units / (math.exp(step.ln_factor) * max(int(totals[2]), 1)))


def _looking_at_sums(sums: Integers) -> Look:
    """From the sums of weights by leaf and kinds, int64 [leaves, kinds, kinds]; all in their units."""

    def look(outputs: Floats, alpha: float) -> Figures:
        loss, slope, curve = _exponential_along(sums, outputs, alpha)
        return float(loss), float(slope), float(curve)

    return look


def _refused(edge: float, reason: StopReason) -> Step:
    return Step(edge, 0.0, np.zeros(1, np.int64), 0.0, 0.0, refused=reason)


def ln_of(number: float) -> float:
    """Natural logarithm in plain IEEE operations."""
    return float(ieee_math.log(number))
