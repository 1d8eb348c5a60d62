"""CD-MCBoost (Saberian & Vasconcelos 2011, Algorithm 1 left): one component of the predictor a round."""

from typing import Any, ClassVar

import numpy as np

from boost_core import ieee_math
from boost_core.algorithms.base import Gains, Integers, Problem, Step
from boost_core.algorithms.margin_descent import LOSS, Line, MarginDescent
from boost_core.algorithms.simplex import component, kinds
from boost_core.fitted import Fitted, Speech
from boost_core.gain_matrix import GainMatrix
from boost_core.jit import counted_kernel
from boost_core.parameters import Parameter
from boost_core.probability import Link
from boost_core.row_weights import new_gains
from boost_core.scores import UNIT, Scores


@counted_kernel
def _project(pairs, labels, codes, kinds, rows, values):  # type: ignore[no-untyped-def]
    """values (OUT): the gradient's component w(i) = 0.5 sum_k q(i,k) (Y[y] - Y[k]) of rows[0]..rows[1].

    pairs: gains of all classes, of all of a row's copies; codes [3]: Y of each kind of classes; kinds [n_classes].
    Returns the sum of |w|.
    """
    absolute = np.int64(0)
    weights = np.zeros(3, np.int64)
    for i in range(rows[0], rows[1]):
        weights[:] = 0
        for k in range(kinds.shape[0]):
            if k != labels[i]:
                weights[kinds[k]] -= pairs[i, k]
        copies = np.int64(pairs[i, kinds.shape[0]])
        if copies > 1:
            weights //= copies  # exactly: what is rounded is one copy's gain
        own = codes[kinds[labels[i]]]
        slope = 0.0
        for kind in range(3):
            slope += np.float64(weights[kind]) * (own - codes[kind])
        gain = ieee_math.round_half_even(0.5 * slope) * copies
        values[i, 0] = gain
        values[i, 1] = copies
        absolute += abs(gain)
    return absolute


class CDMCBoost(MarginDescent):
    """s(i,k) += alpha g(x_i) Y[k,j] for j = 0..K-2 in turn; components along which nothing is to gain are skipped.

    A round fits one weak learner. The component follows from the last weak learner, so it needs no keeping.
    """

    name: ClassVar[str] = "cd_mcboost"
    summary: ClassVar[str] = "CD-MCBoost: coordinate descent over simplex codewords, one scalar learner a round"
    source: ClassVar[str] = "Saberian & Vasconcelos, NIPS 2011; JMLR 20, 2019"
    guarantee: ClassVar[str] = (
        "the loss falls every round and bounds the training error (logistic: over ln 2); "
        "exponential: loss <= (K - 1) prod sqrt(1 - edge^2)"
    )
    link: ClassVar[Link] = Link.PLAIN
    fixed_steps: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (LOSS,)
    weak_learners: ClassVar[tuple[str, ...]] = ("stump", "regression_stump", "regression_tree")

    def __init__(self, problem: Problem, parameters: Any) -> None:
        super().__init__(problem, parameters)
        n_rows = self._labels.shape[0]
        self._n_components = self.n_columns - 1
        self._component, self._skipped = 0, 0
        self.n_channels = 1
        self._slopes = new_gains(n_rows, self.n_channels, problem.copies)

    def gains(self, scores: Scores, peaks: Integers) -> Gains:
        """The gradient's component whose turn it is; peaks: the greatest exponent over all members."""
        self._skipped = 0
        return self._projected(super().gains(scores, peaks))

    def redraw(self, gains: Gains) -> Gains | None:
        """The next component, until all of them have been tried."""
        self._skipped += 1
        if self._skipped == self._n_components:
            return None
        self._component = (self._component + 1) % self._n_components
        return self._projected(gains)

    def _projected(self, gains: Gains) -> Gains:
        codes, kind = component(self._component, self.n_columns), kinds(self._component, self.n_columns)
        values, n_rows = self._slopes, self._labels.shape[0]

        def part(start: int, stop: int) -> int:
            return int(_project(self._values, self._labels, codes, kind, (start, stop), values))

        absolute = sum(self._team.over(n_rows, n_rows * self.n_columns, part))
        return gains._replace(matrix=GainMatrix(values, self.n_channels, gains.matrix.scale, absolute))

    def line(self, fitted: Fitted) -> Line:
        """Outputs g Y[k,j]: votes g = +-1, or real g of at most 1."""
        tree = fitted.parts[0].tree
        unit = UNIT if fitted.speech is Speech.VALUES else 1.0
        outputs = (tree.payload * unit) * component(self._component, self.n_columns)
        return Line(outputs, kinds(self._component, self.n_columns), tree.leaf_of_row)

    def edge(self, fitted: Fitted, totals: Integers) -> float:
        """sum_i w(i) g(i) over the weights and the greatest |w| of a weight of 1, half the distance of codewords."""
        half_distance = float(np.sqrt(self.n_columns / (2.0 * (self.n_columns - 1))))
        return min(fitted.value / (half_distance * max(int(totals[1]), 1)), 1.0)

    def taken(self, fitted: Fitted, step: Step) -> None:
        """On to the next component: that of the step is the first one whose class moved."""
        moved = int(fitted.parts[0].tree.payload.any(axis=0).argmax())
        self._component = (moved + 1) % self._n_components
