"""The exponential vote loss with real-valued leaves (Schapire & Singer 1999, section 4): the leaf values are the step.

Two channels a label hold the weights of its pairs apart, W+ where Y = +1 and W- where Y = -1. A tree whose leaves say c
leaves of the loss

    Z = sum over leaves and labels of W+ exp(-c) + W- exp(c),

which is 2 sqrt(W+ W-) where c is half the log odds. Z is taken at the values that the leaves have, smoothed and on the
grid of scores, from exact sums, so the loss equals the product of the Z but for the rounding of gains.
"""

import math

import numpy as np
from numpy.typing import NDArray

from boost_core import ieee_math
from boost_core.algorithms.atanh_step import ln
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.exponential_votes import ExponentialVotes, InitialWeights
from boost_core.fitted import Fitted
from boost_core.gain_matrix import GainMatrix
from boost_core.jit import kernel
from boost_core.records import StopReason
from boost_core.row_weights import new_gains
from boost_core.scores import UNIT, Scores


@kernel
def _part(values, n_labels, start, stop, pairs):  # type: ignore[no-untyped-def]
    """pairs (OUT) [n, padded]: gains [n, c] of rows start..stop, positive ones in channel l, others' size in c + l."""
    for i in range(start, stop):
        for c in range(n_labels):
            gain = values[i, c]
            pairs[i, c] = max(gain, 0)
            pairs[i, n_labels + c] = max(-gain, 0)
        pairs[i, 2 * n_labels] = values[i, n_labels]


@kernel
def _leaf_sums(pairs, leaf_of_row, start, stop, sums):  # type: ignore[no-untyped-def]
    """sums (IN/OUT, int64 [n_leaves, 2 c + 1]) += rows start..stop: of each channel and the row count, a leaf."""
    for i in range(start, stop):
        for c in range(sums.shape[1]):
            sums[leaf_of_row[i], c] += pairs[i, c]


@kernel
def _left_over(payload, leaves, n_labels):  # type: ignore[no-untyped-def]
    """Sum of the weights after the step, in units of the gains, and how far the rounding of gains can move it.

    Every gain is off by up to half a unit, which grows with its pair: by exp(|c|) at most.
    """
    left, unsure = 0.0, 0.0
    for leaf in range(payload.shape[0]):
        for c in range(n_labels):
            shrunk = ieee_math.exp(-np.float64(payload[leaf, c]) * UNIT)
            left += np.float64(leaves[leaf, c]) * shrunk + np.float64(leaves[leaf, n_labels + c]) / shrunk
            unsure += 0.5 * np.float64(leaves[leaf, 2 * n_labels]) * max(shrunk, 1.0 / shrunk)
    return left, unsure


class ExponentialOdds(ExponentialVotes):
    """ExponentialVotes for trees of real-valued leaves."""

    def __init__(self, targets: NDArray[np.int32], initial: InitialWeights, problem: Problem) -> None:
        super().__init__(targets, initial, problem)
        self.n_channels = 2 * self.n_columns
        self._pairs = new_gains(targets.shape[0], self.n_channels, problem.copies)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The weights of both signs; peaks: the greatest exponents over all members."""
        votes = super().gains(scores, peaks)
        values, n_labels = votes.matrix.values, self.n_columns
        n_rows = values.shape[0]
        self._team.over(n_rows, n_rows * n_labels, lambda a, b: _part(values, n_labels, a, b, self._pairs))
        matrix = GainMatrix(self._pairs, self.n_channels, votes.matrix.scale, votes.matrix.total_mass)
        return votes._replace(matrix=matrix, sums=None)  # votes.sums are of other channels

    def outcomes(self, fitted: Fitted, gains: Gains) -> Integers:
        """Sums of every leaf's channels and rows on this member."""
        tree = fitted.parts[0].tree
        n_rows, n_leaves, n_sums = tree.leaf_of_row.shape[0], tree.payload.shape[0], 2 * self.n_columns + 1

        def part(start: int, stop: int) -> Integers:
            sums = np.zeros((n_leaves, n_sums), np.int64)
            _leaf_sums(self._pairs, tree.leaf_of_row, start, stop, sums)
            return sums

        return np.asarray(np.sum(self._team.over(n_rows, n_rows * n_sums, part), axis=0).reshape(-1))

    def step(self, fitted: Fitted, totals: Integers, outcomes: Integers) -> Step:
        """The leaf values as they are: alpha = 1. The edge is the part of the loss that unsmoothed values take off."""
        payload, total = fitted.parts[0].tree.payload, int(totals[0])
        leaves = outcomes.reshape(payload.shape[0], -1)
        left, unsure = (float(each) for each in _left_over(payload, leaves, self.n_columns))
        edge = fitted.value / total
        moved = bool(payload.any())
        return Step(
            edge=edge,
            alpha=1.0,
            multipliers=np.ones(1, np.int64),
            ln_factor=float(ieee_math.log(left)) - ln(total),
            ln_slack=math.log1p(unsure / left) + self._n_pairs / (2.0 * total),
            perfect=fitted.value == total,
            refused=None if moved and edge > 0 else StopReason.ALPHA_ZERO if edge > 0 else StopReason.EDGE_ZERO,
        )

    def pace(self, scores: Scores, peaks: Integers) -> None:
        """The steps need outcomes."""
